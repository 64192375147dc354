"""What `bench_proofs` keeps is of rows that there are, and every row that is shown can be read."""

from tests.bench.proofs.rows import KEPT, all_rows, kept


def test_kept_rows_are_rows() -> None:
    names = {row.name for row in all_rows()}

    assert {path.stem for path in KEPT.iterdir()} <= names


def test_kept_rows_can_be_read() -> None:
    for row in all_rows():
        came = kept(row)
        if came is not None and came.curve:
            assert came.curve[-1] == came.end, row.name
