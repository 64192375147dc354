"""New weights come while texts are unfinished: what becomes of these, how old they are, and that no
row is lost or learned twice."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.smallest import AHEAD

from coloop.runtime.run_files.events import RunStateName
from coloop.workers import writing
from coloop.workers.cluster.ranks import RanksCall
from coloop.workers.messages import LearnRequest
from coloop.workers.worker import Worker

Run = Callable[..., Any]

PATIENCE = 120.0
STEPS = 5
STREAMED = AHEAD.replace("schedule: {steps: 10, max", "schedule: {stream: true, steps: 10, max")


def loop(on_sync: str, text: str = AHEAD) -> str:
    """Texts of up to 40 tokens, a step ahead of weights that move far."""
    algorithm = "algorithm: {name: reinforce, advantage: none}"
    training = "training: {optimizer: {name: adamw, lr: 1.0e-2}}"
    text = text.replace(algorithm, f"{algorithm}\n    {training}")
    digits = "type: builtin, name: regex, pattern: '([0-9])', scale: [0, 9]"
    text = text.replace("type: builtin, name: length, max: 3", digits)
    text = text.replace("max_new_tokens: 3", f"max_new_tokens: 40, on_sync: {on_sync}")
    return text.replace("steps: 10", f"steps: {STEPS}")


class Meeting:
    """Every text but those of the first step is begun, and goes on when the weights of the step
    before are on their way or there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.orders: list[LearnRequest] = []
        self.unfinished: list[int] = []
        """Texts of each step that were not finished when the new weights came."""
        self._waits_for = "receive"
        self._done: dict[str, int] = {"send": 0, "receive": 0}
        self._generation = 0
        self._changed = threading.Condition()
        call, learn = RanksCall.__call__, Worker.learn

        def calling(asking: RanksCall, pool: str, called: Any, *arguments: Any) -> Any:
            method = called.__name__
            if method == "write":
                self._before_writing(bool(arguments[2]))
            found: Any = call(asking, pool, called, *arguments)
            if method == "write" and arguments[2]:
                self.unfinished.append(found.unfinished)
            with self._changed:
                if method in self._done:
                    self._done[method] += 1
                    self._changed.notify_all()
            return found

        def learning(host: Worker, order: LearnRequest) -> Any:
            self.orders.append(order)
            return learn(host, order)

        monkeypatch.setattr(RanksCall, "__call__", calling)
        monkeypatch.setattr(Worker, "learn", learning)
        monkeypatch.setattr(writing, "SLICE_SECONDS", 0.0)
        monkeypatch.setattr(writing, "SOON_SECONDS", 0.0)

    def waits_for(self, method: str) -> None:
        self._waits_for = method

    def _before_writing(self, is_new: bool) -> None:
        with self._changed:
            if is_new:
                self._generation += 1
                return
            wanted, what = self._generation - 1, self._waits_for
            assert self._changed.wait_for(lambda: self._done[what] >= wanted, PATIENCE)


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Meeting:
    return Meeting(monkeypatch)


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [AHEAD, STREAMED], ids=["whole", "stream"])
@pytest.mark.parametrize("on_sync", ["finish", "resume", "drop"])
def test_unfinished_texts_become_what_the_loop_says(
    on_sync: str, text: str, meeting: Meeting, runner: Run
) -> None:
    if on_sync == "finish":
        meeting.waits_for("send")  # they come only when the texts are finished

    ended = runner(loop(on_sync, text))

    assert ended.state is RunStateName.FINISHED, ended.error
    going = [one / 4 for one in meeting.unfinished[1:]]
    assert on_sync == "finish" or (all(going) and len(going) == STEPS - 1)
    late = [1 - one for one in going] if on_sync == "drop" else [1.0] * (STEPS - 1)
    assert ended.metrics("actor", "staleness") == [0.0, *late]
    mixed = ended.metrics("actor", "rollout/mixed")
    assert mixed == ([0.0, *going] if on_sync == "resume" else [])
    rows = [item.id for order in meeting.orders for items in order.items.values() for item in items]
    assert len(rows) == 4 * STEPS
    assert ended.manifest()["roles"]["problems"]["drawn"] == 2 * STEPS


@pytest.mark.sample(1)
@pytest.mark.parametrize("on_sync", ["resume", "drop"])
def test_log_probs_are_those_of_the_weights_that_drew(
    on_sync: str, meeting: Meeting, runner: Run
) -> None:
    """What old weights drew differs from what the learner says of it; what its own version drew
    does not."""
    ended = runner(loop(on_sync))

    mismatch = ended.metrics("actor", "mismatch/max")
    late = ended.metrics("actor", "staleness/max")
    assert [one > 1e-4 for one in mismatch] == [age > 0 for age in late]
    assert on_sync == "drop" or sum(late) == STEPS - 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("on_sync", ["resume", "drop"])
def test_a_stop_while_texts_go_on_loses_nothing(on_sync: str, runner: Run) -> None:
    def is_here(event: dict[str, Any]) -> bool:
        is_sync = event["type"] == "stage.started" and event.get("stage") == "actor.sync"
        return is_sync and event["step"] == 3

    ended = runner(loop(on_sync), stop_at=is_here)

    assert ended.state is RunStateName.STOPPED, ended.error
    done = ended.manifest()["timeline"]["step"]
    assert ended.manifest()["roles"]["problems"]["drawn"] == 2 * done
    went_on = runner(loop(on_sync), resume=ended)
    assert went_on.state is RunStateName.FINISHED, went_on.error
    assert went_on.manifest()["roles"]["problems"]["drawn"] == 2 * STEPS


@pytest.mark.slow
def test_in_a_synchronous_loop_it_changes_nothing(runner: Run) -> None:
    plain = runner(loop("finish").replace("max_staleness: 1", "max_staleness: 0"))

    for on_sync in ("resume", "drop"):
        other = runner(loop(on_sync).replace("max_staleness: 1", "max_staleness: 0"))
        left, right = plain.weights(), other.weights()
        assert all(left[name].equal(right[name]) for name in left)
