"""What runs report has one name everywhere: it is in the catalog, with what it should look like."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.algorithm_loops import algorithm_loop
from tests.engine.runs.conftest import load
from tests.engine.runs.test_evaluations import LOOP
from tests.engine.runs.test_every_node import CODING, JUDGES, SHAPES

from coloop.spec.metrics import METRICS, OF_KIND, described, metric_of
from coloop.validate import validate

PREFERENCES = """
coloop: 1
name: preferences
nodes:
  preferences:
    kind: dataset
    source: {type: task, task: preference}
    columns: {target: chosen}
    rows_per_step: 4
  scorer:
    kind: reward
    source: {type: model}
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: bradley_terry}
edges:
  - preferences.pairs -> scorer.pairs
schedule: {steps: 2}
hardware: {preset: cpu}
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [JUDGES, SHAPES, CODING, LOOP, PREFERENCES, algorithm_loop("ppo"), algorithm_loop("dpo")],
    ids=["judges", "shapes", "tools", "evaluations", "reward model", "ppo", "dpo"],
)
def test_every_metric_of_a_run_is_in_the_catalog(text: str, whole: Callable[[str], Any]) -> None:
    events = whole(text).of("metrics")

    told = {name for event in events if not event["evaluation"] for name in event["metrics"]}
    read = {name for event in events if event["evaluation"] for name in event["metrics"]}

    assert sorted(name for name in told if described(name) is None) == []
    assert sorted(name for name in read if metric_of(name) is None) == []
    assert told or read


@pytest.mark.parametrize(
    ("name", "shown"), [("dpo", {"kl", "entropy"}), ("orpo", {"entropy"}), ("sft", {"entropy"})]
)
def test_a_learner_without_scores_writes_what_may_be_watched_of_it(
    name: str, shown: set[str], whole: Callable[[str], Any]
) -> None:
    ended = whole(algorithm_loop(name))

    read = {one: ended.metrics("actor", one) for one in ("kl", "entropy", "clip_fraction")}
    assert {one for one, numbers in read.items() if numbers} == shown
    assert all(number > 0 for number in read["entropy"])


def test_what_a_kind_reports_is_in_the_catalog() -> None:
    assert {name for names in OF_KIND.values() for name in names} <= METRICS.keys()
    assert described("reward/exact") is METRICS["reward/<scorer>"]
    assert described("reward/mean") is METRICS["reward/mean"]
    assert described("class/0.5") is METRICS["class/<value>"]
    assert described("rewards") is None


def test_a_trigger_may_watch_what_a_scorer_says(runner: Callable[[str], Any], small: str) -> None:
    watched = "{when: {metric: brief.score/mean, above: -1.0}, do: {stop: true}}"
    text = (
        small.replace("length:", "brief:")
        .replace("length.", "brief.")
        .replace("-> length", "-> brief")
    )
    text = text.replace("schedule: {steps: 2}", f"schedule: {{steps: 2, triggers: [{watched}]}}")

    ended = runner(text)

    assert [one.describe() for one in validate(load(text)).diagnostics if one.is_error] == []
    assert ended.manifest()["timeline"]["step"] == 1
