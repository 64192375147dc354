"""Loads models from a folder, also in the cache of the hub; safetensors only, because a pickle can
run code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from coloop.errors import ModelUnavailable
from coloop.models.folder import ADAPTER_FILES, BASE_FOLDER, CONFIG, is_adapter, merged_weights
from coloop.models.heads import SCORE
from coloop.models.on_disk import damage_in_checkpoint, damage_of_weights, kind_of, without_bars
from coloop.models.waiting import WeightsToCome, build_without_weights, load_score_heads
from coloop.spec import presets
from coloop.spec.hub_cache import HUB_ID, cache_dir, missing_in
from coloop.spec.model_folders import folder_of


def load_pretrained(
    path: str,
    root: Path,
    *,
    dtype: torch.dtype,
    revision: str | None = None,
    trust_remote_code: bool = False,
    may_wait: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast, WeightsToCome | None]:
    """Model and tokenizer of a folder or hub id; an adapter is merged with its base. Relative paths
    start at `root`. With `may_wait`, the model is on `meta` if possible, and the last result reads
    its weights; otherwise that is None. Raises `ModelUnavailable`."""
    source = find_source(path, root, revision=revision)
    if (damage := damage_in_checkpoint(source)) is not None:
        raise ModelUnavailable(f"{damage}; start from another checkpoint")
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    held = source / BASE_FOLDER if is_adapter(source) else source
    try:
        config = AutoConfig.from_pretrained(source, **options)
        tokenizer = _tokenizer_of(source, options)
        kind = kind_of(config)
        if may_wait and not trust_remote_code:
            waiting = build_without_weights(kind, config, held, source, dtype=dtype)
            if waiting is not None:
                return waiting[0], _fast(tokenizer, path), waiting[1]
        if held is not source:
            options["config"] = config
        with without_bars(), torch.random.fork_rng(devices=[]):
            model, told = kind.from_pretrained(
                held, dtype=dtype, use_safetensors=True, output_loading_info=True, **options
            )
        _check_whole(told)
        load_score_heads(model, held, source)
        if held is not source:
            _merge(model, source)
    except (OSError, ValueError, ImportError, SafetensorError, RuntimeError) as error:
        raise ModelUnavailable(_reason(source, error)) from error
    return model, _fast(tokenizer, path), None


def _check_whole(told: Mapping[str, Iterable[str]]) -> None:
    """Raise `ValueError` if weights other than score heads are missing. `told`: the loading info of
    transformers."""
    missing = sorted(name for name in told["missing_keys"] if not name.startswith(f"{SCORE}."))
    if missing:
        count = f"{len(missing)} weights are" if len(missing) > 1 else "a weight is"
        named = f"{missing[0]} among them" if len(missing) > 1 else missing[0]
        raise ValueError(
            f"{count} missing from its files, {named}; copy or save the whole model again"
        )


def load_outline(
    path: str, root: Path, *, revision: str | None = None, trust_remote_code: bool = False
) -> tuple[PretrainedConfig, PreTrainedTokenizerFast]:
    """Config and tokenizer of a model; its files need not contain weights."""
    source = find_source(path, root, revision=revision, has_weights=False)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    try:
        config = AutoConfig.from_pretrained(source, **options)
        tokenizer = _tokenizer_of(source, options)
    except (OSError, ValueError, ImportError) as error:
        raise ModelUnavailable(_reason(source, error)) from error
    return config, _fast(tokenizer, path)


def _tokenizer_of(source: Path, options: Mapping[str, Any]) -> Any:
    for name in TOKENIZER_SETTINGS:
        if (source / name).is_file():
            check_tokenizer(source / name)
    return AutoTokenizer.from_pretrained(source, **options)


def _fast(tokenizer: Any, path: str) -> PreTrainedTokenizerFast:
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelUnavailable(
            f"the tokenizer of {path!r} has no tokenizer.json (a fast tokenizer)"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@torch.no_grad()
def _merge(model: PreTrainedModel, folder: Path) -> None:
    named = dict(model.named_parameters(remove_duplicate=False))
    for name, weight in merged_weights(folder):
        if name in named:
            named[name].copy_(weight)


def find_source(
    path: str, root: Path, *, revision: str | None = None, has_weights: bool = True
) -> Path:
    """The folder of a path, or of what was downloaded of a hub id; raises `ModelUnavailable`.
    `has_weights`: check that the folder has them."""
    folder = folder_of(path, root, revision)
    if folder.is_dir():
        if has_weights:
            _check_downloaded(path, folder)
            check_folder(folder)
            _check_lengths(folder)
        return folder
    if folder.exists():
        raise ModelUnavailable(f"model.path {path!r} is a file; the folder around it is expected")
    if path in {known.name for known in presets.packaged_models()}:
        raise ModelUnavailable(
            f"model.path {path!r}: there is no folder {folder}; `coloop models add {path}` makes it"
        )
    if HUB_ID.match(path) is None:
        raise ModelUnavailable(f"model.path {path!r}: there is no folder {folder}")
    at = "" if revision is None else f" --revision {revision}"
    raise ModelUnavailable(
        f"model.path {path!r}: there is no folder {folder}, and nothing of this hub id has been "
        f"downloaded; `coloop models download {path}{at}` does it"
    )


def _check_downloaded(path: str, folder: Path) -> None:
    """Raise `ModelUnavailable` if a download into the cache of the hub has not ended."""
    if folder.is_relative_to(cache_dir()) and (missing := missing_in(folder)) is not None:
        raise ModelUnavailable(
            f"model.path {path!r}: its download has not ended, {missing} is missing; "
            f"`coloop models download {path}` continues it"
        )


def _check_lengths(folder: Path) -> None:
    for path in sorted(
        {*folder.glob("*.safetensors"), *folder.glob(f"{BASE_FOLDER}/*.safetensors")}
    ):
        if (damage := damage_of_weights(path)) is not None:
            raise ModelUnavailable(f"{damage}; copy or download it again")


def _reason(source: Path, error: Exception) -> str:
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"the model in {source} cannot be loaded: {first_line}"


# Model folders that somebody else wrote may lead libraries to pickles, other models or files
# elsewhere; only safetensors and words of the folder itself are loaded.

PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.h5", "*.msgpack")
INDEX: Final = "*.safetensors.index.json"
TOKENIZER_SETTINGS: Final = ("tokenizer_config.json", "special_tokens_map.json")
PLACES: Final = ("vocab", "merges", "gguf_file")
"""Fields of a tokenizer's config that hold its vocabulary, or if a text, a path to it."""
AS_SAFETENSORS: Final = "save the model again as safetensors"


