"""The function of the reward `letter_share`."""

from collections.abc import Sequence

from coloop.data.rewards.scoring import ScoringRow, text_of
from coloop.data.tables import Score
from coloop_example.records import LetterShare


def letter_share(rows: Sequence[ScoringRow], options: LetterShare) -> list[Score]:
    """The share of each row's characters that are among the letters; None without a completion."""
    return [_share(text_of(row), options.letters) for row in rows]


def _share(text: str | None, letters: str) -> float | None:
    if text is None:
        return None
    return sum(character in letters for character in text) / max(len(text), 1)
