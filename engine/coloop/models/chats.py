"""Chats as text and token ids: prompts to continue, and which tokens of a chat are trained on.

    system user assistant user assistant
    -----prompt------|---------target---      assistant messages of the target are trained on
                 0000 1111111 0000 111111      mask

If the chat template has `generation` marks, they say where the assistant's text is. Otherwise the
chat is rendered up to and after each answer; the template must then render earlier messages
unchanged. A template gets the same values as from transformers, but no keys that are null.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, Final

from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast

from coloop.data.chats import without_nulls
from coloop.data.templates.chat import render_chat
from coloop.errors import RequestRefused

Messages = Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]] | None
"""The tools that the assistant may call, as JSON schemas of functions."""
Span = tuple[int, int]  # characters from, and up to
CONTINUED: Final = "CONTINUE_FINAL_MESSAGE_TAG "
"""Appended to the last content, to find its end in the rendered text; as in transformers."""
PROBE: Final = "\ue000"  # a content that no generation prompt contains


TEMPLATE_KWARGS: Final = "chat_template_kwargs"
"""Key in a tokenizer's `init_kwargs` for further values of its template; saved with it."""


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
    """A chat as text, ending where the assistant's message begins; if the last message is the
    assistant's, ending after its content. Raises `RequestRefused`."""
    last = messages[-1] if messages else {}
    content, is_call = last.get("content"), bool(last.get("tool_calls"))
    if last.get("role") == "assistant" and isinstance(content, str) and content and not is_call:
        return _continued(tokenizer, messages, tools)
    return _rendered(tokenizer, messages, tools, is_open=True)[0]


def _continued(tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools) -> str:
    """A chat up to the end of its last content, as transformers' `continue_final_message`."""
    content = messages[-1]["content"]
    marked = [*messages[:-1], {**messages[-1], "content": content + CONTINUED}]
    text = _rendered(tokenizer, marked, tools, is_open=False)[0]
    end = text.rfind(CONTINUED.strip())
    if end < 0 or content.strip() not in text:
        raise RequestRefused(
            f"the chat template of {_whose(tokenizer)} does not render the content of the last "
            "message, so the assistant cannot continue it; end the prompt with a user message"
        )
    is_exact = text.startswith(CONTINUED, end)
    return text[:end] if is_exact else text[:end].rstrip()


def imitated_chat(
    tokenizer: PreTrainedTokenizerFast, before: Messages, after: Messages, tools: Tools = None
) -> tuple[str, list[Span]]:
    """A chat as text, and the spans of the assistant's messages of `after` in it; those of `before`
    are not trained on. Raises `RequestRefused` if there are none or their spans are unclear."""
    whole = [*before, *after]
    answers = [
        index
        for index, message in enumerate(whole)
        if index >= len(before) and message.get("role") == "assistant"
    ]
    if not answers:
        raise RequestRefused(
            f"the chat of {len(after)} messages has no message of the role `assistant` to imitate"
        )
    text, marked = _rendered(tokenizer, whole, tools, is_open=False)
    if marked:
        known = len(_rendered(tokenizer, before, tools, is_open=False)[1]) if before else 0
        return text, marked[known:]
    return text, [_answer_in(tokenizer, text, whole, index, tools) for index in answers]


def encode_imitated(
    tokenizer: PreTrainedTokenizerFast, text: str, spans: Sequence[Span]
) -> tuple[list[int], list[bool]]:
    """Token ids of a text, and a mask of the tokens that overlap a span.

    As transformers' `return_assistant_tokens_mask`, except that this marks only the first token of
    a span's last character.
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
    tokenizer: PreTrainedTokenizerFast, text: str, whole: Messages, index: int, tools: Tools
) -> Span:
    """The span of a message in the text of a chat, including its end mark."""
    opened = _rendered(tokenizer, whole[:index], tools, is_open=True)[0]
    closed = _rendered(tokenizer, whole[: index + 1], tools, is_open=False)[0]
    if not text.startswith(closed):
        raise RequestRefused(
            f"the chat template of {_whose(tokenizer)} renders message {index} differently if "
            "others follow, so the tokens to imitate cannot be determined; mark them in the "
            "template (`{% generation %}`), or give each answer its own row"
        )
    start = len(opened)
    if not closed.startswith(opened):
        start = _written_start(tokenizer, opened, closed, whole[:index], tools)
    return start, len(closed.rstrip())


def _written_start(
    tokenizer: PreTrainedTokenizerFast, opened: str, closed: str, before: Messages, tools: Tools
) -> int:
    """Start of an answer: after the common prefix of the generation prompt and any answer."""
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


def _common(left: str, right: str) -> int:
    return sum(takewhile(bool, map(eq, left, right)))


def _rendered(
    tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools, *, is_open: bool
) -> tuple[str, list[Span]]:
    if tokenizer.chat_template is None:
        raise RequestRefused(
            "the prompt is a list of messages, but the model's tokenizer has no chat template; "
            "write the prompt as text (a template node can do it)"
        )
    for index, message in enumerate(messages):
        says = "content" in message or "tool_calls" in message
        if not isinstance(message.get("role"), str) or not says:
            raise RequestRefused(
                f"message {index} of the chat has no role and content, it has {sorted(message)}"
            )
    kwargs: dict[str, Any] = tokenizer.init_kwargs.get(TEMPLATE_KWARGS) or {}
    plain_messages: list[dict[str, Any]] = without_nulls(messages)
    given: list[Any] | None = None if tools is None else without_nulls(tools)
    if type(tokenizer).apply_chat_template is not PreTrainedTokenizerFast.apply_chat_template:
        # A tokenizer with code of its own (`trust_remote_code`) renders its chats itself.
        own = tokenizer.apply_chat_template(
            plain_messages, tools=given, tokenize=False, add_generation_prompt=is_open, **kwargs
        )
        return str(own), []
    values = {
        **tokenizer.special_tokens_map,
        **kwargs,
        "tools": given,
        "add_generation_prompt": is_open,
    }
    try:
        return render_chat(tokenizer.get_chat_template(tools=given), plain_messages, values)
    except ValueError as problem:
        raise RequestRefused(f"the chat template of {_whose(tokenizer)}: {problem}") from None


def check_known(tokenizer: PreTrainedTokenizerFast, text: str, encoding: Encoding) -> None:
    """Raise `RequestRefused` for a character without a token.

    The unknown token may also be a special token, such as `<|endoftext|>`; where the text contains
    that, or the tokenizer adds it, it does not count.
    """
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown not in encoding.ids:
        return
    for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        written = text[start:end]
        if token == unknown and start < end and written.strip() != tokenizer.unk_token:
            shown = text if len(text) <= 60 else f"{text[:57]}..."
            raise RequestRefused(
                f"the tokenizer has no token for {written!r} in the text {shown!r}"
            )


def _whose(tokenizer: PreTrainedTokenizerFast) -> str:
    return tokenizer.name_or_path or "a model from scratch"


Prompt = str | Sequence[Mapping[str, Any]]
"""Text, or a chat: a list of messages with `role` and `content`."""
