"""What is missing while a loop is drawn is told as the next step, and the steps lead to a loop that
runs."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from coloop.spec.catalog import catalog
from coloop.spec.diagnostics import CODES, UNFINISHED, Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict
from coloop.spec.modes import MODES, ModeName, begins_as
from coloop.validate import validate

Document = dict[str, Any]

REFUSED = ("structure.type_mismatch", "structure.too_many_edges", "structure.duplicate_edge")
"""What an edge must not be, besides closing a circle."""
CIRCLES = ("structure.cycle", "structure.handle_cycle")


def read(document: Document) -> LoopSpec:
    spec = from_dict(document).spec
    assert spec is not None, from_dict(document).diagnostics
    return spec


def drawn(mode: ModeName, kind: str) -> Document:
    """A loop of one node that was just dropped."""
    node = {"kind": kind, **begins_as(MODES[mode], kind)}
    head = {"coloop": 1, "name": "drawn", "mode": mode}
    return {**head, "nodes": {kind: node}, "edges": [], "schedule": {"steps": 1}}


def applied(document: Document, fix: Fix) -> Document:
    """A loop after a step that adds."""
    nodes, edges = dict(document["nodes"]), list(document["edges"])
    for change in fix.changes:
        if change.op == "add_edge":
            edges.append(change.value)
        else:
            assert (change.op, change.path.count(".")) == ("set", 1), change
            nodes[change.path.partition(".")[2]] = change.value
    return {**document, "nodes": nodes, "edges": edges}


def steps(found: Diagnostic) -> list[Fix]:
    """The fixes of a finding that add edges."""
    return [fix for fix in found.fixes if any(one.op == "add_edge" for one in fix.changes)]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("online", "dataset"),
        ("online", "actor"),
        ("online", "reward"),
        ("offline", "dataset"),
        ("offline", "actor"),
        ("reward_modeling", "dataset"),
        ("reward_modeling", "reward"),
    ],
)
def test_the_next_steps_lead_from_one_node_to_a_loop_that_runs(mode: ModeName, kind: str) -> None:
    document = drawn(mode, kind)
    for _ in range(8):
        report = validate(read(document))
        waiting = [one for one in report.diagnostics if one.code in UNFINISHED]
        assert len(waiting) == len(report.diagnostics)
        if not waiting:
            return
        fix = next(fix for one in waiting for fix in one.fixes)
        assert "Remove" not in fix.title
        document = applied(document, fix)
    pytest.fail(f"after eight steps: {report.diagnostics}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("base", ["grpo", "spin", "judges", "ppo", "two_halves", "self_play"])
def test_no_step_draws_an_edge_that_is_refused(base: str, changed: Callable[..., Any]) -> None:
    rng, tried = random.Random(base), 0
    for _ in range(12):
        document = changed(base)
        for _ in range(rng.randint(1, 3)):
            document["edges"].pop(rng.randrange(len(document["edges"])))
        before = validate(read(document)).diagnostics
        circles = [one for one in before if one.code in CIRCLES]
        for found in before:
            for fix in steps(found) if found.code in UNFINISHED else ():
                after = validate(read(applied(document, fix))).diagnostics
                assert [one for one in after if one.code in REFUSED] == [], fix
                assert len([one for one in after if one.code in CIRCLES]) <= len(circles), fix
                tried += 1
    assert tried > 0


def test_what_a_sound_loop_does_not_use_can_be_connected_or_removed(
    changed: Callable[..., Any],
) -> None:
    spare = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
    document = changed("grpo", ("set", "nodes.spare", spare))

    [found] = validate(read(document)).diagnostics

    assert found.code == "structure.unused_node"
    assert found.fixes[-1].title == "Remove spare"


def test_a_node_that_leads_to_one_that_is_not_used_says_where_to_go_on() -> None:
    document = drawn("online", "dataset")
    document["nodes"]["actor"] = {"kind": "actor", **begins_as(MODES["online"], "actor")}
    document["edges"] = ["dataset.rows -> actor.prompts"]

    found = {one.node: one for one in reversed(validate(read(document)).diagnostics) if one.node}

    assert found["dataset"].message == "`dataset` leads to `actor`, which nothing uses yet"
    assert [fix.title for fix in found["actor"].fixes] == ["Add a reward"]


def test_a_reference_that_an_algorithm_reads_is_added_of_the_learner(
    changed: Callable[..., Any],
) -> None:
    document = changed("grpo", ("del", "nodes.start"))
    document["edges"] = [one for one in document["edges"] if "start" not in str(one)]

    [found] = validate(read(document)).diagnostics
    [add] = steps(found)
    mended = applied(document, add)

    assert add.title == "Add a reference"
    assert mended["nodes"]["reference"]["model"]["of"] == "actor"
    assert validate(read(mended)).diagnostics == ()


def test_the_catalog_says_which_codes_are_next_steps() -> None:
    assert set(catalog().unfinished) == UNFINISHED <= CODES.keys()


def test_one_output_that_fits_two_inputs_is_offered_with_the_name_of_the_input() -> None:
    document = drawn("online", "dataset")
    document["nodes"]["template"] = {"kind": "template", **begins_as(MODES["online"], "template")}

    found = {
        one.node: one
        for one in validate(read(document)).diagnostics
        if one.code == "structure.unused_node"
    }

    assert [fix.title for fix in found["template"].fixes] == [
        "Connect dataset.rows to rows",
        "Connect dataset.rows to library",
    ]