def check_folder(folder: Path) -> None:
    """Raise `ModelUnavailable` for a folder without a model, or one that is not safe to load."""
    if is_adapter(folder):
        weights = ADAPTER_FILES[1]
        if not (folder / weights).is_file():
            _refuse_pickles(folder)
            raise ModelUnavailable(f"{folder} contains no weights of an adapter: no {weights}")
        folder = folder / BASE_FOLDER
    if (folder / CONFIG).exists():
        if not (folder / "config.json").exists():
            raise ModelUnavailable(f"{folder} contains an adapter; merge it into its model first")
        raise ModelUnavailable(
            f"{folder} contains a model and also {CONFIG}, which would replace it with another "
            f"model; remove {CONFIG} from the folder, or merge the adapter into its model first"
        )
    if not (folder / "config.json").exists():
        raise ModelUnavailable(f"{folder} is not a model in Hugging Face format: no config.json")
    for index in sorted(folder.glob(INDEX)):
        check_index(index)
    if not any(folder.glob("*.safetensors")):
        _refuse_pickles(folder)
        raise ModelUnavailable(f"{folder} contains no weights: no *.safetensors")


def check_index(index: Path) -> None:
    """Raise `ModelUnavailable` if an index names anything but safetensors files beside it."""
    try:
        told: Any = json.loads(index.read_text(encoding="utf-8"))
        files = set(told["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelUnavailable(f"{index} is not an index of weights: {error!r}") from error
    for name in sorted(files, key=str):
        if not isinstance(name, str) or Path(name).name != name:
            raise ModelUnavailable(
                f"{index} names {name!r}, which is not a file beside it; {AS_SAFETENSORS}"
            )
        if not name.endswith(".safetensors"):
            raise ModelUnavailable(
                f"{index} names {name}, which may be a pickle that could run any code when"
                f" loaded; {AS_SAFETENSORS}"
            )


def check_tokenizer(file: Path) -> None:
    """Raise `ModelUnavailable` if tokenizer settings name a file in another folder."""
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
        fields = dict(told.items())
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ModelUnavailable(f"{file} contains no settings of a tokenizer: {error!r}") from error
    for name, value in fields.items():
        if name == "fast_tokenizer_files":
            _require_beside(file, value)
        elif _is_opened(name, value, is_map=file.name == TOKENIZER_SETTINGS[1]):
            raise ModelUnavailable(
                f"{file} names `{name}`, which may be a file elsewhere; remove that entry"
            )


def _is_opened(name: str, value: object, *, is_map: bool) -> bool:
    """Whether a field may name a file to open. `is_map`: in special_tokens_map.json, where all
    fields may but those of tokens."""
    if is_map:
        return not name.endswith(("_token", "_tokens"))
    return (name in PLACES and isinstance(value, str)) or (name == "init_inputs" and bool(value))


def _require_beside(file: Path, names: object) -> None:
    listed = names if isinstance(names, list) else [names]
    for name in listed:
        if not isinstance(name, str) or Path(name).name != name:
            raise ModelUnavailable(f"{file} names {name!r}, which is not a file beside it")


def _refuse_pickles(folder: Path) -> None:
    pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
    if pickles:
        raise ModelUnavailable(
            f"{folder} has its weights in {pickles[0]}, a pickle that could run any code when "
            f"loaded; {AS_SAFETENSORS}"
        )
