"""Where model folders are found on a machine.

    COLOOP_MODELS_DIR    folder of models that loops name by name alone, `path: smollm2-135m`; else
                         coloop/models below XDG_DATA_HOME, which is ~/.local/share by default

A folder of that name beside the loop comes first.
"""

import os
from pathlib import Path
from typing import Final

SETTING: Final = "COLOOP_MODELS_DIR"


def models_dir() -> Path:
    """The folder of models, which need not exist."""
    if named := os.environ.get(SETTING):
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME", "")
    above = Path(home) if os.path.isabs(home) else Path.home() / ".local/share"
    return above / "coloop" / "models"


def folder_of(path: str, root: Path) -> Path:
    """The folder that `model.path` names, from `root`; it need not exist."""
    folder = root / os.path.expanduser(path)
    if "/" in path or os.sep in path or path in (".", "..") or folder.exists():
        return folder
    kept = models_dir() / path
    return kept if kept.is_dir() else folder
