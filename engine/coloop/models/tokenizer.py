"""Texts to token ids and back: tokenizers of characters and of bytes, rules for every tokenizer.

Invariant: what cannot be encoded without loss is an error; token ids that a policy wrote are
decoded, never encoded again.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, Final

import numpy as np
from tokenizers import Encoding, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coloop.data.arrays import Ids
from coloop.data.chats import without_nulls
from coloop.data.templates.chat import render_chat
from coloop.errors import RequestRefused

# Chats as token ids: what a policy continues, and which tokens it imitates.
#     system user assistant user assistant      prompt: what was said before
#     -----prompt------|---------target---      target: its assistant messages are imitated
#                  0000 1111111 0000 111111      mask
# A template with `generation` marks says which characters these are; of another one it is found out
# by rendering the chat up to and behind each answer, which earlier messages must survive. A
# template gets what transformers gives it, without null keys (Arrow has those of all tools'
# schemas).

Messages = Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]] | None
"""What the assistant may call, as JSON schemas of functions; as templates take them."""
Span = tuple[int, int]  # characters from, and up to
CONTINUED: Final = "CONTINUE_FINAL_MESSAGE_TAG "
"""Stands behind a content that the assistant goes on with, to find its end; as in transformers."""
PROBE: Final = "\ue000"  # a content with which no generation prompt goes on


TEMPLATE_KWARGS: Final = "chat_template_kwargs"
"""Where a tokenizer keeps further values for its template; it is saved with it."""


def set_template(
    tokenizer: PreTrainedTokenizerFast, template: str | None, kwargs: Mapping[str, Any]
) -> None:
    if template is not None:
        tokenizer.chat_template = template
    if kwargs:
        tokenizer.init_kwargs[TEMPLATE_KWARGS] = dict(kwargs)


def rendered_prompt(
    tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools = None
) -> str:
    """A chat as text up to where the assistant writes, or continues its last message."""
    last = messages[-1] if messages else {}
    content, is_call = last.get("content"), bool(last.get("tool_calls"))
    if last.get("role") == "assistant" and isinstance(content, str) and content and not is_call:
        return _continued(tokenizer, messages, tools)
    return _rendered(tokenizer, messages, tools, is_open=True)[0]


def _continued(tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools) -> str:
    """A chat up to its last content, as transformers' `continue_final_message` cuts it."""
    said = messages[-1]["content"]
    marked = [*messages[:-1], {**messages[-1], "content": said + CONTINUED}]
    text = _rendered(tokenizer, marked, tools, is_open=False)[0]
    place = text.rfind(CONTINUED.strip())
    if place < 0 or said.strip() not in text:
        raise RequestRefused(
            f"the chat template of {_whose(tokenizer)} does not render the content of the last "
            "message, so the assistant cannot continue it; end the prompt with a user message"
        )
    is_exact = text.startswith(CONTINUED, place)
    return text[:place] if is_exact else text[:place].rstrip()


def imitated_chat(
    tokenizer: PreTrainedTokenizerFast, before: Messages, after: Messages, tools: Tools = None
) -> tuple[str, list[Span]]:
    """A conversation as text, and where the assistant's messages of `after` stand in it. `before`:
    read, not imitated. Raises `RequestRefused` where there is nothing to imitate or its place is
    unclear."""
    whole = [*before, *after]
    answers = [
        place
        for place, message in enumerate(whole)
        if place >= len(before) and message.get("role") == "assistant"
    ]
    if not answers:
        raise RequestRefused(
            f"the chat of {len(after)} messages has no message of the role `assistant` to imitate"
        )
    text, marked = _rendered(tokenizer, whole, tools, is_open=False)
    if marked:
        known = len(_rendered(tokenizer, before, tools, is_open=False)[1]) if before else 0
        return text, marked[known:]
    return text, [_answer_in(tokenizer, text, whole, place, tools) for place in answers]


