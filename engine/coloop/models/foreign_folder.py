"""Model folders that somebody else wrote: what is looked at before anything of them is loaded.

Libraries follow what a folder says: an index names further files, which may be pickles or lie
elsewhere, an adapter's config names another model, and a tokenizer's settings name files of words.
Here all of it is refused, so that what is loaded is safetensors and words of this folder.
"""

import json
from pathlib import Path
from typing import Any, Final

from coloop.errors import ModelUnavailable
from coloop.models.adapter_folder import ADAPTER_FILES, BASE_FOLDER, CONFIG, is_adapter

PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.h5", "*.msgpack")
INDEX: Final = "*.safetensors.index.json"
TOKENIZER_SETTINGS: Final = ("tokenizer_config.json", "special_tokens_map.json")
PLACES: Final = ("vocab", "merges", "gguf_file")
"""Fields of a tokenizer's config that hold words, or as a text a path to them."""
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


def check_tokenizer(file: Path) -> None:
    """Raises `ModelUnavailable` where a file of `TOKENIZER_SETTINGS` names anything that would be
    opened in the place of what stands beside it."""
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
        fields = dict(told.items())
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ModelUnavailable(f"{file} holds no settings of a tokenizer: {error!r}") from error
    for name, value in fields.items():
        if name == "fast_tokenizer_files":
            _require_beside(file, value)
        elif _is_opened(name, value, is_map=file.name == TOKENIZER_SETTINGS[1]):
            raise ModelUnavailable(
                f"{file} names `{name}`, which may be a file elsewhere; take it out of there"
            )


def _is_opened(name: str, value: object, *, is_map: bool) -> bool:
    """Whether a library hands a field on to what opens files. Fields such as `tokenizer_file` count
    in the map of tokens alone: in the config older tools left them behind, and what stands beside
    it goes before them."""
    if is_map:
        return not name.endswith(("_token", "_tokens"))
    return (name in PLACES and isinstance(value, str)) or (name == "init_inputs" and bool(value))


def _require_beside(file: Path, names: object) -> None:
    listed = names if isinstance(names, list) else [names]
    for name in listed:
        if not isinstance(name, str) or Path(name).name != name:
            raise ModelUnavailable(f"{file} names {name!r}, which is no file beside it")


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
