"""Chats, lists of messages with `role` and `content`: validation, normalization, display as text.

For a model, a chat is rendered by its chat template, see models/tokenizer.py.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, Final

TEXT_PART: Final = "text"


def is_chat(value: Any) -> bool:
    """Whether a value is a non-empty list of messages, each with `role` and `content` or
    `tool_calls`."""
    return isinstance(value, list) and bool(value) and all(map(_is_message, value))


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
        return False
    return "content" in value or "tool_calls" in value


def chat_problem(value: Any) -> str | None:
    """What is wrong with a chat after `joined_parts`; None if it is valid."""
    if not isinstance(value, list):
        return "must be a text or a list of messages"
    if not value:
        return "needs at least one message"
    for index, message in enumerate(value):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "needs messages with a `role` and a `content`"
        content = message.get("content")
        if isinstance(message.get("tool_calls"), list) and content is None:
            continue  # the message is its calls
        if isinstance(content, list):
            return _part_problem(index, message["role"], content)
        if not isinstance(content, str):
            return f"needs a text as `content` of the {message['role']} message"
    return None


def _part_problem(index: int, role: str, parts: Sequence[Any]) -> str:
    what = f"message {index} ({role})"
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind is not None and kind != TEXT_PART:
            return f"has a part of type `{kind}` in {what}; models only read parts of type `text`"
    return f'has a part without text in {what}; a part is {{"type": "text", "text": ...}}'


def joined_parts(chat: Any) -> Any:
    """A chat with contents that are lists of text parts joined to texts; other values unchanged."""
    if not isinstance(chat, list):
        return chat
    joined = [_with_joined_parts(message) for message in chat]
    return joined if any(new is not old for new, old in zip(joined, chat, strict=True)) else chat


def _with_joined_parts(message: Any) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not content:
        return message
    texts = [_text_of(part) for part in content]
    if any(text is None for text in texts):
        return message
    return {**message, "content": "".join(text for text in texts if text is not None)}


def _text_of(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type", TEXT_PART) != TEXT_PART:
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def has_answer(chat: Sequence[Mapping[str, Any]]) -> bool:
    return any(message.get("role") == "assistant" for message in chat)


def plain_answer(value: Any) -> Any:
    """The text of a chat that is a single assistant message; anything else unchanged."""
    if is_chat(value) and len(value) == 1 and not value[0].get("tool_calls"):
        return value[0].get("content")
    return value


def shared_messages(chat: Sequence[Any], other: Sequence[Any]) -> int:
    """Length of the common prefix of two chats; each keeps at least one message of its own."""
    same = takewhile(bool, map(eq, chat[:-1], other[:-1]))
    return sum(same)


def without_nulls(value: Any) -> Any:
    """Messages or tools without keys whose value is null, at any depth: Arrow gives all structs of
    a column the same fields. A null `content` beside `tool_calls` stays, because chat templates
    read it."""
    if isinstance(value, Mapping):
        is_call = value.get("tool_calls") is not None
        return {
            name: without_nulls(item)
            for name, item in value.items()
            if item is not None or (name == "content" and is_call)
        }
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value]
    return value


def has_nulls(value: Any) -> bool:
    if isinstance(value, Mapping):
        is_call = value.get("tool_calls") is not None
        return any(
            has_nulls(item) if item is not None else not (name == "content" and is_call)
            for name, item in value.items()
        )
    return isinstance(value, list | tuple) and any(has_nulls(item) for item in value)


def written_chat(chat: Sequence[Mapping[str, Any]]) -> str:
    """A chat as text: the content of its only message, or `role: content` for each message, with a
    blank line between messages."""
    if len(chat) == 1 and not chat[0].get("tool_calls"):
        return _said(chat[0])
    return "\n\n".join(f"{message['role']}: {_said(message)}" for message in chat)


def _said(message: Mapping[str, Any]) -> str:
    content = joined_parts([dict(message)])[0].get("content")
    parts = [] if content in (None, "") else [written_value(content)]
    parts += [written_value(call) for call in message.get("tool_calls") or ()]
    return "\n".join(parts)


def written_value(value: Any) -> str:
    """A value as text: a text unchanged, a chat as by `written_chat`, other values as JSON."""
    if isinstance(value, str):
        return value
    return (
        written_chat(value)
        if is_chat(value)
        else json.dumps(value, ensure_ascii=False, default=str)
    )
