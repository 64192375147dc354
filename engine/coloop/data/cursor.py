"""Which rows of a source the next step gets: a seeded order for each pass, and an exact place.

A step that meets the end of a pass goes on with the next one, so every step has as many rows as
asked; passes are counted by rows, exactly. The order of a pass is a function of seed and pass
alone: nothing but two numbers has to be saved, however large the source is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coloop.data.tasks.draw import permuted, stable_hash
from coloop.errors import CheckpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One drawn row."""

    index: int
    """Its number in the source."""
    epoch: int
    """The pass that it belongs to, counted from 0. (epoch, index) never comes twice."""


class DataCursor:
    """A place in the endless sequence of passes over a source."""

    def __init__(self, *, rows: int, seed: int, shuffle: bool = True) -> None:
        if rows < 1:
            raise ValueError(f"a cursor wants at least one row, found {rows}")
        self.rows = rows
        self.seed = seed
        self.shuffle = shuffle
        self.drawn = 0
        """Rows drawn since the start, over all passes."""

    @property
    def epoch(self) -> int:
        """Passes that are over."""
        return self.drawn // self.rows

    @property
    def position(self) -> int:
        """Rows drawn in the pass that has begun."""
        return self.drawn % self.rows

    def take(self, count: int | None = None) -> list[Draw]:
        """The next rows; None takes as many as the source has."""
        wanted = self.rows if count is None else count
        draws = [self._at(place) for place in range(self.drawn, self.drawn + wanted)]
        self.drawn += wanted
        return draws

    def _at(self, place: int) -> Draw:
        epoch, position = divmod(place, self.rows)
        if not self.shuffle:
            return Draw(index=position, epoch=epoch)
        key = stable_hash(f"order {self.seed} {epoch}")
        return Draw(index=permuted(position, self.rows, key), epoch=epoch)

    def state(self) -> dict[str, Any]:
        """All that a checkpoint needs."""
        return {
            "rows": self.rows,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "drawn": self.drawn,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken, from a source of as many rows."""
        if state["rows"] != self.rows:
            raise CheckpointError(
                f"the checkpoint was taken with a dataset of {state['rows']:,} rows, now it has "
                f"{self.rows:,}; resume with the same data, or start a new run"
            )
        self.seed = int(state["seed"])
        self.shuffle = bool(state["shuffle"])
        self.drawn = int(state["drawn"])

    def resized(self, rows: int) -> "DataCursor":
        """A cursor over other rows (a source parameter changed) that keeps count of the passes;
        one that has begun counts as over, so no order comes twice."""
        cursor = DataCursor(rows=rows, seed=self.seed, shuffle=self.shuffle)
        cursor.drawn = (self.epoch + (self.position > 0)) * rows
        return cursor


def steps_for(*, epochs: int, rows: int, rows_per_step: int | None) -> int:
    """Steps that it takes to draw every row so many times."""
    per_step = rows if rows_per_step is None else rows_per_step
    return -(-epochs * rows // per_step)
