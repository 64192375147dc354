"""Find a Chromium for the browser tests; on Debian and as root, install it with apt-get."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    if any(shutil.which(name) for name in NAMES):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        sys.exit(
            "coloop: the browser tests want Chromium; install it "
            "(Debian: apt-get install chromium) and run `make test` again"
        )
    sys.stdout.write("coloop: installing Chromium with apt-get\n")
    sys.stdout.flush()
    quiet = {"stdout": subprocess.DEVNULL}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment, **quiet)
    subprocess.run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
        check=True,
        env=environment,
        **quiet,
    )


if __name__ == "__main__":
    main()
