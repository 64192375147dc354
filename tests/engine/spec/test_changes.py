"""What differs between two documents, as changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from coloop.spec.changes import apply_changes, diff, same_documents
from coloop.spec.diagnostics import Change
from coloop.spec.documents import join_path, split_path


def told(old: Any, new: Any) -> list[tuple[str, str, Any]]:
    """Changes as tuples, after a check that they lead from one to the other."""
    before = copy.deepcopy(old)
    changes = diff(old, new)

    assert same_documents(apply_changes(old, changes), new)
    assert old == before
    return [(change.op, change.path, change.value) for change in changes]


def test_equal_documents_have_no_changes() -> None:
    assert told({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}) == []


def test_numbers_are_compared_by_value_and_truth_is_no_number() -> None:
    assert told({"a": 1}, {"a": 1.0}) == []
    assert told({"a": 1}, {"a": True}) == [("set", "a", True)]
    assert told({"a": "1"}, {"a": 1}) == [("set", "a", 1)]


def test_an_edge_is_the_same_in_both_spellings() -> None:
    assert told({"edges": ["a.x -> b.y"]}, {"edges": [{"from": "a.x", "to": "b.y"}]}) == []


def test_keys_come_go_and_change() -> None:
    assert told({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}, "d": 4}) == [
        ("remove", "a", None),
        ("set", "b.c", 3),
        ("set", "d", 4),
    ]


def test_an_option_of_an_edge_is_set_at_the_edge() -> None:
    old = {"edges": ["a.x -> b.y", "c.x -> d.y"]}
    new = {"edges": ["a.x -> b.y", {"from": "c.x", "to": "d.y", "weight": 0.5}]}

    assert told(old, new) == [("set", "edges.1.weight", 0.5)]


def test_edges_are_inserted_and_removed_at_their_place() -> None:
    old = {"edges": ["a.x -> b.y", "c.x -> d.y", "e.x -> f.y"]}

    assert told(old, {"edges": ["a.x -> b.y", "e.x -> f.y"]}) == [("remove", "edges.1", None)]
    assert told(old, {"edges": ["n.x -> b.y", *old["edges"]]}) == [
        ("insert", "edges.0", "n.x -> b.y")
    ]


def test_a_phase_in_the_middle_goes_alone() -> None:
    phases = [{"name": name, "steps": 1} for name in "abc"]
    old = {"schedule": {"phases": phases}}

    assert told(old, {"schedule": {"phases": [phases[0], phases[2]]}}) == [
        ("remove", "schedule.phases.1", None)
    ]


def test_a_node_with_a_new_id_is_renamed() -> None:
    old = {"nodes": {"a": {"kind": "actor"}, "b": {"kind": "reward"}}}
    new = {"nodes": {"policy": {"kind": "actor"}, "b": {"kind": "reward"}}}

    assert told(old, new) == [("rename", "nodes.a", "policy")]


def test_keys_with_dots_keep_their_dots() -> None:
    old = {"schedule": {"phases": [{"name": "a", "set": {"nodes.actor.lr": 1}}]}}
    new = {"schedule": {"phases": [{"name": "a", "set": {"nodes.actor.lr": 2}}]}}

    assert told(old, new) == [("set", r"schedule.phases.0.set.nodes\.actor\.lr", 2)]


@pytest.mark.parametrize("parts", [("a", "b"), ("a.b", "c"), ("a\\b", "c.d"), ("a", "0")])
def test_a_path_is_joined_and_split_again(parts: tuple[str, ...]) -> None:
    assert split_path(join_path(parts)) == parts


def test_an_edge_keeps_its_arrow_in_one_part() -> None:
    assert split_path("edges.a.x -> b.y.weight") == ("edges", "a.x->b.y", "weight")


def test_a_document_may_become_another_altogether() -> None:
    assert told({"": 1}, {"a": 2}) == [("set", "", {"a": 2})]


def test_changes_are_checked_when_they_are_made() -> None:
    with pytest.raises(ValueError, match="op"):
        Change(op="erase", path="a")  # type: ignore[arg-type]
