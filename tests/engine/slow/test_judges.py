"""Judges that learn: a verifier in words tells right from wrong of either kind, and choosing by it
brings more than a vote. That it does by its lessons alone is a row of `tests/experiments`."""

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.experiments.table import COIN, SEEDS, seeded

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def test_a_verifier_in_words_is_better_than_a_vote_over_three_seeds(train: "Train") -> None:
    runs = [train("genrm", [seeded(seed)]) for seed in SEEDS]

    assert fmean(run.last("judged.class_recall") for run in runs) >= COIN
    chosen, voted = (
        fmean(run.last(f"chosen.{metric}@8") for run in runs) for metric in ("best_of", "majority")
    )
    assert chosen > voted
