"""Rows that are learned later than they were written, under fractions of `max_staleness`: each is
corrected by how far the weights have come since, and none is lost, older than it may be or learned
twice, whatever else cuts or fills a step."""

import copy
import math
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.numerics import near
from tests.engine.smallest import AHEAD
from tests.matrix import also

from coloop.algorithms.batch import Sequence
from coloop.algorithms.recipes import policy
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.training import Scorer
from coloop.workers.worker import Worker

Run = Callable[..., Any]

PATIENCE = 120.0
STEPS = 10
TERMS = 10_000
"""More roundings than two passes of the smallest model over a row have."""

TEN = (
    AHEAD.replace("rows_per_step: 2", "rows_per_step: 10")
    .replace("completions_per_prompt: 2", "completions_per_prompt: 1")
    .replace("name: length, max: 3", "name: length, max: 9")
)
FAST = "training: {optimizer: {name: adamw, lr: 1.0e-2}}"
"""So fast that weights tell their versions apart."""

AGES = {
    # Step k + 1 is begun, five rows of ten, before step k is learned.
    0.5: lambda step: [0] * 10 if step == 1 else [1] * 5 + [0] * 5,
    # Step k + 1 is written whole and of step k + 2 three rows, before step k is learned.
    1.3: lambda step: [0] * 10 if step == 1 else [1] * 10 if step == 2 else [2] * 3 + [1] * 7,
}
"""Versions that each row of a step is behind the weights that learn from it."""

CALLS = {0.5: lambda update: 2 * update, 1.3: lambda update: 2 * update + 1}
"""Calls of the engine that are done or begun where an update may start."""


