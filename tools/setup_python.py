"""Make the virtual environment and install coloop into it, with every version from the lock.

torch comes first, because an open range would bring gigabytes of CUDA packages to a machine without
a GPU: from `COLOOP_TORCH_INDEX` when it is set; else, where there is no NVIDIA GPU and no folder of
local wheels, from PyTorch's public CPU index if it answers; else from where pip looks by default.
"""

import argparse
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LEAST_PYTHON = (3, 11)
ANSWER_SECONDS = 5


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--venv", type=Path, default=ROOT / ".venv")
    arguments.add_argument("--extras", default="all")
    arguments.add_argument("--only", type=Path, help="packages of this file, without coloop itself")
    given = arguments.parse_args()
    if sys.version_info < LEAST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"coloop wants Python 3.11 or newer, found {found}; set PYTHON=/path/to/python3.11"
        )
    python = ensure_venv(given.venv)
    pip = [str(python), "-m", "pip"]
    # Of ten modules nine are never imported; those that are, are compiled by the first that does.
    install = [*pip, "install", "-q", "--no-compile", "-c", str(LOCK)]
    what = given.only or given.extras
    say(f"Python packages ({what}); the first time takes a few minutes")
    if not has(python, "torch"):
        run([*install, *torch_source(pip), locked("torch")])
    if given.only is not None:
        run([*install, "-r", str(given.only)])
        return
    run([*install, locked("hatchling"), locked("editables")])
    run([*install, "--no-build-isolation", "-e", f"{ROOT}[{given.extras}]"])


def ensure_venv(folder: Path) -> Path:
    """The environment's Python; one that does not answer is made anew."""
    python = folder / "bin" / "python"
    works = python.exists() and subprocess.run([python, "-c", "import pip"]).returncode == 0
    if not works:
        say(f"virtual environment in {folder.name}")
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)])
    return python


def torch_source(pip: list[str]) -> list[str]:
    """Options of pip that say where torch comes from."""
    named = os.environ.get("COLOOP_TORCH_INDEX")
    if named:
        return ["--index-url", named]
    if has_nvidia_gpu() or has_local_wheels(pip) or not answers(CPU_INDEX):
        return []
    return ["--index-url", CPU_INDEX]


def has_nvidia_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def has_local_wheels(pip: list[str]) -> bool:
    """Whether pip is set up to look into folders of wheels."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
    return "find-links" in listed


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/torch/", timeout=ANSWER_SECONDS) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def locked(package: str) -> str:
    """`package==version` as the lock says."""
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if line.lower().startswith(f"{package}=="):
            return line
    sys.exit(f"{LOCK.name} has no line for {package}")


def has(python: Path, module: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([str(python), "-c", code]).returncode == 0


def run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")


def say(text: str) -> None:
    sys.stdout.write(f"coloop: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
