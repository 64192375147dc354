"""Predicted speed against published measurements, where the tables of them are at hand."""

import statistics
from functools import lru_cache

import pytest
from tests.bench.published import speed, speed_tables
from tests.bench.published.left_out import left_out_table
from tests.engine.measurements import Measurements

pytestmark = [Measurements("throughput").wanted, Measurements("new_2026-11").wanted]


@lru_cache(maxsize=1)
def _rows():
    return speed_tables.compare_all()


def test_nearly_every_row_can_be_said_as_a_loop():
    said, unsaid = speed.published()

    assert len(said) > 350
    assert len(unsaid) <= 0.1 * (len(said) + len(unsaid))


def test_a_training_row_is_predicted_within_its_band():
    """One row of each trainer, as examples."""
    said = {row.id: row for row in speed.published()[0]}
    picked = ("T0039", "T0096", "T0271", "T0307", "T0331", "T0635", "N110", "T0322")

    assert all(speed.compare(said[name]).is_within for name in picked if name in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "most"),
    [("train", 0.15), ("gen_max_throughput", 0.25), ("rl_step", 0.4), ("weight_sync", 0.4)],
)
def test_the_median_error_is_small(task, most):
    logs = [abs(one.log) for one in _rows()[0] if one.row.told["task"].startswith(task)]

    assert statistics.median(logs) <= most


@pytest.mark.slow
@pytest.mark.parametrize("task", ["train", "gen_max_throughput", "decode_b1", "rl_step"])
def test_the_printed_band_holds_nine_of_ten_rows(task):
    rows, untold = _rows()
    group = [one for one in rows if one.row.told["task"].startswith(task)]

    assert sum(one.is_within for one in group) >= 0.9 * len(group)
    if task == "rl_step":
        assert sum(one.is_within for one in untold) >= 0.9 * len(untold)


def test_a_source_is_judged_by_the_factor_that_the_others_fit():
    """Of `b` the median log is 0.5: a factor of exp(-0.5) = 0.607 on `a`, whose logs of 0 and 0.2
    are 0.1 away in the median, and 0.4 with it."""
    table = left_out_table("", {"a": [0.0, 0.2], "b": [0.4, 0.5, 0.9]})

    assert table.rows[0] == ("a", "2", "0.607", "0.100", "0.400")
