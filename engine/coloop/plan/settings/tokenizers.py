"""Which tokenizer a node's model has, as far as the loop and local files tell."""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from coloop.errors import PresetNotFound
from coloop.plan.settings.facts import origin_of
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.model import PretrainedModel, ScratchModel
from coloop.spec.nodes import model_of

LARGEST_FILE_BYTES = 64 * 2**20
PADDING = 1000
"""Vocabularies of one tokenizer are padded to sizes that differ by less than this."""


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    kind: Literal["built-in", "file", "published"]
    """Built into coloop, read from a `tokenizer.json`, or of a published model, of which only the
    size of the vocabulary is known."""
    mark: str
    size: int
    name: str
    """In words, for messages."""

    def may_equal(self, other: "TokenizerFacts") -> bool:
        """False only where the two are known to differ."""
        if self.kind == other.kind == "published":
            return abs(self.size - other.size) < PADDING
        if "published" in (self.kind, other.kind):
            return "built-in" not in (self.kind, other.kind) and self._is_near(other)
        return self.mark == other.mark or self.kind != other.kind

    def _is_near(self, other: "TokenizerFacts") -> bool:
        return abs(self.size - other.size) < PADDING


def tokenizer_of(spec: LoopSpec, node: str, root: Path | None) -> TokenizerFacts | None:
    """None where nothing is known. Without `root` no file is read."""
    origin = origin_of(spec, node)
    model = None if origin is None else model_of(spec.nodes[origin])
    try:
        match model:
            case ScratchModel():
                name = presets.model(model.architecture).tokenizer
                return TokenizerFacts("built-in", name, 0, f"`{name}` (built into coloop)")
            case PretrainedModel():
                return _of_folder(model.path, root) or _published(model.path)
    except PresetNotFound:
        pass
    return None


def _published(path: str) -> TokenizerFacts:
    size = int(presets.architecture(path)["vocab_size"])
    return TokenizerFacts("published", path, size, f"that of `{path}` ({size:,} tokens)")


def _of_folder(path: str, root: Path | None) -> TokenizerFacts | None:
    if root is None:
        return None
    file = root / os.path.expanduser(path) / "tokenizer.json"
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE_BYTES:
            return None
        return _of_file(file, file.stat().st_mtime_ns, path)
    except OSError:
        return None


@lru_cache(maxsize=16)
def _of_file(file: Path, changed: int, path: str) -> TokenizerFacts | None:
    del changed
    try:
        content = json.loads(file.read_bytes())
        vocabulary = content["model"]["vocab"]
        pairs = vocabulary.items() if isinstance(vocabulary, dict) else enumerate(vocabulary)
        known = [[str(one), other] for one, other in pairs]
        added = [[token["content"], token["id"]] for token in content.get("added_tokens", ())]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        return None
    every = sorted(map(json.dumps, {json.dumps(pair): pair for pair in (*known, *added)}.values()))
    mark = hashlib.blake2b("\n".join(every).encode(), digest_size=8).hexdigest()
    return TokenizerFacts("file", mark, len(every), f"that of `{path}` ({len(every):,} tokens)")
