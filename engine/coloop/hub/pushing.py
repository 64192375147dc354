"""Uploads of a folder to a repository of the hub, and GGUF files by llama.cpp's converter."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

from coloop.errors import HubFailed
from coloop.hub.client import LOGIN, api, asking
from coloop.spec.hub_cache import endpoint

GgufType = Literal["f32", "f16", "bf16", "q8_0", "auto"]
CONVERTER: Final = "convert_hf_to_gguf.py"
SETTING: Final = "COLOOP_GGUF_CONVERTER"


def create_repo(repo: str, *, private: bool) -> None:
    """Make the repository unless it is there; raises `HubFailed`. An existing one stays public or
    private as it is."""
    from huggingface_hub import get_token

    if "/" not in repo:
        raise HubFailed(f"{repo!r} names no user or organization; give `user/name`")
    with asking(repo):
        if get_token() is None:
            raise HubFailed(f"{repo}: pushing needs a token of {endpoint()}; {LOGIN}")
        api().create_repo(repo, private=private, exist_ok=True)


def upload(folder: Path, repo: str, message: str) -> str:
    """Upload all files of a folder as one commit; returns the address of the repository. What an
    earlier, interrupted push sent is not sent again."""
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    with asking(repo):
        api().upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
    return f"{endpoint()}/{repo}"


def find_converter() -> Path:
    """llama.cpp's converter; raises `HubFailed` where it is not installed."""
    named = os.environ.get(SETTING)
    found = named if named and Path(named).is_file() else shutil.which(CONVERTER)
    if found is None:
        at = f"{SETTING} is {named}, which is no file" if named else f"there is no {CONVERTER}"
        raise HubFailed(
            f"GGUF files are written by llama.cpp's converter, and {at}; clone llama.cpp, install "
            f"its requirements, and set {SETTING} to the path of {CONVERTER}"
        )
    return Path(found)


def write_gguf(model: Path, out: Path, kind: GgufType, converter: Path) -> None:
    """Convert a model folder; raises `HubFailed` with the converter's last line."""
    command = [sys.executable, str(converter), str(model), "--outfile", str(out)]
    ended = subprocess.run(
        [*command, "--outtype", kind], capture_output=True, text=True, check=False
    )
    if ended.returncode or not out.is_file():
        lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        why = lines[-1] if lines else f"it ended with code {ended.returncode}"
        raise HubFailed(f"{converter} could not convert the model: {why}")