def encode_imitated(
    tokenizer: PreTrainedTokenizerFast, text: str, spans: Sequence[Span]
) -> tuple[list[int], list[bool]]:
    """Token ids of a chat, and which have a character of a span.

    As transformers' `return_assistant_tokens_mask`, which marks only the first of a last
    character's tokens.
    """
    made = tokenizer(text, add_special_tokens=False)
    encoding, ids = made.encodings[0], list(made["input_ids"])
    check_known(tokenizer, text, encoding)
    mask = [False] * len(ids)
    places = encoding.offsets
    for start, end in spans:
        first = bisect_left(places, start, key=lambda place: place[1] - 1)
        stop = bisect_left(places, end, key=lambda place: place[0])
        mask[first:stop] = [True] * (stop - first)
    return ids, mask


def _answer_in(
    tokenizer: PreTrainedTokenizerFast, text: str, whole: Messages, place: int, tools: Tools
) -> Span:
    """Where the message at a place stands in the text of a chat, its end mark included."""
    opened = _rendered(tokenizer, whole[:place], tools, is_open=True)[0]
    closed = _rendered(tokenizer, whole[: place + 1], tools, is_open=False)[0]
    if not text.startswith(closed):
        raise RequestRefused(
            f"the chat template of {_whose(tokenizer)} renders message {place} differently if "
            "others follow, so the tokens to imitate cannot be determined; mark them in the "
            "template (`{% generation %}`), or give each answer its own row"
        )
    start = len(opened)
    if not closed.startswith(opened):
        start = _written_start(tokenizer, opened, closed, whole[:place], tools)
    return start, len(closed.rstrip())


def _written_start(
    tokenizer: PreTrainedTokenizerFast, opened: str, closed: str, before: Messages, tools: Tools
) -> int:
    """Where an answer begins: behind what the generation prompt and any answer share."""
    probe = [*before, {"role": "assistant", "content": PROBE}]
    start = _common(opened, _rendered(tokenizer, probe, tools, is_open=False)[0])
    asked = _rendered(tokenizer, before, tools, is_open=False)[0] if before else ""
    if start < len(asked) or not closed.startswith(opened[:start]):
        raise RequestRefused(
            f"the generation prompt of the chat template of {_whose(tokenizer)} is "
            f"{opened[_common(opened, closed) :][:40]!r} where message {len(before)} of the chat "
            "has something else, so the tokens to imitate cannot be determined; mark them in the "
            "template (`{% generation %}`)"
        )
    return start


def _common(one: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, one, other)))


def _rendered(
    tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools, *, is_open: bool
) -> tuple[str, list[Span]]:
    if tokenizer.chat_template is None:
        raise RequestRefused(
            "the prompt is a list of messages, but the model's tokenizer has no chat template; "
            "write the prompt as text (a template node can do it)"
        )
    for place, message in enumerate(messages):
        says = "content" in message or "tool_calls" in message
        if not isinstance(message.get("role"), str) or not says:
            raise RequestRefused(
                f"message {place} of the chat has no role and content, it has {sorted(message)}"
            )
    kwargs: dict[str, Any] = tokenizer.init_kwargs.get(TEMPLATE_KWARGS) or {}
    said: list[dict[str, Any]] = without_nulls(messages)
    given: list[Any] | None = None if tools is None else without_nulls(tools)
    if type(tokenizer).apply_chat_template is not PreTrainedTokenizerFast.apply_chat_template:
        # Code of its own, to which somebody said yes, writes its chats.
        own = tokenizer.apply_chat_template(
            said, tools=given, tokenize=False, add_generation_prompt=is_open, **kwargs
        )
        return str(own), []
    values = {
        **tokenizer.special_tokens_map,
        **kwargs,
        "tools": given,
        "add_generation_prompt": is_open,
    }
    try:
        return render_chat(tokenizer.get_chat_template(tools=given), said, values)
    except ValueError as problem:
        raise RequestRefused(f"the chat template of {_whose(tokenizer)}: {problem}") from None


