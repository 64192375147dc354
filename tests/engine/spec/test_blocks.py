"""What the page writes has lines: a loop composed from an empty canvas is readable text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.spec.conftest import rewrite

from coloop.spec.changes import apply_change, same_documents
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse
from coloop.spec.text.patch import patch
from coloop.spec.text.reader import read

PRESETS = sorted((Path(__file__).parents[3] / "presets" / "loops").glob("*.yaml"))
EMPTY = (
    "coloop: 1\nname: untitled\nmode: online\n\nnodes: {}\nedges: []\n\n"
    "schedule: {steps: 100}\nhardware: {preset: cpu}\nrun: {seed: 0}\n"
)


def document_of(path: Path) -> dict[str, Any]:
    document = parse(path.read_text(encoding="utf-8")).document
    assert document is not None
    return document


@pytest.mark.sample(19)
@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_loop_composed_from_an_empty_canvas_has_a_line_for_each_part(path: Path) -> None:
    wanted = document_of(path)
    steps: list[dict[str, Any]] = [{"coloop": 1, "name": "untitled", "nodes": {}, "edges": []}]
    for node, section in wanted["nodes"].items():
        steps.append({**steps[-1], "nodes": {**steps[-1]["nodes"], node: section}})
    for edge in wanted["edges"]:
        steps.append({**steps[-1], "edges": [*steps[-1]["edges"], edge]})
    text = EMPTY

    for document in [*steps[1:], wanted]:
        text = rewrite(text, document)

    reading = read(text)
    assert same_documents(reading.data, wanted)
    lines = [reading.find(("nodes", node)) for node in wanted["nodes"]]
    lines += [reading.find(("edges", index)) for index in range(len(wanted["edges"]))]
    assert len({line for found in lines if found is not None for line in found[:1]}) == len(lines)
    for node, section in wanted["nodes"].items():
        for key, value in section.items():
            if isinstance(value, dict) and len(str(section)) > 80:
                found = reading.find(("nodes", node, key))
                assert found is not None
                assert found[0] > reading.find(("nodes", node))[0]  # type: ignore[index]


BY_HAND = """\
# My loop.
coloop: 1
name: mine
nodes: {problems: {kind: dataset, rows_per_step: 8}, policy: {kind: actor, lr: 3.0e-4}}  # boxes
edges: [problems.rows -> policy.prompts]
schedule: {steps: 10}   # short
"""


def test_what_a_person_wrote_stays_as_it_stood_when_a_node_comes() -> None:
    exact = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}

    text = patch(BY_HAND, [Change(op="set", path="nodes.exact", value=exact)])

    assert text == BY_HAND.replace(
        "nodes: {problems: {kind: dataset, rows_per_step: 8}, "
        "policy: {kind: actor, lr: 3.0e-4}}  # boxes\n",
        "nodes:  # boxes\n"
        "  problems: {kind: dataset, rows_per_step: 8}\n"
        "  policy: {kind: actor, lr: 3.0e-4}\n"
        "  exact:\n"
        "    kind: reward\n"
        "    source: {type: builtin, name: exact_match}\n",
    )


def test_an_edge_comes_on_a_line_of_its_own() -> None:
    text = patch(
        BY_HAND, [Change(op="add_edge", path="", value="policy.rollouts -> exact.rollouts")]
    )

    assert (
        "edges:\n  - problems.rows -> policy.prompts\n  - policy.rollouts -> exact.rollouts\n"
        in text
    )


def test_a_small_field_stays_on_its_line() -> None:
    text = patch(BY_HAND, [Change(op="set", path="schedule.max_staleness", value=1)])

    assert "schedule: {steps: 10, max_staleness: 1}   # short\n" in text


def test_a_collection_with_comments_inside_is_left_alone() -> None:
    commented = BY_HAND.replace("nodes: {problems", "nodes: {  # mine\n  problems")

    text = patch(commented, [Change(op="set", path="nodes.more", value={"kind": "template"})])

    assert "# mine" in text
    assert same_documents(
        read(text).data,
        apply_change(
            read(commented).data, Change(op="set", path="nodes.more", value={"kind": "template"})
        ),
    )


VALUES = st.recursive(
    st.integers(0, 99) | st.sampled_from(["a", "a: b", "x -> y", "two\nlines\n"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "kind"]), inner, max_size=3)
    ),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["nodes.n", "nodes.problems.a", "nodes.problems.a.b", "nodes.policy.lr", "schedule.phases",
     "schedule.a.b", "layout", "layout.n", "run.seed", "edges.1", "edges.0"]
)  # fmt: skip
TEXTS = st.sampled_from(
    [BY_HAND, EMPTY, EMPTY.replace("nodes: {}", "nodes:"), BY_HAND.replace("\n", "\r\n")]
)


@pytest.mark.slow
@settings(max_examples=150, derandomize=True, deadline=None)
@given(TEXTS, st.lists(st.tuples(PATHS, VALUES), min_size=1, max_size=4))
def test_whatever_comes_in_the_text_says_it_and_keeps_its_comments(
    text: str, changes: list[tuple[str, Any]]
) -> None:
    document = read(text).data
    for path, value in changes:
        change = Change(op="set", path=path, value=value)
        try:
            document = apply_change(document, change)
        except Exception:
            continue
        comments = [word for word in ("# My loop.", "# boxes", "# short") if word in text]
        text = patch(text, [change])
        assert same_documents(read(text).data, document)
        assert [word for word in comments if word in text] == comments
