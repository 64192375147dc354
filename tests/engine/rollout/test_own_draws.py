"""The draws inside vLLM, without vLLM: what they make of a batch's logits."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from coloop.workers.rollout.sampling import KEEP_ALL, Settings, draw, uniforms

VOCABULARY = 50
ONE_WAY, SWAP = "one way", "swap"
GIVEN: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"top_p": 0.8},
    {"temperature": 1.3, "top_k": 9},
    {"temperature": 0.0, "greedy": True},
]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that runs in vLLM's worker; where vLLM is not installed, beside names of it."""
    name = "coloop.workers.rollout.vllm_worker"
    if find_spec("vllm") is None:
        reload = ModuleType("vllm.model_executor.model_loader.reload")
        reload.finalize_layerwise_reload = None  # type: ignore[attr-defined]
        processors = ModuleType("vllm.v1.sample.logits_processor")
        processors.LogitsProcessor = object  # type: ignore[attr-defined]
        processors.BatchUpdate = SimpleNamespace  # type: ignore[attr-defined]
        processors.MoveDirectionality = SimpleNamespace(SWAP=SWAP)  # type: ignore[attr-defined]
        distributed = ModuleType("vllm.distributed")
        alone = SimpleNamespace(world_size=1)
        distributed.get_tp_group = lambda: alone  # type: ignore[attr-defined]
        executors = ModuleType("vllm.v1.executor.uniproc_executor")
        executors.ExecutorWithExternalLauncher = object  # type: ignore[attr-defined]
        for module in (reload, processors, distributed, executors):
            parts = module.__name__.split(".")
            for end in range(1, len(parts)):
                parent = ".".join(parts[:end])
                monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
            monkeypatch.setitem(sys.modules, module.__name__, module)
    sys.modules.pop(name, None)
    yield import_module(name)
    sys.modules.pop(name, None)


class Batch:
    """vLLM's batch: which request stands where, and the tokens that each has."""

    def __init__(self, worker: Any) -> None:
        self.draws = worker.SeededSampler(None, torch.device("cpu"), False)
        self.rows: dict[int, tuple[dict[str, Any] | None, list[int]]] = {}
        self._worker = worker
        self._generator = torch.Generator().manual_seed(7)

    def update(
        self,
        *,
        added: dict[int, dict[str, Any] | None] | None = None,
        removed: tuple[int, ...] = (),
        moved: tuple[tuple[int, int, str], ...] = (),
        written: int = 0,
    ) -> None:
        for place in removed:
            del self.rows[place]
        news = []
        for place, given in (added or {}).items():
            self.rows[place] = (given, list(range(written)))
            extra = None if given is None else {self._worker.DRAW: given}
            news.append((place, SimpleNamespace(extra_args=extra), None, self.rows[place][1]))
        swap = self._worker.MoveDirectionality.SWAP
        directions = []
        for source, target, direction in moved:
            before = self.rows.pop(target, None)
            self.rows[target] = self.rows.pop(source)
            if direction == SWAP and before is not None:
                self.rows[source] = before
            directions.append((source, target, swap if direction == SWAP else ONE_WAY))
        update = SimpleNamespace(removed=removed, added=news, moved=directions)
        self.draws.update_state(update)

    def step(self, unfinished: tuple[int, ...] = ()) -> None:
        """One token for each row but for those whose prompts are read only in part."""
        logits = torch.randn(len(self.rows), VOCABULARY, generator=self._generator) * 3
        expected = torch.stack([self._expected(place, logits[place]) for place in self.places()])

        found = self.draws.apply(logits.clone())

        assert torch.equal(found, expected)
        for place in self.places():
            if place not in unfinished:
                self.rows[place][1].append(int(found[place].argmax()))
        self.draws.update_state(None)

    def places(self) -> list[int]:
        assert sorted(self.rows) == list(range(len(self.rows)))
        return sorted(self.rows)

    def _cuts(self) -> bool:
        asked = [one for one, _ in self.rows.values() if one is not None and not one["greedy"]]
        return any(one["top_p"] < 1 or one["top_k"] for one in asked)

    def _expected(self, place: int, logits: Tensor) -> Tensor:
        given, output = self.rows[place]
        if given is None:
            return logits
        tokens, log_probs = drawn_alone(logits, given, given["start"] + len(output))
        row = torch.full_like(logits, -torch.inf)
        token = int(tokens)
        row[token] = log_probs[0, 0]
        if log_probs.shape[1] == 2 and self._cuts():
            row[(token + 1) % VOCABULARY] = 2 * row[token] - log_probs[0, 1] - 1
        return row


