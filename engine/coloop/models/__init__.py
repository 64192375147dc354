"""Language models and their tokenizers: made from scratch, loaded from folders, saved again.

Knows the `model` section of the spec; nothing of learning, generation or rows.
"""

from coloop.models.adapter_folder import (
    BASE_FOLDER,
    is_adapter,
    merged_weights,
    read_adapter,
    save_adapter,
    weights_in,
)
from coloop.models.build import (
    DTYPES,
    LoadedModel,
    build_model,
    build_outline,
    copy_model,
    dtype_of,
    positions_of,
    vocabulary_of,
)
from coloop.models.chats import Tools
from coloop.models.folder import link_folder, load_weights, read_weights, save_hf
from coloop.models.heads import (
    ONLY,
    SCORE,
    HeadSpec,
    has_words,
    head_for,
    score_head,
    score_heads,
    score_name,
    that_write,
    with_both_heads,
    with_each_head,
    with_head,
    with_one_of,
    writing_part,
)
from coloop.models.on_disk import Conversion, from_disk, to_disk
from coloop.models.outline import filled, outline_of
from coloop.models.to_come import Place, WeightsToCome
from coloop.models.tokenizer import (
    Prompt,
    character_tokenizer,
    decode,
    encode_chat,
    encode_completion,
    encode_prompt,
    encode_text,
    pieces,
    vocabulary_mark,
)

__all__ = [
    "BASE_FOLDER",
    "DTYPES",
    "ONLY",
    "SCORE",
    "Conversion",
    "HeadSpec",
    "LoadedModel",
    "Place",
    "Prompt",
    "Tools",
    "WeightsToCome",
    "build_model",
    "build_outline",
    "character_tokenizer",
    "copy_model",
    "decode",
    "dtype_of",
    "encode_chat",
    "encode_completion",
    "encode_prompt",
    "encode_text",
    "filled",
    "from_disk",
    "has_words",
    "head_for",
    "is_adapter",
    "link_folder",
    "load_weights",
    "merged_weights",
    "outline_of",
    "pieces",
    "positions_of",
    "read_adapter",
    "read_weights",
    "save_adapter",
    "save_hf",
    "score_head",
    "score_heads",
    "score_name",
    "that_write",
    "to_disk",
    "vocabulary_mark",
    "vocabulary_of",
    "weights_in",
    "with_both_heads",
    "with_each_head",
    "with_head",
    "with_one_of",
    "writing_part",
]
