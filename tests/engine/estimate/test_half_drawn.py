"""Loops in the making: whatever is missing, the estimate gives what it can."""

import copy
import random
from pathlib import Path

import pytest

from coloop.plan.cost import estimate, explain
from coloop.plan.cost.solving import fit
from coloop.spec.io import from_dict, parse

EXAMPLES = Path(__file__).resolve().parents[3].parent / "shared/language/examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))


def _known_models(document):
    """Real sizes, so that every part of the estimate has something to do."""
    for node in document["nodes"].values():
        if node.get("model", {}).get("type") in ("pretrained", "run"):
            node["model"] = {"type": "pretrained", "path": "Qwen/Qwen2.5-0.5B"}
    return document


def _estimated(document):
    parsed = from_dict(document)
    if parsed.spec is not None:
        explained = explain(parsed.spec)
        assert explained.step_of_parts >= 0
        found = explained.estimate
        for gpu in found.gpus:
            assert (gpu.peak_bytes is None) == (gpu.fits is None)
            assert gpu.peak_bytes is None or gpu.peak_bytes >= 0


@pytest.mark.sample(11)
@pytest.mark.skipif(not FILES, reason="the example loops are not here")
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_loop_without_one_of_its_nodes_is_estimated(file):
    document = _known_models(parse(file.read_text(encoding="utf-8")).document)
    for name in document["nodes"]:
        less = copy.deepcopy(document)
        del less["nodes"][name]
        _estimated(less)


@pytest.mark.sample(7)
@pytest.mark.skipif(not FILES, reason="the example loops are not here")
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_loop_with_edges_missing_or_turned_is_estimated(file):
    document = _known_models(parse(file.read_text(encoding="utf-8")).document)
    draw = random.Random(file.stem)
    for _ in range(10):
        less = copy.deepcopy(document)
        edges = less["edges"]
        less["edges"] = [edge for edge in edges if draw.random() < 0.7]
        draw.shuffle(less["edges"])
        less["hardware"] = {"preset": draw.choice(["cpu", "1x4090", "8xH100"])}
        _estimated(less)


def test_a_loop_without_edges_is_estimated(grpo):
    found = estimate(grpo(edges=[]))

    assert found.stages == ()
    assert found.bottleneck == ""
    assert found.step_seconds == 0


def test_a_loop_without_nodes_is_estimated():
    spec = from_dict({"coloop": 1, "name": "x", "nodes": {}, "schedule": {"steps": 1}}).spec

    assert spec is not None
    assert estimate(spec).parameters == {}


def test_models_that_come_from_each_other_are_a_gap(tiny):
    found = explain(
        tiny(
            nodes={
                "actor": {"model": {"type": "copy", "of": "start", "architecture": None}},
                "start": {"model": {"type": "copy", "of": "actor"}},
            }
        )
    )

    assert found.estimate.parameters == {}
    assert any(note.is_gap for note in found.notes)


def test_a_circle_of_edges_ends(tiny):
    text = {"kind": "template", "text": "{{ prompt }}"}
    found = estimate(
        tiny(
            nodes={"one": text, "two": text},
            edges=[
                "one.rows -> two.rows",
                "two.rows -> one.rows",
                "two.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
            ],
        )
    )

    assert found.step_seconds >= 0


def test_a_half_drawn_loop_can_be_fitted(tiny):
    assert fit(tiny(edges=[])).fits
