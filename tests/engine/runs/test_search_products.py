"""Searches of every method together with what else a step can have: probes, refills, rows that are
written a step ahead, stops in the middle."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.test_resume import at_stage
from tests.engine.runs.test_search import PROMPTS, PROOFS, RIGHT, TEXTS, TREES

from coloop.runtime.roles.searching.graders import SearchEnvironment
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.worker import Worker

Run = Callable[..., Any]

LOOPS = {"monte_carlo": TEXTS, "binary_search": PROMPTS, "puct": TREES, "and_or": PROOFS}
METHODS = pytest.mark.parametrize("method", LOOPS)

HELD_OUT = """  held_out:
    kind: dataset
    source: {type: task, task: arithmetic, split: test, size: 4}
    rows_per_step: 2
  probe: {kind: evaluate, instead_of: problems, every: 2, metrics: [score]}
edges:
  - held_out.rows -> probe.rows
  - tree.scores -> probe.scores
"""
TWO_POOLS = "hardware: {preset: cpu, pools: {train: {workers: 1}, write: {workers: 1}}}"


def probed(text: str) -> str:
    """The same loop with a reading on other rows."""
    return text.replace("edges:\n", HELD_OUT, 1)


def ahead(text: str) -> str:
    """The same loop, which searches a step ahead of what it learns."""
    text = text.replace("hardware: {preset: cpu}", TWO_POOLS)
    text = text.replace("schedule: {steps: ", "schedule: {max_staleness: 1, steps: ")
    text = text.replace("kind: actor\n", "kind: actor\n    pool: train\n")
    text = text.replace("rollout: {", "rollout: {pool: write, ")
    return text.replace(
        "kind: verifier\n    method: disc", "kind: verifier\n    pool: train\n    method: disc"
    )


@pytest.mark.slow
@METHODS
def test_a_probe_searches_other_rows_and_changes_nothing(
    method: str, runner: Run, equal: Callable[..., bool]
) -> None:
    plain, read = runner(LOOPS[method]), runner(probed(LOOPS[method]))

    assert read.state is RunStateName.FINISHED, read.error
    assert len(read.metrics("probe", "score")) >= 2
    assert all(0.0 <= score <= 1.0 for score in read.metrics("probe", "score"))
    assert equal(plain.weights(), read.weights())


@pytest.mark.slow
@METHODS
def test_a_search_a_step_ahead_is_the_same_each_time(
    method: str, runner: Run, equal: Callable[..., bool]
) -> None:
    first, again = runner(ahead(LOOPS[method])), runner(ahead(LOOPS[method]))

    assert first.state is RunStateName.FINISHED, first.error
    assert equal(first.weights(), again.weights())


ALONE = PROOFS.replace(
    "  value: {kind: critic, model: {type: shared, with: prover}, algorithm: {name: regression}}\n",
    "",
).replace("  - value.check -> tree.value\n", "")
ALONE = ALONE.replace("  - tree.step_scores -> value.labels\n", "")


@pytest.mark.slow
def test_a_tree_is_grown_by_one_version_of_the_weights(
    runner: Run, equal: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether learning ends while the next search is at work, or long after it."""
    learn, move = Worker.learn, SearchEnvironment.move
    pause = 0.0

    def slowly(*given: Any) -> Any:
        time.sleep(0.02)
        return move(*given)

    def late(*given: Any, **named: Any) -> Any:
        time.sleep(pause)
        return learn(*given, **named)

    monkeypatch.setattr(Worker, "learn", late)
    monkeypatch.setattr(SearchEnvironment, "move", slowly)
    searching = runner(ahead(ALONE))
    monkeypatch.setattr(SearchEnvironment, "move", move)

    pause = 0.5
    learning = runner(ahead(ALONE))

    assert learning.state is RunStateName.FINISHED, learning.error
    assert equal(learning.weights(), searching.weights())


