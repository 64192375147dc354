"""An engine and a learner that take turns in one process: one sleeps while the other works."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.workers.test_worker import EDGES, NODES, learn, score, settings_of, write

from coloop.errors import StopRequested
from coloop.plan.compile import compile_plan
from coloop.spec.io import from_dict
from coloop.workers.messages import PromptRequest, Sampling
from coloop.workers.rollout import TorchEngine
from coloop.workers.worker import Worker

MakeHost = Callable[..., Worker]


@pytest.fixture
def make_host(tmp_path: Path) -> MakeHost:
    """The host of a small loop whose engine gives this back."""

    def make(sleep: str | None) -> Worker:
        settings = settings_of(NODES, EDGES, tmp_path)
        engines = [one.model_copy(update={"sleep": sleep}) for one in settings.weights[0].engines]
        weights = settings.weights[0].model_copy(update={"engines": tuple(engines)})
        host = Worker(replace(settings, weights=(weights, *settings.weights[1:])))
        host.build()
        return host

    return make


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What engines are told, in order."""
    found: list[str] = []

    def tell(word: str, name: str) -> None:
        as_it_is = getattr(TorchEngine, name)

        def telling(engine: TorchEngine, *arguments: Any, **options: Any) -> Any:
            found.append(f"{word} {options['with_weights']}" if options else word)
            return as_it_is(engine, *arguments, **options)

        monkeypatch.setattr(TorchEngine, name, telling)

    tell("sleep", "sleep")
    tell("wake", "wake")
    tell("load", "_take_weights")
    return found


@pytest.mark.parametrize(("sleep", "with_weights"), [("cache", False), ("weights", True)])
def test_it_sleeps_while_others_work_and_wakes_with_new_weights(
    sleep: str, with_weights: bool, make_host: MakeHost, told: list[str]
) -> None:
    host, other = make_host(sleep), make_host(None)
    first = write(host, 1.0)

    learn(host, first)
    after_learning = list(told)
    host.sync("actor")
    second = write(host, 1.0)

    learn(other, write(other, 1.0))
    other.sync("actor")
    assert after_learning == [f"sleep {with_weights}"]
    assert told[1:3] == ["load", "wake"]
    assert (second.version, second.text) == (1, write(other, 1.0).text)


def test_it_sleeps_once_however_many_work(make_host: MakeHost, told: list[str]) -> None:
    host = make_host("cache")
    tokens = write(host, 1.0)

    learn(host, tokens)
    learn(host, tokens)
    score(host, "actor", "actor", [], 1.0)

    assert told == ["sleep False"]


def test_what_is_being_written_keeps_its_engine_awake(
    make_host: MakeHost, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host("cache")
    tokens = write(host, 1.0)
    monkeypatch.setattr(
        "coloop.workers.rollout_generator.for_a_moment", lambda: lambda finished: True
    )
    request = PromptRequest(id="sums:0.0", prompt="1+1=", seeds=(1, 2))
    sampling = Sampling(max_new_tokens=40, on_sync="resume")

    begun = host.write("actor", "actor", [request], sampling)
    learn(host, tokens)
    while begun.unfinished:
        begun = host.write("actor", "actor", [], sampling)

    assert told == []


@pytest.mark.parametrize("reason", [StopRequested("stop"), MemoryError("short")])
def test_where_learning_breaks_off_the_engine_wakes_as_it_was(
    reason: Exception, make_host: MakeHost, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host("weights")
    before = write(host, 1.0)

    def fails(*arguments: Any, **options: Any) -> Any:
        raise reason

    monkeypatch.setattr("coloop.workers.training.single.SingleBackend.update", fails)
    with pytest.raises(type(reason)):
        learn(host, before)

    assert write(host, 1.0).text == before.text
    assert told == ["sleep True", "wake"]


def test_an_engine_that_fails_to_sleep_wakes_all_the_same(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host("cache")
    before = write(host, 1.0)

    def fails(engine: TorchEngine, *, with_weights: bool) -> None:
        raise MemoryError("no host memory for the weights")

    with monkeypatch.context() as broken:
        broken.setattr(TorchEngine, "sleep", fails)
        with pytest.raises(MemoryError):
            learn(host, before)

    assert write(host, 1.0).text == before.text
    learn(host, before)


@pytest.mark.parametrize(
    ("rollout", "hardware", "sleep"),
    [
        ({"completions_per_prompt": 4, "max_new_tokens": 8}, {"preset": "cpu"}, None),
        ({"completions_per_prompt": 256, "max_new_tokens": 2000}, {"preset": "cpu"}, "cache"),
        (
            {"completions_per_prompt": 256, "max_new_tokens": 120, "pool": "write"},
            {"preset": "cpu", "pools": {"main": {"workers": 1}, "write": {"workers": 1}}},
            None,
        ),
        ({"engine": "torch"}, {"preset": "1xH100"}, "cache"),
        ({"engine": "vllm"}, {"preset": "1xH100"}, "weights"),
        ({"engine": "vllm"}, {"preset": "cpu"}, None),
    ],
)
def test_what_it_gives_back_is_decided_with_a_reason(
    rollout: dict[str, Any], hardware: dict[str, Any], sleep: str | None
) -> None:
    model = {"type": "scratch", "architecture": "tiny-qwen3-wide"}
    nodes = {**NODES, "actor": {**NODES["actor"], "model": model, "rollout": rollout}}
    loop = {"coloop": 1, "name": "turns", "nodes": nodes, "edges": EDGES, "hardware": hardware}
    spec = from_dict({**loop, "schedule": {"steps": 1}}).spec
    assert spec is not None

    plan = compile_plan(spec)

    [engine] = plan.weights[0].engines
    told = [one for one in plan.decisions if one.path == "nodes.actor.sleep"]
    assert engine.sleep == sleep
    assert [one.value for one in told] == ([] if "pool" in rollout else [sleep])
