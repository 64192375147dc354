"""A stage whose memory is short is done once more with half at once, and learns the same."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from coloop.runtime.checkpoints.recovery import REPLACED
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.cluster import Deadlines
from coloop.workers.cpu.lean_cache import LeanCache
from coloop.workers.training.forward import TokenModel
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]

PEBIBYTE = 1 << 50
WHAT_TORCH_SAYS = "can't allocate memory"


def ask_too_much() -> None:
    """What torch does where memory is short, for real: no process has so many addresses."""
    torch.empty(PEBIBYTE, dtype=torch.uint8)


def passes_fit(monkeypatch: pytest.MonkeyPatch, rows: int, *, learning: bool) -> None:
    """A forward pass has room for so many rows, where it learns or where it scores."""
    outputs = TokenModel.outputs

    def short(model: TokenModel, batch: Any, *arguments: Any, **options: Any) -> Any:
        if torch.is_grad_enabled() is learning and batch.size > rows:
            ask_too_much()
        return outputs(model, batch, *arguments, **options)

    monkeypatch.setattr(TokenModel, "outputs", short)


def texts_fit(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """An engine has room for so many texts."""
    reserve = LeanCache.reserve

    def short(cache: LeanCache, slots: int, length: int, running: int) -> None:
        if slots > rows:
            ask_too_much()
        reserve(cache, slots, length, running)

    monkeypatch.setattr(LeanCache, "reserve", short)


def with_rows(text: str, *, learned: int | None = None, written: int | None = None) -> str:
    """The small loop with so many rows in a micro-batch, or texts at once."""
    if learned is not None:
        here = "algorithm: {name: grpo}"
        text = text.replace(here, f"{here}\n    training: {{micro_batch: {learned}}}")
    if written is not None:
        text = text.replace("max_new_tokens: 3", f"max_new_tokens: 3, max_num_seqs: {written}")
    return text


def short_of_memory(ended: Any) -> list[dict[str, Any]]:
    """The alerts of what was done once more."""
    return [one for one in ended.of("alert") if one["code"] == "run.out_of_memory"]


def test_an_update_is_done_once_more_with_half_the_micro_batch(
    runner: Run, small: str, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = whole(with_rows(small, learned=2))
    fours = whole(with_rows(small, learned=4))
    passes_fit(monkeypatch, 2, learning=True)

    ended = runner(with_rows(small, learned=4))

    assert ended.state is RunStateName.FINISHED, ended.error
    [alert] = short_of_memory(ended)
    assert (alert["node"], alert["level"], alert["step"]) == ("actor", "warning", 1)
    assert WHAT_TORCH_SAYS in alert["message"]
    assert "4 rows at once" in alert["message"]
    assert "later calls" in alert["message"]
    assert equal(ended.weights(), halves.weights())
    for name in ("loss", "grad_norm"):
        assert ended.metrics("actor", name)[:1] == pytest.approx(
            fours.metrics("actor", name)[:1], rel=1e-4, abs=1e-6
        )


def test_where_tokens_are_counted_half_of_them_is_learned_at_once(
    runner: Run, small: str, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(small).metrics("actor", "grad_norm")
    passes_fit(monkeypatch, 2, learning=True)

    ended = runner(small)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert [one["step"] for one in short_of_memory(ended)] == [1]
    assert ended.metrics("actor", "grad_norm")[:1] == pytest.approx(expected[:1], rel=1e-4)


def test_texts_are_written_once_more_half_of_them_at_once(
    runner: Run, small: str, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts_fit(monkeypatch, 2)

    ended = runner(small)

    assert ended.state is RunStateName.FINISHED, ended.error
    [alert] = short_of_memory(ended)
    assert alert["node"] == "actor"
    assert "in generate of actor" in alert["message"]
    monkeypatch.undo()
    assert equal(ended.weights(), whole(with_rows(small, written=2)).weights())


@pytest.mark.slow
def test_texts_are_scored_once_more_half_of_them_at_once(
    runner: Run, tiny: Text, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tiny("grpo-arithmetic")
    expected = whole(text).metrics("actor", "kl")
    passes_fit(monkeypatch, 8, learning=False)

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    nodes = [one["node"] for one in short_of_memory(ended)]
    assert sorted(nodes) == ["actor", "start"], "what compares with the old policy is scored too"
    assert ended.metrics("actor", "kl")[0] == pytest.approx(expected[0], rel=1e-3, abs=1e-6)


@pytest.mark.slow
def test_where_other_ranks_wait_for_it_the_run_goes_on_from_its_checkpoint_with_half(
    runner: Run, small: str, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is where they wait in a reduction: their pool has ended when it is asked."""
    halves = whole(with_rows(small, learned=2))
    has_changed, asked = Worker.has_changed, itertools.count(1)

    def ended_pool(host: Worker, group: str) -> bool:
        if next(asked) == 1:
            raise SystemExit(1)
        return has_changed(host, group)

    monkeypatch.setattr(Worker, "has_changed", ended_pool)
    passes_fit(monkeypatch, 2, learning=True)

    ended = runner(with_rows(small, learned=4))

    assert ended.state is RunStateName.FINISHED, ended.error
    [alert] = short_of_memory(ended)
    assert "4 rows at once" in alert["message"]
    assert [one["code"] for one in ended.of("alert")].count(REPLACED) == 1
    assert equal(ended.weights(), halves.weights())


SHORT_ON_RANK_1 = """
import importlib.abc, importlib.util, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "coloop.workers.training.forward":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            import torch
            outputs = module.TokenModel.outputs

            def short(model, batch, *arguments, **options):
                found = outputs(model, batch, *arguments, **options)
                if torch.is_grad_enabled() and batch.size > 1 and torch.distributed.get_rank():
                    torch.empty(1 << 50, dtype=torch.uint8)
                return found

            module.TokenModel.outputs = short

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
"""Read by the processes of the ranks as they start."""


@pytest.mark.slow
def test_memory_that_is_short_on_one_of_two_ranks_costs_the_steps_since_the_checkpoint(
    runner: Run, small: str, equal: Equal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = small.replace("{preset: cpu}", "{preset: cpu, pools: {main: {workers: 2}}}")
    halves = runner(with_rows(two, learned=1))
    (tmp_path / "sitecustomize.py").write_text(SHORT_ON_RANK_1, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    ended = runner(with_rows(two, learned=4), deadlines=Deadlines(settle_seconds=2.0))

    assert ended.state is RunStateName.FINISHED, ended.error
    [alert] = short_of_memory(ended)
    assert "2 rows at once" in alert["message"]
    assert [one["code"] for one in ended.of("alert")].count(REPLACED) == 1
    assert equal(ended.weights(), halves.weights())


def test_one_row_that_does_not_fit_ends_the_run(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes_fit(monkeypatch, 0, learning=True)

    ended = runner(with_rows(small, learned=2))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "run.out_of_memory"
    assert WHAT_TORCH_SAYS in ended.error.message
    assert len(short_of_memory(ended)) == 1
