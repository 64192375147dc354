"""Rewards that a configuration names: files of Python functions, read as text and never run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.interop.reading import Source

MATH: Final[Mapping[str, Any]] = {"type": "builtin", "name": "math_equal"}


def foreign_reward(
    source: Source, path: str, name: str, *, columns: Sequence[str], call: str
) -> str | None:
    """A reward of ours around a function of a file, which is copied into the loop.

    Args:
        columns: columns of the rows that the function reads; one that is missing is None.
        call: the call for one row, which may use `completion` and the columns.

    Returns: the code, or None where the file or the function is not there.
    """
    text = source.read(path)
    if text is None or not defines(text, name):
        return None
    parameters = "".join(f", {column}=None" for column in columns)
    given = "".join(f", {column} or empty" for column in columns)
    names = ", ".join(("completion", *columns))
    return f"""{text.rstrip()}


def reward(prompts, completions{parameters}, **others):
    empty = [None] * len(completions)
    scores = []
    for {names} in zip(completions{given}):
        score = {call}
        scores.append(score["score"] if isinstance(score, dict) else score)
    return scores
"""


def defines(text: str, name: str) -> bool:
    """Whether Python code has a function of this name at its top."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(item, ast.FunctionDef) and item.name == name for item in tree.body)
