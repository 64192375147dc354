"""Tables of published, machine-measured runs, where they are at hand."""

import csv
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2].parent / "shared/ground_truth"

Row = dict[str, str]


class Measurements:
    """A table by its name, without rows where it is not here."""

    def __init__(self, name: str) -> None:
        path = FOLDER / f"{name}.csv"
        self.rows: list[Row] = []
        self.wanted = pytest.mark.skipif(
            not path.exists(), reason="the table of measurements is not here"
        )
        """Marks tests that read it."""
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                self.rows = list(csv.DictReader(file))
