"""Rows of a curriculum: drawn by how difficult they have been.

    scores of a step ──> a moving mean for each row ──> its band ──> its weight in the next draws

As the difficulty pools of prime-rl (`orchestrator/curriculum/samplers/pool.py`), with two
differences: no row is drawn twice in a step, and a mean may move slowly (`ema`).
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from coloop.data.sources import Draw
from coloop.data.tasks.base import stable_hash
from coloop.spec.data import Curriculum

UNMEASURED = "unmeasured"


class DifficultyPools:
    """The mean score of each row of a source so far, and draws by it."""

    def __init__(self, *, rows: int, seed: int) -> None:
        self.rows = rows
        self.seed = seed
        self.turn = 0
        """Draws so far; part of the seed of the next, and of the ids of its rows."""
        self.means: Mapping[int, float] = {}
        """By the index of a row; without rows that were never scored."""

    def take(self, count: int, curriculum: Curriculum) -> list[Draw]:
        """Rows of a step, each with a chance by the weight of its band; rows that were never scored
        have weight 1. Rows of weight 0 only fill what the others leave; a step that is larger than
        the source draws again."""
        draws: list[Draw] = []
        while len(draws) < count:
            chosen = self._order(curriculum)[: count - len(draws)]
            draws += [Draw(index=index, epoch=self.turn) for index in chosen]
            self.turn += 1
        return draws

    def _order(self, curriculum: Curriculum) -> list[int]:
        """All rows in the order in which they would be drawn without replacement (A-Res, Efraimidis
        and Spirakis 2006)."""
        draw = random.Random(stable_hash(f"difficulty {self.seed} {self.turn}"))
        weights = [band.weight for band in curriculum.bands]
        keys = []
        for index in range(self.rows):
            band = self.band_of(index, curriculum)
            weight = 1.0 if band is None else weights[band]
            chance = math.log(1.0 - draw.random())
            keys.append((weight > 0, chance / weight if weight > 0 else chance))
        return sorted(range(self.rows), key=keys.__getitem__, reverse=True)

    def band_of(self, index: int, curriculum: Curriculum) -> int | None:
        """The first band whose bound is not below the row's mean, or the last; None: never
        scored."""
        mean = self.means.get(index)
        if mean is None:
            return None
        bounds = [band.up_to for band in curriculum.bands]
        return next((at for at, bound in enumerate(bounds) if mean <= bound), len(bounds) - 1)

    def observe(self, scores: Mapping[int, Sequence[float]], *, ema: float) -> None:
        """mean ← ema · mean + (1 − ema) · mean of the step's scores; at first the latter."""
        moved = dict(self.means)
        for index, said in scores.items():
            now, before = fmean(said), moved.get(index)
            moved[index] = now if before is None else ema * before + (1 - ema) * now
        self.means = moved

    def shares(self, curriculum: Curriculum) -> dict[str, float]:
        """The share of rows in each band, by its bound, and of those never scored."""
        places = Counter(self.band_of(index, curriculum) for index in self.means)
        named = {f"{band.up_to:g}": places[at] for at, band in enumerate(curriculum.bands)}
        named[UNMEASURED] = self.rows - len(self.means)
        return {name: count / self.rows for name, count in named.items()}

    def state(self) -> dict[str, Any]:
        return {"turn": self.turn, "means": [[index, mean] for index, mean in self.means.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        self.turn = int(state["turn"])
        self.means = {int(index): float(mean) for index, mean in state["means"]}
