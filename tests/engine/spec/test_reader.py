"""YAML text to plain data: values of the core schema, places, and what is refused."""

from __future__ import annotations

import pytest

from coloop.spec.text.reader import MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES, read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0xff", 255),
        ("017", 17),
        ("1.0e-6", 1e-6),
        ("1e-6", 1e-6),
        (".5", 0.5),
        ("3.", 3.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("off", "off"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("'1'", "1"),
        ('"true"', "true"),
        ('"a\\nb"', "a\nb"),
        ("é", "é"),
    ],
)
def test_a_scalar_is_what_yaml_1_2_says(text: str, value: object) -> None:
    found = read(f"x: {text}\n").data["x"]

    assert found == value
    assert type(found) is type(value)


def test_keys_are_text_as_written() -> None:
    assert read("{1: a, true: b, ~: c}").data == {"1": "a", "true": "b", "~": "c"}


def test_an_alias_shares_the_value_of_its_anchor() -> None:
    assert read("a: &x {b: [1, 2]}\nc: *x\n").data == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}


def test_places_are_those_of_keys_and_items() -> None:
    reading = read("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n")

    assert reading.find(("a", "b")) == (2, 3)
    assert reading.find(("a", "c", 1, "d")) == (5, 8)
    assert reading.find(("a", "nowhere", "at", "all")) == (1, 1)


def test_places_inside_of_an_alias_are_those_of_its_anchor() -> None:
    assert read("a: &x\n  b: 1\nc: *x\n").find(("c", "b")) == (2, 3)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "yaml.empty", None),
        ("# nothing\n", "yaml.empty", None),
        ("a: [1, 2\nb: 3\n", "yaml.syntax", 2),
        ("a: b: c\n", "yaml.syntax", 1),
        ("a: 'x\n", "yaml.syntax", 2),
        ("a:\n\tb: 1\n", "yaml.tab", 2),
        ("a: 1\nb: 2\na: 3\n", "yaml.duplicate_key", 3),
        ("a: .nan\n", "yaml.not_finite", 1),
        ("a: -.inf\n", "yaml.not_finite", 1),
        ("a: 1e999\n", "yaml.not_finite", 1),
        ("a: 99999999999999999999999\n", "yaml.not_finite", 1),
        ("a: !!python/object:os.system x\n", "yaml.tag", 1),
        ("a: !local 1\n", "yaml.tag", 1),
        ("a: *nowhere\n", "yaml.alias", 1),
        ("a: &a [*a]\n", "yaml.alias", 1),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "yaml.merge_key", 3),
        ("? [1, 2]\n: x\n", "yaml.key", 1),
        ("? {a: 1}\n: x\n", "yaml.key", 1),
        ("a: 1\n---\nb: 2\n", "yaml.several_documents", 2),
        ("a: \x00\n", "yaml.syntax", None),
    ],
)
def test_bad_text_ends_in_one_finding_with_its_line(text: str, code: str, line: int | None) -> None:
    (found,) = read(text).diagnostics

    assert found.code == code
    assert found.line == line
    assert found.message


def test_a_text_that_is_too_long_is_not_read() -> None:
    (found,) = read("a: " + "x" * MAX_CHARACTERS).diagnostics

    assert found.code == "yaml.too_large"
    assert f"{MAX_CHARACTERS:,}" in found.message


def test_deep_nesting_ends_early() -> None:
    (found,) = read("[" * 100_000).diagnostics
    assert found.code == "yaml.too_deep"

    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).diagnostics == ()


def test_an_alias_bomb_is_counted_as_if_written_out() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]

    (found,) = read("\n".join(lines)).diagnostics

    assert found.code == "yaml.too_many_values"


@pytest.mark.slow
def test_too_many_values_end_the_reading() -> None:
    (found,) = read("[" + "1," * (MAX_VALUES + 10) + "]").diagnostics

    assert found.code == "yaml.too_many_values"
