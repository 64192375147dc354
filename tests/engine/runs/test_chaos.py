"""A few of the kills of `python -m tests.bench --only chaos`."""

import random
from pathlib import Path

import pytest
from tests.bench.bench_chaos import LONGER, VICTIMS
from tests.bench.killing import disturbed, text_of

KILLS = 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("loop", LONGER)
def test_whatever_is_killed_a_run_learns_the_same_bits(
    loop: str, victim: str, tmp_path: Path
) -> None:
    text, chance = text_of(loop, VICTIMS[victim], LONGER[loop]), random.Random(7)

    calm = disturbed(tmp_path / "calm", text, victim, 0, chance)
    wild = disturbed(tmp_path / "wild", text, victim, KILLS, chance)

    assert wild.kills == KILLS
    assert wild.weights == calm.weights
