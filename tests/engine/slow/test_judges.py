"""Judges that learn: a verifier in words."""

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.slow.proofs import COIN, LEAST_RISE, MOST_BY_CHANCE, SEEDS, seeded

from coloop import presets
from coloop.spec.io import parse
from coloop.spec.nodes import TemplateNode

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SEED = seeded(SEEDS[0])
VERDICT = "'yes' if completion == answer else 'no'"


def test_a_verifier_in_words_tells_right_from_wrong_over_three_seeds(train: "Train") -> None:
    runs = [train("genrm", [seeded(seed)]) for seed in SEEDS]

    assert fmean(run.last("judged.pair_accuracy") for run in runs) >= COIN + LEAST_RISE
    assert fmean(run.last("judged.class_recall") for run in runs) >= COIN
    chosen, voted = (
        fmean(run.last(f"chosen.{metric}@8") for run in runs) for metric in ("best_of", "majority")
    )
    assert chosen > voted


def test_a_verifier_learns_nothing_from_verdicts_by_chance(train: "Train") -> None:
    run = train("genrm", [SEED, verdicts_of_a_coin()])

    assert abs(run.last("judged.pair_accuracy") - COIN) < MOST_BY_CHANCE


def verdicts_of_a_coin() -> Mapping[str, Any]:
    """Lessons whose checks are true and whose verdict is not of them."""
    spec = parse(presets.load_loop_text("genrm")).spec
    assert spec is not None
    lesson = spec.nodes["lesson"]
    assert isinstance(lesson, TemplateNode)
    assert lesson.code is not None
    assert VERDICT in lesson.code
    code = "import random\n" + lesson.code.replace(VERDICT, "random.choice(['yes', 'no'])")
    return {"op": "set", "path": "nodes.lesson.code", "value": code}
