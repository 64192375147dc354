"""Malformed text gets words of who typed it: the node, the field, what to write."""

from __future__ import annotations

import pytest

from coloop.spec.io import parse

LOOP = """\
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 32}
  ask:
    kind: template
    text: "{{ prompt }}"
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
    training: {optimizer: {lr: 3.0e-4}}
edges:
  - problems.rows -> ask.rows
  - ask.rows -> actor.demonstrations
schedule: {steps: 10}
"""
TEXT = 'text: "{{ prompt }}"'

CASES: list[tuple[str, str, str, str, str]] = [
    (TEXT, "text: {{ prompt }}", "nodes.ask.text", "`text` of node `ask` starts with `{{`", TEXT),
    (TEXT, "text: {{ a }} b", "nodes.ask.text", "starts with `{{`", 'text: "{{ a }} b"'),
    (TEXT, "text: {% if a %}b", "nodes.ask.text", "starts with `{%`", 'text: "{% if a %}b"'),
    (TEXT, "text: So: {{ a }}", "nodes.ask", "contains a colon and a space", 'text: "So: {{ a }}"'),
    (TEXT, "text: @prompt", "nodes.ask.text", "starts with `@`", 'text: "@prompt"'),
    (TEXT, "text: & prompt", "nodes.ask.text", "starts with `&`", 'text: "& prompt"'),
    (TEXT, "text: *prompt", "nodes.ask.text", "has no complete `&prompt`", '"*prompt"'),
    (TEXT, "text: !prompt x", "nodes.ask.text", "the tag `!prompt`", "quote"),
    (TEXT, 'text: "{{ prompt }}', "nodes.ask.text", "opens in line 7, column 11", "close it"),
    (TEXT, 'text: "a" b', "nodes.ask", "after a closing quote", "whole text in quotes"),
    ("lr: 3.0e-4", "lr: .nan", "nodes.actor.training.optimizer.lr", "is `.nan`", "a number"),
    ("lr: 3.0e-4", "lr: -.inf", "nodes.actor.training.optimizer.lr", "is `-.inf`", "a number"),
    ("    kind: template", "    kind: x\n    kind: y", "nodes.ask", "twice in node `ask`", "keep"),
    ("  actor:", "  ask: {}\n  actor:", "nodes", "the node `ask` occurs twice", "rename"),
    ("schedule: {steps: 10}\n", "", "schedule", "no `schedule`", "`schedule: {steps: 100}`"),
    ("name: small\n", "", "name", "no `name`", "`name: my-loop`"),
    (
        "    kind: template",
        "\tkind: template",
        "nodes.ask",
        "line 6 is indented with a tab",
        "spaces",
    ),
    ("    kind: template", "      kind: template", "nodes", "line 7 does not start", "same column"),
    ("kind: template", "kind template", "nodes", "`kind template`", "`kind: template`"),
    ("kind: template", "kind:template", "nodes", "a space after", "`kind: template`"),
    ("32}", "32", "nodes.problems", "the `{` in line 4, column 13 (node `problems`)", "`}`"),
    (
        "schedule: {steps: 10}",
        "schedule: [",
        "schedule.0",
        "the text ends while `schedule",
        "close its `[`",
    ),
    ("  problems: {", "  - problems: {", "nodes.1", "a list (`- ...`)", "without `-`"),
    ("schedule:", "---\nschedule:", "", "a second document", "one loop"),
    ("problems.rows -> ask", "problems.rows => ask", "edges.0", "is expected", "->"),
    ("rows_per_step: 32", "shuffle: yes", "nodes.problems.shuffle", "true or false", "`true`"),
]


@pytest.mark.parametrize(("old", "new", "place", "message", "hint"), CASES)
def test_a_malformed_text_is_said_in_words_of_who_typed_it(
    old: str, new: str, place: str, message: str, hint: str
) -> None:
    assert LOOP.replace(old, new, 1) != LOOP

    first = parse(LOOP.replace(old, new, 1)).diagnostics[0]

    assert message in first.message
    assert hint in (first.hint or "")
    assert first.line is not None
    if place:
        assert first.path == place
    for word in ("while parsing", "while scanning", "block mapping", "expected <", "token"):
        assert word not in first.describe()


def test_an_arrow_of_another_kind_is_mended_by_one_click() -> None:
    [found] = parse(LOOP.replace("problems.rows -> ask", "problems.rows => ask")).diagnostics

    [change] = found.fixes[0].changes
    assert (change.path, change.value) == ("edges.0", "problems.rows -> ask.rows")
