"""The estimate against published, machine-measured memory, where the tables are at hand.

Each row is a loop in the language of loops (`tests.bench.published.memory`); `python -m tests.bench
--only foresight` shows the errors by source.
"""

import statistics

import pytest
from tests.bench.published import memory
from tests.bench.published.row import Published

from coloop.plan.cost.bands import MEMORY as MEMORY_BAND

pytestmark = pytest.mark.skipif(
    not memory.is_here(), reason="the tables of measurements are not here"
)
SAID, UNSAID = memory.published() if memory.is_here() else ([], [])
MEASURED = [row for row in SAID if row.tier == "A"]


def _of(*quantities: str) -> list[Published]:
    return [row for row in MEASURED if row.quantity in quantities]


def _ratios(rows: list[Published]) -> list[float]:
    """Measured over estimated."""
    estimates = [memory.predict(row) for row in rows]
    return [float(row.value) / said for row, said in zip(rows, estimates, strict=True) if said]


def test_nine_of_ten_rows_can_be_said_as_loops():
    assert len(UNSAID) <= 0.1 * (len(SAID) + len(UNSAID))
    assert all(row.why for row in UNSAID)


def test_peaks_are_within_a_few_percent():
    errors = sorted(abs(ratio - 1) for ratio in _ratios(_of("peak_gib")))

    assert statistics.median(errors) < 0.05
    assert errors[int(0.9 * len(errors))] < 0.15


@pytest.mark.parametrize("source", sorted({row.source for row in _of("peak_gib")}))
def test_peaks_of_each_source_are_within_a_tenth(source):
    rows = [row for row in _of("peak_gib") if row.source == source]

    assert statistics.median(abs(ratio - 1) for ratio in _ratios(rows)) < 0.10


def test_the_printed_band_holds_nine_of_ten_peaks():
    low, high = MEMORY_BAND
    ratios = _ratios(_of("peak_gib"))

    assert sum(low <= ratio <= high for ratio in ratios) >= 0.9 * len(ratios)


@pytest.mark.parametrize("row", (rows := _of("oom")), ids=[row.id for row in rows])
def test_what_ran_out_of_memory_does_not_fit(row):
    left = memory.predict(row)

    assert left is not None
    assert left < 0


@pytest.mark.parametrize("row", (rows := _of("weights_gib")), ids=[row.id for row in rows])
def test_weights_of_an_engine_are_within_the_band(row):
    (ratio,) = _ratios([row])

    assert 0.85 <= ratio <= 1.3


def test_peaks_agree_with_the_memory_tracker():
    ratios = _ratios(memory.tracked())
    errors = [abs(ratio - 1) for ratio in ratios]

    assert statistics.median(errors) < 0.005
    assert max(errors) < 0.05
