"""Plain data to YAML text, in the style of the examples: short plain mappings on one line, others
in blocks, so that what is found wrong in a loop has a line of its own.

What is written reads back as the same data under YAML 1.2 and 1.1 alike: words that either takes
for something else are quoted, and every float has a dot.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

WIDTH = 100
NESTED_WIDTH = 40
"""A collection of collections is written on one line up to this length; so values have lines."""

_PLAIN = re.compile(r"[A-Za-z0-9_./+<>()$^@%-][A-Za-z0-9_./+<>()$^@%=;~ -]*")
_NOT_TEXT = re.compile(
    r"[-+]?(\.[0-9]|[0-9])[0-9_.,:]*([eE][-+]?[0-9]+)?|0[xob][0-9a-fA-F_]+|[-+]?\.(inf|nan)"
    r"|~|null|true|false|yes|no|on|off|y|n|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|<<|=",
    re.IGNORECASE,
)
_LITERAL_SAFE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\r\t]*")


def to_yaml(document: dict[str, Any]) -> str:
    """A whole document, top-level keys in blocks."""
    return "".join(block_entry(key, value, 0) for key, value in document.items())


def block_entry(key: str, value: Any, indent: int) -> str:
    """One `key: value` of a block mapping, with its newline."""
    head = " " * indent + scalar(key) + ":"
    if isinstance(value, str) and is_literal(value):
        return f"{head} {literal(value, indent + 2)}"
    if isinstance(value, (dict, list)) and value and not _on_one_line(value, len(head) + 1, indent):
        return f"{head}\n{block(value, indent + 2)}"
    return f"{head} {flow(value)}\n"


def block_item(value: Any, indent: int) -> str:
    """One `- value` of a block sequence, with its newline."""
    head = " " * indent + "- "
    if isinstance(value, dict) and value and not _on_one_line(value, len(head), indent + 1):
        text = block(value, indent + 2)
        return head + text[indent + 2 :]
    if isinstance(value, str) and is_literal(value):
        return head + literal(value, indent + 2)
    if isinstance(value, list) and value and not _on_one_line(value, len(head), indent + 1):
        return head.rstrip() + "\n" + block(value, indent + 2)
    return f"{head}{flow(value)}\n"


def block(value: dict[str, Any] | list[Any], indent: int) -> str:
    """A mapping or list in block style, every line indented."""
    if isinstance(value, dict):
        return "".join(block_entry(key, item, indent) for key, item in value.items())
    return "".join(block_item(item, indent) for item in value)


def _on_one_line(value: Any, used: int, indent: int) -> bool:
    """Whether a collection is short and simple enough for one line; the top level never is."""
    if indent == 0 and isinstance(value, dict) and any(isinstance(v, dict) for v in value.values()):
        return False
    width = WIDTH if is_leaf(value) else used + NESTED_WIDTH
    return not _holds_literal(value) and used + len(flow(value)) <= min(width, WIDTH)


def is_leaf(value: Any) -> bool:
    """Whether a value contains no mapping, so that one line is enough."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not any(isinstance(item, dict) or not is_leaf(item) for item in items)


def _holds_literal(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_literal(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_literal(item) for item in value)
    return isinstance(value, str) and is_literal(value)


def flow(value: Any) -> str:
    match value:
        case dict():
            inside = ", ".join(f"{scalar(key)}: {flow(item)}" for key, item in value.items())
            return "{" + inside + "}"
        case list() | tuple():
            return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """A single value on one line, safe inside of brackets."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return number(value)
    text = str(value)
    is_plain = _PLAIN.fullmatch(text) and not _NOT_TEXT.fullmatch(text) and _is_calm(text)
    return text if is_plain else quoted(text)


def _is_calm(text: str) -> bool:
    """Whether plain text needs no quotes: no indicator, trailing space or structure."""
    starts_badly = text[0] in "-<>%@" and not re.match(r"-[A-Za-z]", text)
    return not (starts_badly or text.endswith((" ", ":")) or "- " in text[:2])


def number(value: float) -> str:
    """A float with a dot, so that no reader takes it for text: `1.0e-06` as `1.0e-6`."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    mantissa = mantissa if "." in mantissa else mantissa + ".0"
    return f"{mantissa}e{'-' if int(exponent) < 0 else '+'}{abs(int(exponent))}"


def quoted(text: str) -> str:
    body = json.dumps(text, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]",
        lambda m: f"\\u{ord(m[0]):04x}",
        body,
    )


def is_literal(text: str) -> bool:
    if "\n" not in text.rstrip("\n") or not _LITERAL_SAFE.fullmatch(text):
        return False
    lines = text.split("\n")
    return not lines[0].startswith(" ") and bool(lines[0].strip()) and not text.endswith("\n\n")


def literal(text: str, indent: int) -> str:
    """A block scalar with its newline; the header goes behind the key."""
    header = "|" if text.endswith("\n") else "|-"
    lines = text.removesuffix("\n").split("\n")
    return header + "\n" + "".join((" " * indent + line if line else "") + "\n" for line in lines)
