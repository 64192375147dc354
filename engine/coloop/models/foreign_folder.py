"""Model folders that somebody else wrote: what is looked at before anything of them is loaded.

Libraries follow what a folder says: an index names further files, which may be pickles or lie
elsewhere, and an adapter's config names another model. Here both are refused, so that what is
loaded is safetensors of this folder.
"""

import json
from pathlib import Path
from typing import Any, Final

from coloop.errors import ModelUnavailable
from coloop.models.adapter_folder import ADAPTER_FILES, BASE_FOLDER, CONFIG, is_adapter

PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.h5", "*.msgpack")
INDEX: Final = "*.safetensors.index.json"
AS_SAFETENSORS: Final = "save the model again as safetensors"


def check_folder(folder: Path) -> None:
    """Raises `ModelUnavailable` for a folder without a model, or with one that must not be
    loaded."""
    if is_adapter(folder):
        _check_adapter(folder)
        folder = folder / BASE_FOLDER
    if (folder / CONFIG).exists():
        if not (folder / "config.json").exists():
            raise ModelUnavailable(f"{folder} holds an adapter; merge it into its model first")
        raise ModelUnavailable(
            f"{folder} holds a model and beside it {CONFIG}, which would put another model in its "
            f"place; take {CONFIG} out of the folder, or merge the adapter into its model first"
        )
    if not (folder / "config.json").exists():
        raise ModelUnavailable(f"{folder} is no model in Hugging Face format: no config.json")
    for index in sorted(folder.glob(INDEX)):
        check_index(index)
    if not any(folder.glob("*.safetensors")):
        _refuse_pickles(folder)
        raise ModelUnavailable(f"{folder} holds no weights: no *.safetensors")


def check_index(index: Path) -> None:
    """Raises `ModelUnavailable` where an index of weights names anything but safetensors beside
    it."""
    try:
        told: Any = json.loads(index.read_text(encoding="utf-8"))
        files = set(told["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelUnavailable(f"{index} is no index of weights: {error!r}") from error
    for name in sorted(files, key=str):
        if not isinstance(name, str) or Path(name).name != name:
            raise ModelUnavailable(
                f"{index} names {name!r}, which is no file beside it; {AS_SAFETENSORS}"
            )
        if not name.endswith(".safetensors"):
            raise ModelUnavailable(
                f"{index} names {name}, which may be a pickle that could run any code when"
                f" loaded; {AS_SAFETENSORS}"
            )


def _check_adapter(folder: Path) -> None:
    weights = ADAPTER_FILES[1]
    if not (folder / weights).is_file():
        _refuse_pickles(folder)
        raise ModelUnavailable(f"{folder} holds no weights of an adapter: no {weights}")


def _refuse_pickles(folder: Path) -> None:
    found = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
    if found:
        raise ModelUnavailable(
            f"{folder} holds its weights in {found[0]}, a pickle that could run any code when"
            f" loaded; {AS_SAFETENSORS}"
        )
