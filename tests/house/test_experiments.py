"""Kept results of experiments are of rows of the table and can be read."""

from tests.experiments.rows import KEPT, all_rows, kept


def test_kept_results_are_of_rows_of_the_table() -> None:
    names = {row.name for row in all_rows()}

    assert {path.stem for path in KEPT.iterdir()} <= names


def test_kept_results_can_be_read() -> None:
    for row in all_rows():
        outcome = kept(row)
        if outcome is not None and outcome.curve:
            assert outcome.curve[-1] == outcome.end, row.name
