"""Calls in what a policy wrote: where they end, what they say, how answers are worded."""

import re

import pytest

from coloop.data.tools.calls import CUT, ToolCall, call_in, endings_of, limited, pauses_of, worded
from coloop.data.tools.protocol import ToolFailure
from coloop.spec.nodes import ToolNode


def tool(**fields: object) -> ToolNode:
    return ToolNode.model_validate({"kind": "tool", "type": "python", **fields})


@pytest.mark.parametrize(
    ("pattern", "ends"),
    [
        (r"<<(?P<expression>[^=<>]+)=", {"="}),
        (r"<search>(?P<query>.*?)</search>", {"</search>"}),
        (r"(?:yes|no)[.!]", {".", "!"}),
        (r"run (?P<code>.*)\n", {"\n"}),
        (r"(?P<code>a)\]\]", {"]]"}),
        (r"x+", {"x"}),
        (r"ask: (?P<query>.*)", set()),
        (r"(?i)</a>", set()),
        (r"a(?:b|)", set()),
        (r"a$", set()),
        (r"(?P<query>", set()),
    ],
)
def test_literal_ends_of_a_pattern_are_found(pattern: str, ends: set[str]) -> None:
    assert endings_of(pattern) == ends


@pytest.mark.parametrize("text", ["<b>x</b>", "say no.", "run 1\n", "</i>!", "<b></b><b>y</b>"])
def test_every_match_ends_with_one_of_the_ends(text: str) -> None:
    for pattern in (r"<b>(.*?)</b>", r"(yes|no)[.!]", r"run (.*)\n", r"<(/[a-z])>(!|\?)"):
        for match in re.finditer(pattern, text):
            assert match[0].endswith(tuple(endings_of(pattern)))


def test_a_call_may_stand_over_several_lines_and_the_last_one_counts() -> None:
    found = call_in("<code>a</code> and <code>b\nc</code>", "sandbox", tool())

    assert found == ToolCall(
        tool="sandbox", text="<code>b\nc</code>", end=35, arguments={"code": "b\nc"}
    )
    assert call_in("<code>a", "sandbox", tool()) is None


@pytest.mark.parametrize(
    ("fields", "pauses"),
    [
        ({"type": "python"}, {"</code>"}),
        ({"type": "calculator", "call": "<<(?P<expression>[^=]+)="}, {"="}),
        ({"type": "search", "call": "find (?P<query>.*)"}, set()),
    ],
)
def test_a_policy_pauses_where_a_call_ends(fields: dict[str, str], pauses: set[str]) -> None:
    assert pauses_of(tool(**fields)) == pauses


def test_an_environment_is_called_by_all_that_is_written() -> None:
    desk = tool(type="environment", name="proof")

    found = call_in("anything", "desk", desk)

    assert found is not None
    assert found.arguments == {"text": "anything"}
    assert pauses_of(desk) == frozenset()


def test_an_answer_is_worded_by_the_template_with_the_groups_of_the_call() -> None:
    section = tool(type="search", result="<{{ query }}: {{ value }}>")

    assert worded("found", {"query": "q"}, section) == "<q: found>"
    assert worded("found", {"query": "q"}, tool(type="search")) == "found"


def test_a_long_answer_is_cut_where_a_character_ends() -> None:
    section = tool(output_bytes=4)

    assert worded("añoñ", {}, section) == "año" + CUT
    assert limited("año", 4) == "año"
    assert limited("\ud800", 4) == "?"


def test_a_template_that_cannot_hold_an_answer_is_a_failure() -> None:
    section = tool(result="{{ value / 2 }}")

    with pytest.raises(ToolFailure, match="cannot be written"):
        worded("text", {}, section)


def test_a_pattern_without_end_on_a_text_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coloop.data.patterns.TIMEOUT_SECONDS", 0.05)

    with pytest.raises(ToolFailure, match="more than"):
        call_in("a" * 40 + "b", "sandbox", tool(call=r"(?P<code>(a|aa|a?)+)$"))
