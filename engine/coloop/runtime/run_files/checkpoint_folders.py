"""Folders of checkpoints in a run folder, found without reading them."""

from pathlib import Path
from typing import Final

CHECKPOINTS: Final = "checkpoints"
MANIFEST: Final = "manifest.json"


def whole_checkpoints(folder: Path) -> dict[int, Path]:
    """Folders of the complete checkpoints of a run, by step."""
    checkpoints = {}
    for path in (folder / CHECKPOINTS).glob("step-*"):
        number = path.name.removeprefix("step-")
        if number.isdecimal() and (path / MANIFEST).is_file():
            checkpoints[int(number)] = path
    return checkpoints
