"""Columns read out of a text: by a regular expression, from JSON in it, or from a tag.

The last match counts; with `all` every match, as a list. No match leaves the column absent, which
is not the same as empty.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from coloop.data.answers import in_tags
from coloop.data.patterns import pattern
from coloop.spec.shaping import ParseJson, ParseRegex, ParseTag

MOST_JSON_STARTS: Final = 200
"""Places in a text where the reading of JSON is tried."""

DECODER: Final = json.JSONDecoder()


def parsed(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> list[Any]:
    """All matches of a rule in a text, in order."""
    match rule:
        case str():
            return list(pattern(rule).matches(text))
        case ParseRegex():
            return list(pattern(rule.regex).matches(text))
        case ParseTag():
            return list(in_tags(text, rule.tag))
        case ParseJson():
            steps = [step for step in rule.json_path.split(".") if step]
            found = (_at(value, steps) for value in json_values(text))
            return [value for value in found if value is not None]


def column_of(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> Any:
    """What a rule gives: the last match, a list with `all`, None where nothing matches."""
    found = parsed(text, rule)
    if not found:
        return None
    return found if not isinstance(rule, str) and rule.all else found[-1]


def json_values(text: str) -> Iterator[Any]:
    """Objects and lists of JSON that stand in a text, none inside another."""
    place = 0
    for _ in range(MOST_JSON_STARTS):
        starts = [at for at in (text.find("{", place), text.find("[", place)) if at >= 0]
        if not starts:
            return
        try:
            value, place = DECODER.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            place = min(starts) + 1
            continue
        yield value


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
