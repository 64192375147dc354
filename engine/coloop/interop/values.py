"""Values as command lines, Hydra overrides and YAML files of other frameworks write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from coloop.errors import ImportRefused
from coloop.interop.settings import UNRESOLVED, Given
from coloop.spec.text.reader import read

NUMBER: Final = re.compile(r"[+-]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
WORDS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None", "~"), None),
}


def plain(text: str) -> Any:
    """A number, true, false or null where a text is one, else the text."""
    if text in WORDS:
        return WORDS[text]
    if NUMBER.fullmatch(text):
        number = text.replace("_", "")
        try:
            return int(number) if re.fullmatch(r"[+-]?\d+", number) else float(number)
        except ValueError:
            return text
    return text


def hydra(text: str) -> Any:
    """The value of an override: as `plain`, and lists `[a,b]`, maps `{a: 1}`, quoted texts."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text[:1] in "[{" and not UNRESOLVED.search(text):
        spaced = re.sub(r":(?=[^\s/])", ": ", text) if text.startswith("{") else text
        reading = read(spaced)
        if not reading.diagnostics:
            return reading.data
    return plain(text)


def yaml_data(text: str, what: str) -> Mapping[str, Any]:
    """The mapping of a YAML file."""
    reading = read(text)
    if reading.diagnostics:
        found = reading.diagnostics[0]
        where = f"line {found.line}: " if found.line else ""
        raise ImportRefused(f"{where}the {what} cannot be read: {found.message}")
    if not isinstance(reading.data, Mapping):
        raise ImportRefused(f"the {what} is no mapping of settings")
    return reading.data


def flattened(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by dotted names; an empty mapping is a value."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{name}.")
        else:
            yield name, value


def lines_of(text: str, names: Iterator[tuple[str, Any]]) -> Iterator[Given]:
    """Settings of a YAML file with the lines that hold them."""
    reading = read(text)
    for name, value in names:
        found = reading.find(tuple(name.split(".")))
        if isinstance(value, str):
            value = plain(value)
        yield Given(name=name, value=value, line=found[0] if found else None)
