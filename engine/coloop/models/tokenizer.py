"""Encodes and decodes texts; the tokenizers of characters and of bytes.

A text that cannot be encoded without loss raises `RequestRefused`. Generated token ids are decoded,
and never encoded again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coloop.data.arrays import Ids
from coloop.errors import RequestRefused
from coloop.models.chats import (
    Prompt,
    Tools,
    check_known,
    encode_imitated,
    imitated_chat,
    rendered_prompt,
)


def character_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {text: number for number, text in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return _with_marks(tokenizer)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    letters = [*MARKS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {text: number for number, text in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_marks(tokenizer)


TOKENIZERS: Mapping[str, Callable[[], PreTrainedTokenizerFast]] = {
    "characters": character_tokenizer,
    "bytes": byte_tokenizer,
}


def _with_marks(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def encode_prompt(
    tokenizer: PreTrainedTokenizerFast, prompt: Prompt, tools: Tools = None
) -> list[int]:
    """Token ids of a prompt, never empty; a chat is rendered by the template, with its tools."""
    if isinstance(prompt, str):
        text = prompt
        ids = _ids(tokenizer, text, special=True)
    else:
        text = rendered_prompt(tokenizer, prompt, tools)
        ids = _ids(tokenizer, text, special=False)  # the template writes its own marks
    if ids:
        return ids
    start = tokenizer.bos_token_id
    if start is None:
        raise RequestRefused("the prompt is empty, and the tokenizer has no token to start from")
    return [start]


def encode_chat(
    tokenizer: PreTrainedTokenizerFast,
    prompt: Prompt,
    target: Sequence[Mapping[str, Any]],
    tools: Tools = None,
) -> tuple[list[int], list[bool]]:
    """Token ids of a prompt and the chat that follows, and a mask of the tokens of `target` to
    train on."""
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    text, spans = imitated_chat(tokenizer, before, target, tools)
    ids, mask = encode_imitated(tokenizer, text, spans)
    if not any(mask):
        raise RequestRefused("the assistant's messages are empty in the chat to be imitated")
    return ids, mask


def encode_text(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """Token ids of a text within others, so without special tokens around it."""
    return _ids(tokenizer, text, special=False)


def encode_completion(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """Token ids of a target text, ending with the end-of-text token if there is one."""
    ids, end = encode_text(tokenizer, text), tokenizer.eos_token_id
    return ids if end is None or ids[-1:] == [end] else [*ids, end]


def decode(tokenizer: PreTrainedTokenizerFast, token_ids: Ids | Sequence[int]) -> str:
    """The text of token ids, without special tokens such as the end of text."""
    ids = token_ids if isinstance(token_ids, list) else np.asarray(token_ids).tolist()
    if _decodes_plainly(type(tokenizer)):
        return tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=True)  # type: ignore[no-any-return]
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


UNFINISHED = "\ufffd"
"""What a tokenizer decodes an incomplete character to."""


def pieces(tokenizer: PreTrainedTokenizerFast, token_ids: Ids | Sequence[int]) -> list[str]:
    """The text of each token, special ones included; a character of several tokens is at the last
    one."""
    ids = [int(token) for token in token_ids]
    texts: list[str] = []
    start, known = 0, ""  # the previous token is decoded again, because text depends on it
    for index in range(len(ids)):
        text = _decoded_with_marks(tokenizer, ids[start : index + 1])
        is_whole = not text.endswith(UNFINISHED) or index == len(ids) - 1
        texts.append(text[len(known) :] if is_whole else "")
        if is_whole:
            start = index
            known = _decoded_with_marks(tokenizer, ids[start : index + 1])
    return texts


def _decoded_with_marks(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


def _decodes_plainly(kind: type[PreTrainedTokenizerFast]) -> bool:
    """Whether decoding may bypass transformers, which is several times as fast."""
    plain = PreTrainedTokenizerFast
    return kind.decode is plain.decode and kind._decode is plain._decode


def _encodes_plainly(kind: type[PreTrainedTokenizerFast]) -> bool:
    """Whether encoding may bypass transformers."""
    plain = PreTrainedTokenizerFast
    return (
        kind.__call__ is plain.__call__
        and kind._encode_plus is plain._encode_plus
        and not hasattr(kind, "_switch_to_input_mode")
    )


def _is_as_it_was(backend: Tokenizer, tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether the backend neither truncates nor pads, and treats special tokens as `tokenizer`."""
    return (
        backend.truncation is None
        and backend.padding is None
        and backend.encode_special_tokens == tokenizer.split_special_tokens
    )


def vocabulary_mark(tokenizer: PreTrainedTokenizerFast) -> str:
    """A hash of the vocabulary: equal for tokenizers in which each id has the same token."""
    known = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return hashlib.blake2b(json.dumps(known).encode(), digest_size=8).hexdigest()


def _ids(tokenizer: PreTrainedTokenizerFast, text: str, *, special: bool) -> list[int]:
    backend = tokenizer.backend_tokenizer
    if _encodes_plainly(type(tokenizer)) and _is_as_it_was(backend, tokenizer):
        encoding = backend.encode(text, add_special_tokens=special)
        ids: list[int] = encoding.ids
    else:
        made = tokenizer(text, add_special_tokens=special)
        encoding, ids = made.encodings[0], made["input_ids"]
    check_known(tokenizer, text, encoding)
    start = tokenizer.bos_token_id
    is_doubled = special and start is not None and ids[:2] == [start, start]
    return ids[1:] if is_doubled and text.startswith(str(tokenizer.bos_token)) else ids


# Printable ASCII, newline and tab, the symbols of procedural tasks, and four marks in brackets that
# are no ASCII. Ids are fixed: checkpoints depend on them.

PAD, BOS, EOS, UNKNOWN = "⟨pad⟩", "⟨bos⟩", "⟨eos⟩", "⟨unk⟩"
MARKS = (PAD, BOS, EOS, UNKNOWN)
ASCII = "\n\t" + "".join(chr(code) for code in range(32, 127))
SYMBOLS = "×÷±≤≥≠≈→⇒√π∞°²³·–—‘’“”…€∧∨¬"  # noqa: RUF001 - these are the characters meant
VOCABULARY = (*MARKS, *ASCII, *SYMBOLS)

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
