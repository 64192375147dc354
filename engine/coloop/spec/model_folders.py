"""Where model folders are found on a machine.

    COLOOP_MODELS_DIR    folder of models that loops name by name alone, `path: smollm2-135m`; else
                         coloop/models below XDG_DATA_HOME, which is ~/.local/share by default

A folder of that name beside the loop comes first, what the cache of the hub has of a hub id last.
"""

import os
from pathlib import Path
from typing import Final

from coloop.spec.hub_cache import snapshot_of

SETTING: Final = "COLOOP_MODELS_DIR"


def models_dir() -> Path:
    """The folder of models, which need not exist."""
    if named := os.environ.get(SETTING):
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME", "")
    above = Path(home) if os.path.isabs(home) else Path.home() / ".local/share"
    return above / "coloop" / "models"


def folder_of(path: str, root: Path, revision: str | None = None) -> Path:
    """The folder that `model.path` names, from `root`; it need not exist.

    Args:
        revision: of a hub id; None is `main`.
    """
    folder = root / os.path.expanduser(path)
    if folder.exists() or path in (".", ".."):
        return folder
    if "/" not in path and os.sep not in path and (kept := models_dir() / path).is_dir():
        return kept
    return snapshot_of(path, revision) or folder
