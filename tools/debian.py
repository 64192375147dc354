"""Packages of Debian that only some tests want: installed with apt-get, as root."""

import os
import shutil
import subprocess
import sys


def install(package: str, why: str) -> None:
    """Install a package, or end with what to type where that is not possible."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        sys.exit(f"coloop: {why}; install it (Debian: apt-get install {package}) and run it again")
    sys.stdout.write(f"coloop: installing {package} with apt-get\n")
    sys.stdout.flush()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
    ):
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
