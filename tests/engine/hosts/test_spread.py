"""Frozen weights that lie over the ranks of a pool: the same scores, files and followers as weights
that every process has whole."""

from pathlib import Path
from typing import Any

import torch
from tests.engine.training.conftest import random_rows, tiny_model
from tests.engine.training.processes import on_ranks

from coloop.hosts.scorer_home import ScorerHome
from coloop.hosts.weights import HeldWeights
from coloop.models import LoadedModel, character_tokenizer
from coloop.spec.dtypes import uniform
from coloop.training import Hooks, Ranks

ROWS = random_rows(5, seed=1)


def home_of(ranks: Ranks, seed: int, *, is_spread: bool) -> ScorerHome:
    loaded = LoadedModel(
        model=tiny_model(seed=seed).requires_grad_(False), tokenizer=character_tokenizer()
    )
    weights = HeldWeights(
        name="reference", loaded=loaded, dtypes=uniform("float32", "a test"), ranks=ranks
    )
    return ScorerHome.spread(weights) if is_spread else ScorerHome(weights=weights)


def scores(home: ScorerHome, rows: int = len(ROWS)) -> list[list[float]]:
    found = home.score(ROWS[:rows], "log_probs", temperature=0.7, hooks=Hooks())
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
