"""Language models and their tokenizers: made from scratch, loaded from folders, saved again.

Knows the `model` section of the spec; nothing of learning, generation or rows.
"""

from coloop.models.build import DTYPES, LoadedModel, build_model, copy_model, dtype_of, positions_of
from coloop.models.fingerprint import fingerprint
from coloop.models.folder import link_folder, load_weights, read_weights, save_hf
from coloop.models.heads import SCORE, has_words, score_head, with_head
from coloop.models.outline import filled, outline_of
from coloop.models.tokenizer import (
    Prompt,
    character_tokenizer,
    decode,
    encode_completion,
    encode_prompt,
    encode_text,
    vocabulary_mark,
)

__all__ = [
    "DTYPES",
    "SCORE",
    "LoadedModel",
    "Prompt",
    "build_model",
    "character_tokenizer",
    "copy_model",
    "decode",
    "dtype_of",
    "encode_completion",
    "encode_prompt",
    "encode_text",
    "filled",
    "fingerprint",
    "has_words",
    "link_folder",
    "load_weights",
    "outline_of",
    "positions_of",
    "read_weights",
    "save_hf",
    "score_head",
    "vocabulary_mark",
    "with_head",
]
