"""Frozen weights that lie over the ranks of a pool: the same scores, files and followers as weights
that every process has whole."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.training.conftest import random_rows, tiny_model
from tests.engine.training.processes import on_ranks

from coloop.models import LoadedModel, character_tokenizer
from coloop.plan.compile import compile_plan
from coloop.plan.settings.survey import Survey
from coloop.spec.dtypes import uniform
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.initial_weights import InitialWeights
from coloop.workers.training import Hooks, Ranks
from coloop.workers.training.adapters import FrozenAdapter
from coloop.workers.weights import HeldWeights

pytestmark = pytest.mark.slow

ROWS = random_rows(5, seed=1)


def home_of(ranks: Ranks, seed: int, *, is_spread: bool) -> FrozenModel:
    loaded = LoadedModel(
        model=tiny_model(seed=seed).requires_grad_(False), tokenizer=character_tokenizer()
    )
    weights = HeldWeights(
        name="reference", loaded=loaded, dtypes=uniform("float32", "a test"), ranks=ranks
    )
    return FrozenModel.spread(weights) if is_spread else FrozenModel(weights=weights)


def scores(home: FrozenModel, rows: int = len(ROWS)) -> list[list[float]]:
    found = home.scorer.score(ROWS[:rows], "log_probs", temperature=0.7, hooks=Hooks())
    return [one.tolist() for one in found]


def use(ranks: Ranks, folder: str) -> dict[str, Any]:
    """What a frozen home says before and after it is saved, follows others and is loaded."""
    first, second = Path(folder) / "first", Path(folder) / "second"
    home, whole = home_of(ranks, 0, is_spread=True), home_of(ranks, 0, is_spread=False)
    model = home._scorer._tokens.model  # type: ignore[union-attr]
    found: dict[str, Any] = {
        "held": sum(one.to_local().numel() for one in model.parameters()),  # type: ignore[operator]
        "all": sum(one.numel() for one in tiny_model().parameters()),
        "scores": [scores(home), scores(home, 1)],
        "expected": [scores(whole), scores(whole, 1)],
    }
    home.save(first, None)
    ranks.any(False)  # all wait until it is there
    home.save(second, first)
    ranks.any(False)
    found["again"] = (second / "model.safetensors").samefile(first / "model.safetensors")
    home.weights.take(tiny_model(seed=3).named_parameters(), ema=0.5, source="actor")
    whole.weights.take(tiny_model(seed=3).named_parameters(), ema=0.5, source="actor")
    found["followed"] = scores(home) == scores(whole)
    found["alike"] = all(
        torch.equal(one, other)
        for (_, one), (_, other) in zip(home.weights.named(), whole.weights.named(), strict=True)
    )
    home.load(first)
    found["loaded"] = scores(home)
    return found


def test_weights_over_ranks_score_and_are_kept_as_whole_ones(tmp_path: Path) -> None:
    for found in on_ranks(2, use, tmp_path, str(tmp_path)):
        assert found["held"] <= 0.6 * found["all"]
        assert found["scores"] == found["expected"]
        assert found["again"]
        assert found["followed"]
        assert found["alike"]
        assert found["loaded"] == found["expected"][0]


GPUS = {"nodes": 1, "gpus_per_node": 2, "gpu": "H100-80GB"}
PROCESSES = {"preset": "cpu", "pools": {"main": {"workers": 2}}}


def adapters(hardware: dict[str, Any], snapshot: dict[str, Any] | None) -> LoopSpec:
    """An adapter that learns on frozen weights over two ranks, beside them another that follows."""
    tiny, lora = {"type": "scratch", "architecture": "tiny-qwen3"}, {"lora": {"rank": 2}}
    section = {"rollout": {"max_new_tokens": 4}, "algorithm": {"name": "reinforce"}}
    nodes = {
        "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
        "base": {"kind": "reference", "model": tiny},
        "actor": {"kind": "actor", "model": {"type": "shared", "with": "base", **lora}, **section},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "actor.rollouts -> base.rollouts",
    ]
    if snapshot is not None:
        nodes["before"] = {"kind": "reference", "model": snapshot}
        edges.append("actor.rollouts -> before.rollouts")
    document = {"coloop": 1, "name": "small", "nodes": nodes, "edges": edges}
    spec = from_dict({**document, "schedule": {"steps": 1}, "hardware": hardware}).spec
    assert spec is not None
    return spec


def held_bytes(
    ranks: Ranks, hardware: dict[str, Any], snapshot: dict[str, Any] | None
) -> dict[str, int]:
    """By group, bytes of its weights in this process that no group before it has."""
    spec = adapters(hardware, snapshot)
    plans = {one.name: one for one in compile_plan(spec).weights}
    homes = InitialWeights(spec=spec, plans=plans, root=Path(), seed=0, ranks=ranks).homes("main")
    seen: dict[int, int] = {}
    found = {}
    for name in plans:
        home: Any = homes[name]
        adapted = home.weights.adapted
        if isinstance(adapted, FrozenAdapter):
            model: Any = adapted.model
        elif home.weights.backend is not None:
            model = getattr(home, "backend", None) or home._scorer
            model = model._tokens.model
        else:
            model = home.weights.loaded.model
        local = [getattr(one, "_local_tensor", one.detach()) for one in model.parameters()]
        fresh = {one.data_ptr(): one.nbytes for one in local if one.data_ptr() not in seen}
        seen |= fresh
        found[name] = sum(fresh.values())
    return found


@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
@pytest.mark.parametrize("hardware", [GPUS, PROCESSES], ids=["GPUs", "processes"])
@pytest.mark.parametrize(
    "snapshot",
    [
        None,
        {"type": "snapshot", "of": "actor"},
        {"type": "shared", "with": "base", "lora": {"rank": 4}},
    ],
    ids=["none", "a snapshot", "one of its own"],
)
def test_what_several_ranks_hold_of_adapters_is_what_was_priced(
    snapshot: dict[str, Any] | None, hardware: dict[str, Any], tmp_path: Path
) -> None:
    spec = adapters(hardware, snapshot)
    survey = Survey(spec)
    plans = {one.name: one for one in compile_plan(spec).weights}

    ranks = on_ranks(2, held_bytes, tmp_path, hardware, snapshot)

    priced = {name: one.states.weights for name, one in survey.weights.items()}
    for held in ranks:
        assert held == pytest.approx(priced, rel=0.02)
    is_spread = hardware is GPUS
    assert plans["base"].backend == ("fsdp2" if is_spread else None)
    assert survey.weights["base"].scheme == ("fsdp2" if is_spread else "single")


def follow(ranks: Ranks, folder: str) -> dict[str, Any]:
    """What a snapshot of an adapter says on the learner's spread base, and beside it with all
    weights in each process."""
    first = Path(folder) / "first"
    homes: dict[str, dict[str, Any]] = {}
    for name, hardware in (("parts", GPUS), ("whole", PROCESSES)):
        spec = adapters(hardware, {"type": "snapshot", "of": "actor"})
        document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        document["nodes"]["actor"]["training"] = {"dtype": "float32"}
        document["nodes"]["base"]["model"]["dtype"] = "float32"
        spec = from_dict(document).spec  # type: ignore[assignment]
        plans = {one.name: one for one in compile_plan(spec).weights}
        start = InitialWeights(spec=spec, plans=plans, root=Path(), seed=0, ranks=ranks)
        homes[name] = dict(start.homes("main"))
    parts, whole = homes["parts"]["before"], homes["whole"]["before"]
    found: dict[str, Any] = {"spread": parts.weights.backend is not None, "said": []}

    def say() -> None:
        found["said"].append((scores(parts), scores(whole)))

    say()
    parts.save(first, None)
    ranks.any(False)
    adapter = {
        name: torch.full_like(one, 0.1) for name, one in whole.weights.adapted.adapter().items()
    }
    for home in (parts, whole):
        home.weights.take(adapter.items(), ema=0.0, source="actor")
    say()
    found["learner"] = scores_of(homes["parts"]["actor"]) == found["said"][0][0]
    merged = dict(parts.weights.named())
    found["merged"] = all(
        torch.allclose(merged[name], one, atol=1e-6) for name, one in whole.weights.named()
    )
    parts.load(first)
    found["loaded"] = scores(parts)
    return found


def scores_of(trainer: Any) -> list[list[float]]:
    found = trainer.backend.score(ROWS, "log_probs", temperature=0.7, hooks=Hooks())
    return [one.tolist() for one in found]


@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
def test_a_snapshot_of_an_adapter_on_a_spread_base_says_what_a_whole_one_does(
    tmp_path: Path,
) -> None:
    for found in on_ranks(2, follow, tmp_path, str(tmp_path)):
        (before, expected), (after, expected_after) = found["said"]
        assert found["spread"]
        for said, wanted in ((before, expected), (after, expected_after)):
            assert all(
                one == pytest.approx(other, abs=1e-5)
                for one, other in zip(said, wanted, strict=True)
            )
        assert before != after
        assert found["learner"]
        assert found["merged"]
        assert found["loaded"] == before