KEPT = """  kept:
    kind: filter
    keep: [{rule: regex, column: completion, pattern: "[a-z0-9]"}]
    fill: {rows: 99, max_rounds: 2}
edges:
  - tree.rollouts -> kept.rollouts
"""
FIELDS = {
    "monte_carlo": "completions: 2",
    "binary_search": "completions: 2",
    "puct": "expand: {samples: 2}",
}


def refilled(method: str) -> str:
    """A loop that searches once more for what is kept of it, and imitates all of that."""
    text = ALONE.replace("tree.rollouts -> prover", "kept.rollouts -> prover")
    text = text.replace("edges:\n", KEPT, 1).replace("steps: 3", "steps: 2")
    if method == "and_or":
        return text
    before, _, rest = text.partition("  kernel:")
    edges = rest[rest.index("  kept:") :].replace("kernel.tool -> tree.tools", CHECKED)
    tree = f"""  right: {{kind: reward, source: {RIGHT}}}
  tree:
    kind: search
    method: {method}
    {FIELDS[method]}
    step_separator: "1"
    budget: {{searches_per_row: 4, tokens: 900}}
"""
    return before.replace("max_new_tokens: 2", "max_new_tokens: 12") + tree + edges


CHECKED = "right.check -> tree.outcome"


@pytest.mark.sample(1)
@METHODS
def test_a_refill_searches_again_and_all_that_is_kept_is_learned(
    method: str, runner: Run, equal: Callable[..., bool]
) -> None:
    whole = runner(refilled(method))

    assert whole.state is RunStateName.FINISHED, whole.error
    for step in (1, 2):
        assert whole.stages(step).count("tree.generate") == 2
        kept = [
            one["samples"] for one in whole.of("stage.finished", stage="kept.prepare", step=step)
        ]
        learned = whole.of("stage.finished", stage="prover.learn", step=step)
        assert sum(one["samples"] for one in learned) == sum(kept) > 0

    stopped = runner(refilled(method), stop_at=at_stage("tree.generate", 2))
    resumed = runner(refilled(method), resume=stopped)
    assert equal(resumed.weights(), whole.weights())


SLOW = "import time\\ndef reward(prompts, completions, **columns):\\n    time.sleep(0.02)\\n"
ASKED_TWICE = {
    "python": f'{{type: python, code: "{SLOW}    return [len(c) % 2 for c in completions]\\n"}}',
    "library": "{type: builtin, name: math_equal}",
}
BESIDE = (
    TEXTS.replace(RIGHT, "SOURCE")
    .replace(
        "48}\n", "48}\n    algorithm: {name: grpo}\n    training: {optimizer: {name: adamw}}\n"
    )
    .replace("edges:\n", "edges:\n  - policy.rollouts -> right.rollouts\n", 1)
    .replace("edges:\n", "edges:\n  - right.scores -> policy.rewards\n", 1)
)
"""The policy learns from what the search asks for."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("source", ASKED_TWICE)
def test_a_reward_scores_rows_while_a_search_asks_it(source: str, runner: Run) -> None:
    ended = runner(BESIDE.replace("SOURCE", ASKED_TWICE[source]))

    assert ended.state is RunStateName.FINISHED, ended.error


STUCK = "kind = sum(map(ord, action)) % 4", "while True: pass"


def test_a_stop_is_obeyed_while_a_tree_waits_for_its_environment(runner: Run) -> None:
    text = PROOFS.replace(*STUCK).replace(
        "type: environment", "type: environment\n    timeout_seconds: 3000"
    )
    asked: list[float] = []

    def stop(event: dict[str, Any]) -> bool:
        is_searching = event["type"] == "stage.started" and event["stage"] == "tree.generate"
        asked.extend([time.monotonic()] * is_searching)
        return is_searching

    stopped = runner(text, stop_at=stop)

    assert stopped.state is RunStateName.STOPPED
    assert time.monotonic() - asked[0] < 60
