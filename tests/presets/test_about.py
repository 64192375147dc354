"""What is said about each preset: every part, and nothing of what is not there."""

import pytest

from coloop.explain.about import about, describe_node, traits_of
from coloop.plan.cost import explain
from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.metrics import METRICS, PROBE_METRICS

NAMES = [preset.name for preset in presets.list_loops()]


def test_something_is_written_of_every_preset_and_of_nothing_else() -> None:
    assert sorted(presets.about_names()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_has_all_parts(name: str) -> None:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None
    found, more = about(name), traits_of(name, spec, explain(spec))

    assert len(found.teaches) > 80
    assert 8 < len(found.lesson) < 50
    assert found.experiment.endswith((".", "?"))
    assert [one.node for one in found.nodes] == list(spec.nodes)
    assert all(len(one.does) > 12 for one in found.nodes)
    assert len(found.curves) >= 2
    assert found.cost.step_seconds > 0
    assert found.cost.memory_bytes > 0
    assert found.cost.is_whole == more.is_whole
    assert more.tags
    assert ("full size" in more.tags) == more.needs_gpus
    assert ("co-training" in more.tags) <= (len(more.learners) > 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_time_of_a_step_is_that_of_the_phase_that_is_shown_below_the_graph(name: str) -> None:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None
    shown = explain(spec)
    steps = {phase.name: phase.step_seconds for phase in shown.phases}

    cost = about(name).cost

    assert cost.step_seconds == steps[shown.main]
    assert cost.phase == (shown.main if len(steps) > 1 else None)


@pytest.mark.parametrize("name", NAMES)
def test_curves_to_expect_are_of_nodes_and_metrics_that_there_are(name: str) -> None:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None
    for curve in about(name).curves:
        node, _, metric = curve.metric.partition(".")
        assert node in spec.nodes, curve.metric
        known = getattr(spec.nodes[node], "metrics", METRICS.keys())
        assert metric in known or metric.rpartition(".")[2] in known, curve.metric
        assert metric in METRICS or metric.rpartition(".")[2].partition("@")[0] in {
            one.partition("@")[0] for one in PROBE_METRICS
        }


def test_what_a_node_does_follows_its_settings() -> None:
    spec = parse(presets.load_loop_text("grpo-arithmetic")).spec
    assert spec is not None
    before = describe_node(spec, "actor")

    fewer = presets.load_loop_text("grpo-arithmetic").replace(
        "completions_per_prompt: 8", "completions_per_prompt: 3"
    )
    changed = parse(fewer).spec
    assert changed is not None

    assert "8 answers" in before
    assert "3 answers" in describe_node(changed, "actor")
    assert "rewards of `exact` by GRPO" in before
