"""On the same rows our presets of TRL take TRL's updates."""

from pathlib import Path

import pytest
from tests.bench.grpo.parity import THEIRS, UPDATES, compare
from tests.bench.grpo.turns import OTHER_VENV
from tests.bench.grpo.work import SIZES

from coloop.models.build import build_config, build_scratch
from coloop.models.folder import save_hf
from coloop.models.tokenizer import character_tokenizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not OTHER_VENV.exists(), reason="TRL is not here; `make bench-venv` makes .venv-bench"
    ),
]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A random model; that a digit is written is what it is rewarded for."""
    tokenizer = character_tokenizer()
    config = build_config(SIZES["1M"].facts(), tokenizer)
    save_hf(tmp_path / "start", build_scratch(config, seed=1), tokenizer)
    return tmp_path / "start"


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("algorithm", THEIRS)
def test_updates_end_at_the_weights_of_trl(
    algorithm: str, iterations: int, start: Path, tmp_path: Path
) -> None:
    """Twice on the same rows the ratio moves, is clipped, and is of the old policy."""
    place = tmp_path / "found"
    place.mkdir()

    compared = compare(algorithm, start, place, reward="digits", iterations=iterations)

    assert len(compared) == UPDATES
    for one in compared:
        assert one.way > 0.1
        # Adam's first step is as long for a gradient that is nothing but rounding; another epsilon
        # in the deviation shows as 1e-3.
        assert one.apart < 5e-4
        assert one.advantage < 1e-5
