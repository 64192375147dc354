"""Chats as token ids: what a policy continues, and which tokens of a conversation it is to imitate.

    system user assistant user assistant      prompt: what was said before
    -----prompt------|---------target---      target: its assistant messages are imitated
                 0000 1111111 0000 111111      mask

A template that marks what the assistant writes (`generation`) says itself which characters these
are, as it does for transformers. Of another one it is found out by rendering the chat up to each
answer and behind it; a template that writes earlier messages differently once others follow cannot
be read so, and is refused.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerFast

from coloop.errors import RequestRefused
from coloop.templates.chat import render_chat

Messages = Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]] | None
"""What the assistant may call, as JSON schemas of functions; as templates take them."""
Span = tuple[int, int]
"""Characters from, and up to."""


def rendered_prompt(
    tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools = None
) -> str:
    """A chat as text, up to where the assistant begins to write."""
    return _rendered(tokenizer, messages, tools, is_open=True)[0]


def imitated_chat(
    tokenizer: PreTrainedTokenizerFast, before: Messages, after: Messages, tools: Tools = None
) -> tuple[str, list[Span]]:
    """A conversation as text, and where in it the assistant's messages of `after` stand.

    Args:
        before: messages that are read and not imitated.

    Raises:
        RequestRefused: nothing is to be imitated, or it cannot be told where it stands.
    """
    whole = [*before, *after]
    answers = [
        place
        for place, message in enumerate(whole)
        if place >= len(before) and message.get("role") == "assistant"
    ]
    if not answers:
        raise RequestRefused(
            f"the chat of {len(after)} messages has none of the role `assistant` to imitate"
        )
    text, marked = _rendered(tokenizer, whole, tools, is_open=False)
    if marked:
        known = len(_rendered(tokenizer, before, tools, is_open=False)[1]) if before else 0
        return text, marked[known:]
    return text, [_answer_in(tokenizer, text, whole, place, tools) for place in answers]


def encode_imitated(
    tokenizer: PreTrainedTokenizerFast, text: str, spans: Sequence[Span]
) -> tuple[list[int], list[bool]]:
    """Token ids of a chat's text, and which of them are imitated: all with a character of a span.

    As `apply_chat_template(return_assistant_tokens_mask=True)` of transformers has it, but for a
    last character of several tokens, of which that marks the first alone.
    """
    encoding = tokenizer(text, add_special_tokens=False)
    ids: list[int] = encoding["input_ids"]
    mask = [False] * len(ids)
    places = encoding.encodings[0].offsets
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
    if not closed.startswith(opened) or not text.startswith(closed):
        raise RequestRefused(
            f"the chat template of {_whose(tokenizer)} writes message {place} differently where "
            "others follow, so it cannot be told which tokens to imitate; mark them in the "
            "template (`{% generation %}`), or give each answer a row of its own"
        )
    return len(opened), len(closed.rstrip())


def _rendered(
    tokenizer: PreTrainedTokenizerFast, messages: Messages, tools: Tools, *, is_open: bool
) -> tuple[str, list[Span]]:
    if tokenizer.chat_template is None:
        raise RequestRefused(
            "the prompt is a list of messages, and the model's tokenizer has no chat template;"
            " write the prompt as text (a template node can do it)"
        )
    for place, message in enumerate(messages):
        says = "content" in message or "tool_calls" in message
        if not isinstance(message.get("role"), str) or not says:
            raise RequestRefused(
                f"message {place} of the chat has no role and content, it has {sorted(message)}"
            )
    given: list[Any] | None = None if tools is None else [dict(tool) for tool in tools]
    if type(tokenizer).apply_chat_template is not PreTrainedTokenizerFast.apply_chat_template:
        # Code of its own, to which somebody said yes, writes its chats.
        own = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            tools=given,
            tokenize=False,
            add_generation_prompt=is_open,
        )
        return str(own), []
    values = {**tokenizer.special_tokens_map, "tools": given, "add_generation_prompt": is_open}
    try:
        return render_chat(tokenizer.get_chat_template(), messages, values)
    except ValueError as problem:
        raise RequestRefused(f"the chat template of {_whose(tokenizer)}: {problem}") from None


def _whose(tokenizer: PreTrainedTokenizerFast) -> str:
    return tokenizer.name_or_path or "a model made from scratch"