def drawn_alone(logits: Tensor, given: dict[str, Any], number: int) -> tuple[Tensor, Tensor]:
    settings = Settings(
        inverse_temperature=torch.tensor([1 / (given["temperature"] or 1.0)]),
        greedy=torch.tensor([given["greedy"]]),
        top_p=torch.tensor([given["top_p"] if given["top_p"] < 1 else KEEP_ALL]),
        top_k=torch.tensor([given["top_k"] or VOCABULARY]),
    )
    uniform = uniforms([given["seed"]], 1, starts=[number])[:, 0]
    return draw(logits[None].clone(), uniform, settings)


def given(seed: int, start: int = 0, **options: Any) -> dict[str, Any]:
    plain = {"temperature": 1.0, "top_p": 1.0, "top_k": None, "greedy": False}
    return {"seed": seed, "start": start, **plain, **options}


def mixed(seed: int, start: int = 0) -> dict[str, Any]:
    return given(seed, start, **GIVEN[seed % len(GIVEN)])


def test_rows_that_come_go_and_move_get_the_draws_of_their_seeds(worker: Any) -> None:
    batch = Batch(worker)
    batch.update(added={place: mixed(place, start=3 * place) for place in range(5)})
    batch.step()
    batch.step(unfinished=(2, 4))
    batch.step()
    batch.update(removed=(1,), moved=((4, 1, ONE_WAY),))
    batch.step()
    batch.update(moved=((0, 3, SWAP),), added={4: mixed(9)}, written=6)
    batch.step()
    batch.step()


def test_rows_that_are_scored_are_left_as_they_are(worker: Any) -> None:
    batch = Batch(worker)
    batch.update(added={0: mixed(1), 1: None, 2: mixed(3), 3: None})
    batch.step()
    batch.update(removed=(0, 2), moved=((3, 0, ONE_WAY),))
    batch.step()


def test_many_steps_get_the_draws_one_after_the_other(worker: Any) -> None:
    batch = Batch(worker)
    batch.update(added={0: given(5, start=7), 1: given(6)})

    for _ in range(2 * worker.AHEAD + 3):
        batch.step()


def test_numbers_are_computed_once_for_many_steps(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch(worker)
    batch.update(added={0: given(5), 1: given(6)})
    computed: list[int] = []

    def counted(seeds: list[int], draws: int, *rest: Any, **options: Any) -> Tensor:
        computed.append(draws)
        return uniforms(seeds, draws, *rest, **options)

    monkeypatch.setattr(worker, "uniforms", counted)
    for _ in range(worker.AHEAD + 1):
        batch.step()

    assert computed == [worker.AHEAD] * 2


def test_the_log_prob_after_the_cut_is_read_from_the_second_value(worker: Any) -> None:
    before, after = -1.5, -0.25
    values = [before, before, 2 * before - after - 1]

    assert worker.log_probs_of([7, 7, 8], values) == (before, after)


class Counted(TorchDispatchMode):
    """Operations on tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_a_step_takes_as_many_operations_however_many_rows_it_has(worker: Any) -> None:
    """Python has to launch each; on a GPU that costs more than what a small one computes."""
    counts = []
    for rows in (2, 8, 64):
        batch = Batch(worker)
        batch.update(added={row: given(row) for row in range(rows)})
        batch.step()
        with Counted() as counted:
            batch.draws.apply(torch.randn(rows, VOCABULARY))
        counts.append(counted.count)

    assert counts[0] == counts[1] == counts[2] <= 16
