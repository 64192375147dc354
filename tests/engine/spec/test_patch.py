"""Edits of a loop's text: what was asked for changes, every other character stays."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from tests.engine.spec.conftest import rewrite

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch
from coloop.spec.text.reader import read


def edit(op: Any, path: str, value: Any = None) -> Change:
    """A change."""
    return Change(op=op, path=path, value=value)


def changed_lines(old: str, new: str) -> list[str]:
    """Lines that went (`-`) or came (`+`)."""
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_a_number_changes_on_its_line_alone(small: str) -> None:
    new = patch(small, [edit("set", "nodes.actor.training.optimizer.lr", 1e-6)])

    assert new == small.replace("3.0e-4", "1.0e-6")


def test_changes_may_come_as_plain_mappings(small: str) -> None:
    change = {"op": "set", "path": "schedule.steps", "value": 5}

    assert patch(small, [change]) == small.replace("steps: 3", "steps: 5")


def test_comments_number_formats_and_order_stay(language: Path) -> None:
    text = (language / "examples" / "grpo-arithmetic.yaml").read_text(encoding="utf-8")

    new = patch(text, [edit("set", "nodes.actor.rollout.max_new_tokens", 24)])

    assert new == text.replace("max_new_tokens: 16", "max_new_tokens: 24")


def test_a_new_key_goes_to_the_end_of_its_mapping(small: str) -> None:
    new = patch(
        small,
        [
            edit("set", "nodes.actor.rollout.top_p", 0.9),
            edit("set", "nodes.actor.note", "the policy"),
            edit("set", "run.seed", 7),
        ],
    )

    assert "{completions_per_prompt: 8, temperature: 1.0, top_p: 0.9}   # a group" in new
    assert "    training: {optimizer: {lr: 3.0e-4}}\n    note: the policy\n" in new
    assert new.endswith("schedule: {steps: 3}\nrun: {seed: 7}\n")


def test_a_section_that_is_missing_is_made(small: str) -> None:
    new = patch(small, [edit("set", "nodes.actor.credit.combine", "normalize_then_sum")])

    assert "    credit: {combine: normalize_then_sum}\n" in new


def test_a_node_is_added_below_the_others_in_the_hand_of_the_examples(small: str) -> None:
    node = {"kind": "evaluate", "instead_of": "problems", "metrics": ["accuracy"]}

    new = patch(small, [edit("set", "nodes.probe", node)])

    assert changed_lines(small, new) == [
        "+   probe: {kind: evaluate, instead_of: problems, metrics: [accuracy]}"
    ]


def test_a_removed_node_takes_its_lines_along(small: str) -> None:
    new = patch(small, [edit("remove", "nodes.exact")])

    assert changed_lines(small, new) == [
        "-   exact: {kind: reward, source: {type: builtin, name: exact_match}}"
    ]


def test_edges_come_and_go_by_text_id_and_position(small: str) -> None:
    new = patch(small, [edit("add_edge", "edges", "problems.rows -> actor.demonstrations")])
    assert changed_lines(small, new) == ["+   - problems.rows -> actor.demonstrations"]

    assert (
        patch(new, [edit("remove_edge", "edges", "problems.rows -> actor.demonstrations")]) == small
    )
    assert patch(new, [edit("remove_edge", "edges.3")]) == small
    gone = patch(small, [edit("remove_edge", "edges.outcome")])
    assert changed_lines(small, gone) == [
        "-   - {from: exact.scores, to: actor.rewards, id: outcome, weight: 0.9}"
    ]


def test_an_edge_written_as_text_opens_when_it_gets_an_option(small: str) -> None:
    new = patch(small, [edit("set", "edges.actor.rollouts->exact.rollouts.weight", 0.5)])

    assert changed_lines(small, new) == [
        "-   - actor.rollouts -> exact.rollouts",
        "+   - {from: actor.rollouts, to: exact.rollouts, weight: 0.5}",
    ]


def test_an_algorithm_in_the_short_form_is_found_through_its_port() -> None:
    text = "nodes:\n  a:\n    algorithm: {name: dpo, beta: 0.1}   # short\n"

    new = patch(text, [edit("set", "nodes.a.algorithm.pairs.beta", 0.5)])

    assert new == text.replace("0.1", "0.5")


def test_lines_of_code_stay_a_block() -> None:
    text = "a:\n  code: |      # python\n    x = 1\n    y = 2\n\n  # next\n  b: 1\n"

    new = patch(text, [edit("set", "a.code", "x = 1\nif x:\n    y = 3\n")])

    assert new == (
        "a:\n  code: |      # python\n    x = 1\n    if x:\n        y = 3\n\n  # next\n  b: 1\n"
    )


def test_a_block_becomes_one_line_and_back() -> None:
    text = "a:\n  code: |\n    x = 1\n    y = 2\n  b: 1\n"

    short = patch(text, [edit("set", "a.code", "x = 1")])

    assert short == "a:\n  code: x = 1\n  b: 1\n"
    assert patch(short, [edit("set", "a.code", "x = 1\ny = 2\n")]) == text


def test_what_aliases_share_changes_only_where_it_was_named() -> None:
    text = "a: &x {k: 1, m: 2}   # first\nb: *x\nc: *x   # third\n"

    inside_alias = patch(text, [edit("set", "b.k", 5)])
    assert inside_alias == "a: &x {k: 1, m: 2}   # first\nb: {k: 5, m: 2}\nc: *x   # third\n"

    inside_anchor = patch(text, [edit("set", "a.k", 5)])
    assert inside_anchor == "a: {k: 5, m: 2}   # first\nb: &x {k: 1, m: 2}\nc: *x   # third\n"

    without_anchor = patch(text, [edit("remove", "a")])
    assert without_anchor == "b: &x {k: 1, m: 2}\nc: *x   # third\n"

    other_value = patch(text, [edit("set", "c", {"k": 3})])
    assert other_value == "a: &x {k: 1, m: 2}   # first\nb: *x\nc: {k: 3}   # third\n"


def test_items_go_into_lists_at_their_place() -> None:
    text = "a:\n  - one   # 1\n  # about two\n  - two\nb: [x, y]\n"

    assert patch(text, [edit("insert", "a.0", "zero")]).startswith("a:\n  - zero\n  - one   # 1\n")
    between = patch(text, [edit("insert", "a.1", "more")])
    assert between == text.replace("# 1\n", "# 1\n  - more\n")
    assert patch(text, [edit("set", "a.2", "three")]) == text.replace("two\nb", "two\n  - three\nb")
    assert patch(text, [edit("insert", "b.1", "z")]) == text.replace("[x, y]", "[x, z, y]")
    assert patch(text, [edit("remove", "b.0")]) == text.replace("[x, y]", "[y]")


def test_the_last_entry_of_a_block_leaves_an_empty_collection() -> None:
    text = "a:\n  b: 1   # only\nc: 2\n"

    assert read(patch(text, [edit("remove", "a.b")])).data == {"a": {}, "c": 2}


def test_a_key_is_renamed_in_place(small: str) -> None:
    new = patch(small, [edit("rename", "nodes.exact", "same_answer")])

    assert new == small.replace("  exact: {", "  same_answer: {")


@pytest.mark.parametrize(
    ("text", "change", "new"),
    [
        ("a:\nb: 1\n", edit("set", "a", 3), "a: 3\nb: 1\n"),
        ("a:\n  b:   # why\n\nc: 2\n", edit("set", "a.b", 3), "a:\n  b: 3   # why\n\nc: 2\n"),
        ("a:\n  b:\n\nc: 2\n", edit("set", "a.d", 3), "a:\n  b:\n  d: 3\n\nc: 2\n"),
        ("a:\n  -\n  - 1\n", edit("set", "a.0", 2), "a:\n  - 2\n  - 1\n"),
        ("a:\n  - 1\n  -   # x\nb: 1\n", edit("set", "a.1", 2), "a:\n  - 1\n  - 2   # x\nb: 1\n"),
        ("{a, b: , c}\n", edit("set", "a", 1), "{a: 1, b: , c}\n"),
        ("{a, b: , c}\n", edit("set", "b", 1), "{a, b: 1 , c}\n"),
        ("{a, b: , c}\n", edit("set", "d", 1), "{a, b: , c, d: 1}\n"),
    ],
)
def test_an_empty_value_is_filled_in_place(text: str, change: Change, new: str) -> None:
    assert patch(text, [change]) == new


def test_windows_line_ends_stay(small: str) -> None:
    text = small.replace("\n", "\r\n")

    new = patch(text, [edit("set", "nodes.probe", {"kind": "evaluate"}), edit("remove", "edges.0")])

    assert new.count("\r\n") == new.count("\n")
    assert (
        read(new).data
        == read(
            patch(
                text.replace("\r\n", "\n"),
                [
                    edit("set", "nodes.probe", {"kind": "evaluate"}),
                    edit("remove", "edges.0"),
                ],
            )
        ).data
    )


def test_a_file_without_a_last_newline_is_extended(small: str) -> None:
    new = patch(small.rstrip("\n"), [edit("set", "run.seed", 1)])

    assert new.endswith("schedule: {steps: 3}\nrun: {seed: 1}\n")


def test_a_loop_that_does_not_validate_can_be_edited(small: str) -> None:
    wrong = small.replace("kind: reward", "kind: rewrd")

    assert patch(wrong, [edit("set", "nodes.exact.kind", "reward")]) == small


def test_many_positions_are_set_on_one_reading(small: str) -> None:
    spots = {f"n{i}": [i, i] for i in range(50)}
    text = (
        small + "layout: {" + ", ".join(f"{k}: [{v[0]}, {v[1]}]" for k, v in spots.items()) + "}\n"
    )
    document = parse(text).document
    assert document is not None

    new = rewrite(text, {**document, "layout": {k: [v[0] + 1, v[1]] for k, v in spots.items()}})

    assert read(new).data["layout"]["n7"] == [8, 7]
    assert len(changed_lines(text, new)) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edit("remove", "nodes.nobody"), "nodes.nobody"),
        (edit("set", "edges.nothing.weight", 1.0), "no `nothing`"),
        (edit("remove_edge", "edges", "a.b -> c.d"), "no edge"),
        (edit("rename", "nodes.exact", "actor"), "cannot become `actor`"),
        (edit("set", "name.deeper", 1), "`name.deeper` has no place"),
    ],
)
def test_a_change_without_a_place_is_refused(small: str, change: Change, words: str) -> None:
    with pytest.raises(SpecProblem, match=words):
        patch(small, [change])


def test_text_that_is_no_loop_is_refused() -> None:
    with pytest.raises(SpecProblem, match="twice"):
        patch("a: 1\na: 2\n", [edit("set", "a", 1)])
