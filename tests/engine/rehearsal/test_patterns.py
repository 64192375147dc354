"""Texts that regular expressions find."""

import re

import pytest

from coloop.explain.rehearsal.lines import SENTENCE, text_around, text_for

PATTERNS = [
    r"(\d+\+\d+)=",
    r"<search>(?P<query>.*?)</search>",
    r"^([1-9]|10)$",
    r"step (\d+): (right|wrong)",
    r"\[\[(A|B)\]\]",
    r"\\boxed\{([^}]*)\}",
    r"score: ([0-5])",
    r"^\s*<think>(?!x).+</think>\s*<answer>.+</answer>$",
    r"(?i)final answer:?\s*(yes|no)\b",
    r"[^a-z0-9]{3}\W\D\S",
    r"(?:ab){2,}c?",
    r"(?<=x)y|xy",
    r"####\s*(-?[\d,]+)",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("choice", [0, 1])
def test_a_text_is_found_by_its_pattern(pattern: str, choice: int) -> None:
    text = text_for(pattern, choice=choice)

    assert text is not None
    assert re.search(pattern, text)


def test_groups_say_what_they_are_told_to() -> None:
    assert text_for(r"step (\d+): (right|wrong)", {1: "3", 2: "wrong"}) == "step 3: wrong"
    assert text_for(r"step (\d+): (right|wrong)", {2: "odd"}) is None


def test_alternatives_are_chosen() -> None:
    assert [text_for("(L|R)", choice=choice) for choice in range(3)] == ["L", "R", "L"]


def test_anything_is_a_sentence() -> None:
    assert text_for("<a>(.*?)</a>") == f"<a>{SENTENCE}</a>"


def test_what_stands_around_a_group() -> None:
    assert text_around(r"<answer>(.*?)</answer>") == ("<answer>", "</answer>")
    assert text_around(r"^\((\d+)\)$") == ("(", ")")
    assert text_around(r"(never){0}") is None


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", r"a(?=b)c"])
def test_what_cannot_be_had_gives_nothing(pattern: str) -> None:
    assert text_for(pattern) is None