class Learning:
    """Watches a run: each update waits until all is written ahead of it that may be."""

    def __init__(self, staleness: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ages: list[list[int]] = []
        self.weights: list[dict[str, list[float]]] = []
        """By row, the weights with which the loss of its tokens was corrected; of each update."""
        self.expected: list[dict[str, list[float]]] = []
        self._most = {0.5: 2 * STEPS - 1, 1.3: 2 * STEPS - 2}[staleness]
        self._calls_before = CALLS[staleness]
        self._begun, self._changed = 0, threading.Condition()
        self._versions: dict[int, Scorer] = {}
        generate, learn, correct = Worker.generate, Worker.learn, policy._correction

        def generating(host: Worker, *arguments: Any) -> Any:
            found = generate(host, *arguments)
            with self._changed:
                self._begun += 1
                self._changed.notify_all()
            return found

        def learning(host: Worker, order: Any) -> Any:
            self._before(host, *order.items.values())
            return learn(host, order)

        def correcting(batch: Any, *arguments: Any) -> Any:
            found = correct(batch, *arguments)
            for name, row, mask in zip(batch.ids, found, batch.loss_mask, strict=True):
                self.weights[-1].setdefault(name, []).extend(row[mask].tolist())
            return found

        monkeypatch.setattr(Worker, "generate", generating)
        monkeypatch.setattr(Worker, "learn", learning)
        monkeypatch.setattr(policy, "_correction", correcting)

    def _before(self, host: Worker, rows: list[Sequence]) -> None:
        weights = host._homes["actor"].weights
        now = weights.version
        wanted = min(self._calls_before(now + 1), self._most)
        with self._changed:
            assert self._changed.wait_for(lambda: self._begun >= wanted, PATIENCE)
        self._versions[now] = Scorer(copy.deepcopy(weights.loaded.model))
        self.ages.append([now - row.version for row in rows])
        self.weights.append({})
        self.expected.append({row.id: self._correction(row, now) for row in rows})

    def _correction(self, row: Sequence, now: int) -> list[float]:
        """π of the weights that learn over π of those that wrote, at most 2."""
        assert row.log_probs_rollout is not None
        at_now, at_then = (
            self._versions[version].score([row])[0][row.loss_mask] for version in (now, row.version)
        )
        assert row.log_probs_rollout[row.loss_mask].tolist() == near(at_then.tolist(), terms=TERMS)
        ratios = [math.exp(float(one)) for one in at_now - at_then]
        return [min(one, 2.0) for one in ratios]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "algorithm",
    [
        "{name: reinforce, advantage: none}",
        "{name: grpo, advantage: none}",
    ],
    ids=["of the moment", "before the update"],
)
@pytest.mark.parametrize("staleness", [also(0.5), 1.3])
def test_each_row_is_corrected_by_how_far_the_weights_have_come_since(
    staleness: float, algorithm: str, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One loss takes the policy of the moment, the other that before the first of three steps."""
    is_cut = "grpo" in algorithm
    training = FAST.replace("{", "{mini_batch: 4, ", 1) if is_cut else FAST
    text = TEN.replace("{name: reinforce, advantage: none}", f"{algorithm}\n    {training}")
    seen = Learning(staleness, monkeypatch)

    ended = runner(text.replace("max_staleness: 1", f"max_staleness: {staleness}"))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert seen.ages == [AGES[staleness](step) for step in range(1, STEPS + 1)]
    moved = 0
    for ages, found, expected in zip(seen.ages, seen.weights, seen.expected, strict=True):
        assert sorted(found) == sorted(expected)
        for age, name in zip(ages, expected, strict=True):
            assert found[name] == near(expected[name], terms=TERMS)
            moved += age > 0 and found[name] != near([1.0] * len(found[name]), terms=TERMS)
            assert age > 0 or found[name] == near([1.0] * len(found[name]), terms=TERMS)
    assert moved > 40


KEPT = """
  keep: {kind: filter, keep: [{rule: regex, pattern: "SOME"}], fill: FILL}
edges:
  - actor.rollouts -> keep.rollouts
  - brief.scores -> keep.scores
  - keep.scores -> actor.rewards
"""
SOME = "[0-9]"
"""What a text must have to be learned from."""
FILLED = (
    TEN.replace("\nedges:", KEPT.rstrip("\n"))
    .replace("SOME", SOME)
    .replace("FILL", "{rows: 3, max_rounds: 20, surplus: keep}")
    .replace("  - brief.scores -> actor.rewards\n", "")
    .replace("rows_per_step: 10", "rows_per_step: 4")
    .replace("algorithm: {", f"{FAST.replace('{', '{mini_batch: 2, ', 1)}\n    algorithm: {{")
)
"""Some texts are thrown away and others are written until there are enough; an update is cut."""


class Rows:
    """What was written and learned; of a run that was stopped, what it has kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[str] = []
        self.learned: dict[int, list[Sequence]] = {}
        """By version of the weights before it, so what is learned again stands in its place."""
        self.ages: list[int] = []
        generate, learn = Worker.generate, Worker.learn

        def generating(host: Worker, *arguments: Any) -> Any:
            found = generate(host, *arguments)
            self.written += [one.text for reply in found for one in reply]
            return found

        def learning(host: Worker, order: Any) -> Any:
            version = host._homes["actor"].weights.version
            rows = list(*order.items.values())
            self.ages += [version - row.version for row in rows]
            self.learned[version] = rows
            return learn(host, order)

        monkeypatch.setattr(Worker, "generate", generating)
        monkeypatch.setattr(Worker, "learn", learning)

    @property
    def names(self) -> Counter[str]:
        return Counter(row.id for rows in self.learned.values() for row in rows)


@pytest.mark.sample(1)
@pytest.mark.parametrize("staleness", [0.5, 1.3])
def test_steps_that_are_filled_ahead_learn_every_text_that_is_kept_once(
    staleness: float, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(monkeypatch)

    ended = runner(FILLED.replace("max_staleness: 1", f"max_staleness: {staleness}"))

    assert ended.state is RunStateName.FINISHED, ended.error
    kept = [text for text in rows.written if re.search(SOME, text)]
    assert 0 < len(kept) < len(rows.written)
    assert sum(rows.names.values()) == len(kept)
    assert max(rows.names.values()) == 1
    assert all(len(found) >= 3 for found in rows.learned.values())
    assert sorted(rows.learned) == list(range(STEPS))
    assert 0 < max(rows.ages) <= math.ceil(staleness)
    assert "filter.not_filled" not in ended.alerts()


@pytest.mark.slow
@pytest.mark.parametrize("step", [3, 6])
@pytest.mark.parametrize("staleness", [0.5, 1.3])
def test_a_stop_while_a_step_is_filled_ahead_loses_nothing(
    staleness: float, step: int, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FILLED.replace("max_staleness: 1", f"max_staleness: {staleness}")
    rows = Rows(monkeypatch)

    def learns(event: dict[str, Any]) -> bool:
        is_learn = event.get("stage") == "actor.learn" and event["type"] == "stage.started"
        return is_learn and event["step"] == step

    ended = runner(text, stop_at=learns)
    assert ended.state is RunStateName.STOPPED, ended.error
    done = ended.manifest()["timeline"]["step"]
    drawn = ended.manifest()["roles"]["problems"]["drawn"]
    assert sorted(rows.learned) == list(range(done))

    rows.written.clear()
    went_on = runner(text, resume=ended)

    assert went_on.state is RunStateName.FINISHED, went_on.error
    assert sorted(rows.learned) == list(range(STEPS))
    assert max(rows.names.values()) == 1
    kept = [text for text in rows.written if re.search(SOME, text)]
    later = [one for version, found in rows.learned.items() if version >= done for one in found]
    assert len(later) == len(kept)
    assert went_on.manifest()["roles"]["problems"]["drawn"] == drawn + len(rows.written)
    assert max(rows.ages) <= math.ceil(staleness)
