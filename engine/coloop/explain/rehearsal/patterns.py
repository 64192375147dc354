"""Texts that a regular expression matches, so that a rehearsal has something to read.

One way through the expression, by its parsed form: the first or a chosen alternative, repeats as
few as allowed but one, a sentence where anything may stand. What cannot be had so (look-behinds of
some kinds, back references) gives nothing: a text counts only when the expression finds it.
"""

import re
from collections.abc import Mapping, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SENTENCE = "what is the sum of one two three four five six seven eight"
"""Stands where anything may."""
HOLE = "\0"
LETTERS = "a1 Z_\n-"
"""Tried in turn where one of a class may stand."""


class NoText(Exception):
    """A part of an expression for which nothing is written here."""


def text_for(pattern: str, groups: Mapping[int, str] | None = None, choice: int = 0) -> str | None:
    """A text in which the expression finds something; None where none was made.

    Args:
        groups: what groups say, by number; the others say what fits.
        choice: which alternative is taken, of each set of them.
    """
    text = _written(pattern, groups or {}, choice)
    return text if text is not None and re.search(pattern, text) else None


def text_around(pattern: str) -> tuple[str, str] | None:
    """What stands before and behind the first group, where something can stand in it."""
    text = _written(pattern, {1: HOLE}, 0)
    if text is None or not any(text_for(pattern, {1: word}) for word in ("1", "a", SENTENCE)):
        return None
    before, _, behind = text.partition(HOLE)
    return before, behind


def _written(pattern: str, groups: Mapping[int, str], choice: int) -> str | None:
    """A text by the expression, unproved."""
    try:
        return _all(list(parser.parse(pattern)), groups, choice)
    except (re.error, NoText, OverflowError, RecursionError):
        return None


def group_count(pattern: str) -> int:
    """How many groups an expression has; 0 where it cannot be read."""
    try:
        return re.compile(pattern).groups
    except re.error:
        return 0


def _said(part: tuple[Any, Any], groups: Mapping[int, str], choice: int) -> str:
    name, value = part
    match name:
        case op.LITERAL:
            return chr(value)
        case op.ANY:
            return "a"
        case op.NOT_LITERAL:
            return next(letter for letter in LETTERS if ord(letter) != value)
        case op.IN:
            return _one_of(value, choice)
        case op.BRANCH:
            branches = value[1]
            return _all(branches[choice % len(branches)], groups, choice)
        case op.SUBPATTERN:
            number, _, _, inside = value
            return groups[number] if number in groups else _all(inside, groups, choice)
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return _repeated(value, groups, choice)
        case op.AT | op.ASSERT_NOT:
            return ""
        case op.ASSERT:
            return _all(value[1], groups, choice)
        case op.ATOMIC_GROUP:
            return _all(value, groups, choice)
    raise NoText(str(name))


def _all(parts: Sequence[tuple[Any, Any]], groups: Mapping[int, str], choice: int) -> str:
    return "".join(_said(part, groups, choice) for part in parts)


def _repeated(value: Any, groups: Mapping[int, str], choice: int) -> str:
    least, most, inside = value
    if len(inside) == 1 and _is_anything(inside[0]) and most >= len(SENTENCE) >= least:
        return SENTENCE
    once = _all(inside, groups, choice)
    return once * (least or (0 if once.isspace() else min(1, most)))


def _is_anything(part: tuple[Any, Any]) -> bool:
    """Whether any of a sentence's letters may stand here."""
    name, value = part
    if name is op.IN and value[0][0] is op.NEGATE:
        return not any(_in_class(member, letter) for member in value[1:] for letter in SENTENCE)
    return name is op.ANY or (name is op.NOT_LITERAL and chr(value) not in SENTENCE)


def _one_of(members: Sequence[tuple[Any, Any]], choice: int) -> str:
    """A letter of a class; of single letters the chosen one, for `a|b` is a class as well."""
    if all(name is op.LITERAL for name, _ in members):
        return chr(members[choice % len(members)][1])
    is_negated = members[0][0] is op.NEGATE
    members = members[1:] if is_negated else members
    letters = LETTERS if is_negated else LETTERS + "".join(map(_first, members))
    for letter in letters:
        if any(_in_class(member, letter) for member in members) != is_negated:
            return letter
    raise NoText("class")


def _first(member: tuple[Any, Any]) -> str:
    name, value = member
    if name is op.LITERAL:
        return chr(value)
    return chr(value[0]) if name is op.RANGE else ""


def _in_class(member: tuple[Any, Any], letter: str) -> bool:
    name, value = member
    match name:
        case op.LITERAL:
            return bool(ord(letter) == value)
        case op.RANGE:
            return bool(value[0] <= ord(letter) <= value[1])
        case op.CATEGORY:
            return _in_category(str(value), letter)
    raise NoText(str(name))


def _in_category(category: str, letter: str) -> bool:
    kind = category.removeprefix("CATEGORY_")
    tests = {
        "DIGIT": letter.isdigit(),
        "SPACE": letter.isspace(),
        "WORD": letter.isalnum() or letter == "_",
    }
    return not tests[kind.removeprefix("NOT_")] if kind.startswith("NOT_") else tests[kind]
