"""What one entry says of an algorithm, and of a way to make advantages of scores.

All that is known of an algorithm beside its mathematics stands in its record: catalog, schema, help
and refusals are made from it. A text that is missing is left empty, and the name is the title.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

ARXIV: Final = "https://arxiv.org/abs/"

Fields = Literal["rewards", "preference", "own"]
RecipeName = Literal[
    "policy",
    "preference",
    "imitation",
    "value",
    "bradley_terry",
    "labels",
    "implicit_prm",
    "choices",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRecord:
    """An algorithm of the loop language."""

    name: str
    title: str = ""
    help: str = ""
    formula: str = ""
    """On one line, for the catalog."""
    paper: str = ""
    """Address of where it comes from."""
    fields: Fields = "own"
    """Which settings it has: those of `RewardsAlgorithm`, those of `PreferenceAlgorithm`, or those
    of a section whose only name it is."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from `REWARDS_BASE` or `PREFERENCE_BASE`."""
    recipe: RecipeName | None = None
    """Which recipe carries it out (`recipes.table`); None: it can be drawn and planned, not run."""
    needs_reference: bool = True
    """Of preferences: whether it reads log-probs of a reference."""
    family: str = ""
    """The algorithm of which it is a preset; empty: it is one itself."""
    framework: str | None = None
    """Whose defaults a preset has (`FRAMEWORKS`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageRecord:
    """A way to make advantages of scores: a value of `advantage`."""

    name: str
    needs: Literal["group", "values", "greedy", "nothing"] = "nothing"
    """`group`: it compares the rows of a group, by a function of `recipes.estimators`; `values`:
    those of a critic; `greedy`: the score of each prompt's greedy row."""
    deviation: str = "none"
    """Which deviation scales it where the loop does not say."""
    whole_rows: bool = False
    """Whether the scores of a row are summed before rows are compared; else each is compared."""
    formula: str = ""
    """Of a comparison of row i, in the arithmetic of Python: `r_i - mean(group)`."""
    note: str = ""
    """How to read the formula."""
