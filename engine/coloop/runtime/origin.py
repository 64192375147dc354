"""Where the relative paths of a run begin. Kept in its folder, so that it can be gone on with from
anywhere."""

import json
from pathlib import Path

ORIGIN_FILE = "origin.json"


def write_origin(folder: Path, root: Path) -> None:
    """Note in a run folder from where the loop's relative paths are read."""
    text = json.dumps({"root": str(root.resolve())})
    (folder / ORIGIN_FILE).write_text(text, encoding="utf-8")


def read_origin(folder: Path) -> Path:
    """The folder from which the run's relative paths are read, as it was when the run began."""
    origin = folder / ORIGIN_FILE
    if not origin.exists():
        return Path()
    return Path(json.loads(origin.read_text(encoding="utf-8"))["root"])