def check_known(tokenizer: PreTrainedTokenizerFast, text: str, encoding: Encoding) -> None:
    """Raises `RequestRefused` for a character without a token.

    The unknown token may be a mark as well, such as `<|endoftext|>`: written in the text or put
    around it, it is known.
    """
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown not in encoding.ids:
        return
    for one, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        written = text[start:end]
        if one == unknown and start < end and written.strip() != tokenizer.unk_token:
            shown = text if len(text) <= 60 else f"{text[:57]}..."
            raise RequestRefused(
                f"the tokenizer has no token for {written!r} in the text {shown!r}"
            )


def _whose(tokenizer: PreTrainedTokenizerFast) -> str:
    return tokenizer.name_or_path or "a model from scratch"


Prompt = str | Sequence[Mapping[str, Any]]
"""Text, or a chat: a list of messages with `role` and `content`."""


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
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
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
    """The ids that a policy continues, never empty; a chat by the template, with its tools."""
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
    """The ids of a prompt and the conversation behind it, and which of `target` are imitated."""
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    text, spans = imitated_chat(tokenizer, before, target, tools)
    ids, mask = encode_imitated(tokenizer, text, spans)
    if not any(mask):
        raise RequestRefused("the assistant's messages are empty in the chat to be imitated")
    return ids, mask


def encode_text(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The ids of a text in the middle of others: no marks before or behind it."""
    return _ids(tokenizer, text, special=False)


def encode_completion(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The ids of a text that a policy shall write, with an end of text."""
    ids, end = encode_text(tokenizer, text), tokenizer.eos_token_id
    return ids if end is None or ids[-1:] == [end] else [*ids, end]


def decode(tokenizer: PreTrainedTokenizerFast, token_ids: Ids | Sequence[int]) -> str:
    """The text of token ids, without marks such as the end of text."""
    ids = token_ids if isinstance(token_ids, list) else np.asarray(token_ids).tolist()
    if _decodes_plainly(type(tokenizer)):
        return tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=True)
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


UNFINISHED = "\ufffd"
"""What a tokenizer says of bytes that are no whole character yet."""


def pieces(tokenizer: PreTrainedTokenizerFast, token_ids: Ids | Sequence[int]) -> list[str]:
    """The text of each token, marks included; a character of several tokens is at the last one."""
    ids = [int(one) for one in token_ids]
    found: list[str] = []
    start, known = 0, ""  # what is decoded again, so that a token knows what stands before it
    for place in range(len(ids)):
        text = _decoded_with_marks(tokenizer, ids[start : place + 1])
        is_whole = not text.endswith(UNFINISHED) or place == len(ids) - 1
        found.append(text[len(known) :] if is_whole else "")
        if is_whole:
            start = place
            known = _decoded_with_marks(tokenizer, ids[start : place + 1])
    return found


def _decoded_with_marks(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


def _decodes_plainly(kind: type[PreTrainedTokenizerFast]) -> bool:
    """Whether its library's tokenizer alone decodes it, which is several times as fast."""
    plain = PreTrainedTokenizerFast
    return kind.decode is plain.decode and kind._decode is plain._decode


def _encodes_plainly(kind: type[PreTrainedTokenizerFast]) -> bool:
    """The same of the way from texts to ids."""
    plain = PreTrainedTokenizerFast
    return (
        kind.__call__ is plain.__call__
        and kind._encode_plus is plain._encode_plus
        and not hasattr(kind, "_switch_to_input_mode")
    )


def _is_as_it_was(backend: Tokenizer, tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether the library's tokenizer neither cuts nor pads, and reads marks as it is told to."""
    return (
        backend.truncation is None
        and backend.padding is None
        and backend.encode_special_tokens == tokenizer.split_special_tokens
    )


def vocabulary_mark(tokenizer: PreTrainedTokenizerFast) -> str:
    """What two tokenizers share when, and practically only when, each id means the same in both."""
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
