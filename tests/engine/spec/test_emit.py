"""Plain data to YAML text and back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from coloop.spec.text.emit import number, scalar, to_yaml
from coloop.spec.text.reader import read

TEXTS = st.text(max_size=30) | st.sampled_from(
    ["yes", "no", "null", "~", "1", "1e3", "0x1", ".5", "- a", "a: b", "a #b", "&a", "*a", "!a",
     "|", "%a", "@a", "`a", "{", "[", ",", "?", ": a", "a:", "'", '"', "a\nb", " a\n b\n", "a\n",
     "\n", "a\n\n", "x\ty", "<<", "=", "---", "...", "2024-01-01", "12:30", "#", "# a\nb", "a\r\nb"]
)  # fmt: skip
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63) + 1, 2**63 - 1)
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS
DATA = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.dictionaries(TEXTS, DATA, min_size=1, max_size=5))
def test_what_is_written_reads_back_as_the_same_data(document: dict[str, object]) -> None:
    text = to_yaml(document)

    reading = read(text)

    assert reading.diagnostics == ()
    assert reading.data == document
    assert repr(reading.data) == repr(document)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), TEXTS, min_size=1))
def test_words_that_old_readers_misread_are_quoted(document: dict[str, str]) -> None:
    assert all(
        scalar(word).startswith('"')
        for word in ("yes", "no", "on", "off", "y", "n", "1_000", "12:30")
    )
    assert YAML(typ="safe", pure=True).load(to_yaml(document)) == document


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-6, "1.0e-6"), (3e-4, "0.0003"), (1.5e300, "1.5e+300"), (2.0, "2.0"), (-0.5, "-0.5")],
)
def test_a_float_has_a_dot(value: float, text: str) -> None:
    assert number(value) == text
    assert math.isclose(float(text), value)


def test_code_is_written_as_lines() -> None:
    text = to_yaml({"a": {"code": "def f():\n    return 1\n"}})

    assert text == "a:\n  code: |\n    def f():\n        return 1\n"


def test_short_mappings_stand_on_one_line_and_long_ones_do_not() -> None:
    text = to_yaml(
        {"nodes": {"a": {"kind": "actor", "words": ["long " * 10] * 4}, "b": {"kind": "x"}}}
    )

    assert "  b: {kind: x}\n" in text
    assert "  a:\n    kind: actor\n    words:\n" in text
