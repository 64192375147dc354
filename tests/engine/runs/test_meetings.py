"""New weights from process to process, past folders and the driver: what is learned is the same,
and nobody waits for an end that does not come."""

import json
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from tests.engine.rank_processes import ranks_of
from tests.engine.runs.test_ranks import (
    LOOP,
    begins,
    check_same_weights,
    finished,
    pool_of,
    pools_of,
)
from torch import Tensor

from coloop.errors import WeightsNotUpdated, WorkerDied
from coloop.plan.compile import compile_plan
from coloop.plan.settings.engines import Engines
from coloop.runtime.checkpoints.recovery import REPLACED
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.io import from_dict
from coloop.workers.sync import GroupChannel, WeightChecksum, WeightTransfer
from coloop.workers.sync.folders import TransferFolders
from coloop.workers.weight_sync import WeightSync

PATIENCE = 60.0


@pytest.fixture
def over_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between CPUs as it is between GPUs."""
    as_it_is = Engines._channel

    def channel(engines: Engines, *arguments: Any) -> str:
        found = as_it_is(engines, *arguments)
        return "gloo" if found == "files" else found

    monkeypatch.setattr(Engines, "_channel", channel)


@pytest.mark.slow
@pytest.mark.parametrize("writers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_engines_elsewhere_get_what_one_beside_its_trainer_would(
    writers: int,
    over_gloo: None,
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[int] = []
    deliver = GroupChannel.deliver

    def delivering(channel: GroupChannel, transfer: WeightTransfer) -> None:
        given.append(transfer.place.receivers)
        deliver(channel, transfer)

    monkeypatch.setattr(GroupChannel, "deliver", delivering)
    rollout = {"completions_per_prompt": 4, "max_new_tokens": 6}
    apart = {
        "hardware.pools": {"train": {"workers": 1}, "write": {"workers": writers}},
        "nodes.actor.pool": "train",
        "nodes.start.pool": "train",
        "nodes.actor.rollout": {**rollout, "pool": "write"},
    }

    ended = runner(tiny("grpo-arithmetic", apart))

    assert ended.state is RunStateName.FINISHED, ended.error
    together = whole(tiny("grpo-arithmetic", {"nodes.actor.rollout": rollout}))
    assert equal(ended.weights(), together.weights())
    assert len(given) >= 3
    assert set(given) == {writers}
    [engine] = ended.plan()["weights"][0]["engines"]
    assert (engine["pool"], engine["channel"]) == ("write", "gloo")


@pytest.fixture
def ends(over_gloo: None) -> Iterator[dict[str, GroupChannel]]:
    found = {name: GroupChannel("gloo") for name in ("train", "left", "right")}
    yield found
    for end in found.values():
        end.close()


def test_where_one_end_does_not_come_no_other_waits_and_the_next_sync_goes_on(
    ends: dict[str, GroupChannel],
) -> None:
    """The pool `right` dies before it receives, and is another process afterwards."""
    weights = [("a", torch.randn(3, 5)), ("b", torch.randn(7))]
    came: dict[str, dict[str, Tensor]] = {}
    is_dead = threading.Event()
    is_dead.set()

    def call(pool: str, method: Any, *arguments: Any) -> Any:
        said = WeightChecksum(
            version=1, fingerprint=None, scores=torch.zeros(1, 1).double().numpy()
        )
        if method.__name__ == "invite":
            ends["train"].invite(*arguments[2:5])
            return ends["train"].send(weights, version=1), None
        if method.__name__ == "deliver":
            ends["train"].deliver(arguments[1])
            return said
        if pool == "right" and is_dead.is_set():
            raise WorkerDied("the process of right has ended")
        came[pool] = dict(ends[pool].receive(arguments[1]))
        return said

    weight_sync = WeightSync(plan_of("left", "right"), TransferFolders([]))
    failed: list[BaseException] = []
    first = threading.Thread(target=lambda: failed.append(_error(weight_sync, call)))
    first.start()
    first.join(PATIENCE)

    assert not first.is_alive()
    assert isinstance(failed[0], WorkerDied)
    is_dead.clear()
    ends["right"] = GroupChannel("gloo")
    weight_sync.pool_is_new("right")
    weight_sync.sync(call, "actor")
    assert came.keys() == {"left", "right"}
    for one in came.values():
        assert all(torch.equal(one[name], weight) for name, weight in weights)


def _error(weight_sync: WeightSync, call: Any) -> BaseException:
    with pytest.raises((WorkerDied, WeightsNotUpdated)) as caught:
        weight_sync.sync(call, "actor")
    return caught.value


def plan_of(*pools: str) -> Any:
    """A plan in which a trained group writes in these pools."""
    nodes = {
        "sums": {"kind": "dataset", "source": {"type": "inline", "rows": [{"prompt": "1+1="}]}},
        "actor": {
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"pool": "write"},
            "algorithm": {"rewards": {"name": "grpo"}},
        },
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    hardware = {"preset": "cpu", "pools": {"main": {"workers": 1}, "write": {"workers": 1}}}
    loop = {"coloop": 1, "name": "ends", "nodes": nodes, "edges": edges, "hardware": hardware}
    spec = from_dict({**loop, "schedule": {"steps": 1}}).spec
    assert spec is not None
    plan = compile_plan(spec)
    [engine] = plan.weights[0].engines
    engines = tuple(engine.model_copy(update={"pool": pool}) for pool in pools)
    weights = plan.weights[0].model_copy(update={"engines": engines, "pool": "train"})
    named = [SimpleNamespace(name=pool, workers=1) for pool in ("train", *pools)]
    return SimpleNamespace(weights=(weights,), pools=named)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rank",
    [pytest.param(1, id="who gives", marks=pytest.mark.slow), pytest.param(3, id="who takes")],
)
def test_a_rank_that_dies_while_weights_are_given_is_replaced(
    rank: int,
    over_gloo: None,
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
) -> None:
    """It stands still from before the meeting, so that nobody gets through, and is killed in it."""
    text = tiny(LOOP, {**pools_of(2, 2), "run.checkpoint_every": 2})
    halted: list[psutil.Process] = []

    def watch(what: str, line: str) -> None:
        told = json.loads(line)
        if what == "event" and not halted and begins(5, "actor.sync")(told):
            halted.append(ranks_of(psutil.Process())[rank])
            halted[0].suspend()
        at_work = [one["stage"] for one in told.get("at_work", ())]
        if "actor.sync" in at_work and halted and halted[0].is_running():
            halted[0].kill()

    ended = runner(text, more_sinks=[watch])

    [weights] = [one for one in ended.plan()["weights"] if one["name"] == "actor"]
    assert {one["channel"] for one in weights["engines"]} == {"gloo"}
    [alert] = [one for one in ended.of("alert") if one["code"] == REPLACED]
    assert f"pool {'train' if rank == 1 else 'write'}, rank 1 of 2" in alert["message"]
    check_same_weights(finished(ended), whole(tiny(LOOP, pool_of(1))))
