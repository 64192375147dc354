"""Every algorithm and every advantage of the loop language: one record for each.

Names of the language, presets, catalog, help, papers, recipes and what can run are all made from
these records. To add an algorithm: a record here, its mathematics in `algos` and `recipes` where no
setting says it, and a test with literal numbers.
"""

from collections.abc import Iterable
from typing import Final

from coloop.spec.algorithms.frameworks import (
    FRAMEWORKS,
    PREFERENCES_OF_FRAMEWORKS,
    REWARDS_OF_FRAMEWORKS,
)
from coloop.spec.algorithms.policies import ADVANTAGES as _ADVANTAGES
from coloop.spec.algorithms.policies import POLICIES
from coloop.spec.algorithms.preferences import PREFERENCES
from coloop.spec.algorithms.record import AdvantageRecord, AlgorithmRecord, Fields
from coloop.spec.algorithms.sections import OF_OWN_SECTION

__all__ = [
    "ADVANTAGES",
    "ALGORITHMS",
    "FRAMEWORKS",
    "AdvantageRecord",
    "AlgorithmRecord",
    "advantages_that_need",
    "families",
    "family_of",
    "names_with",
    "title_of",
]


def _by_name(records: Iterable[AlgorithmRecord]) -> dict[str, AlgorithmRecord]:
    return {record.name: record for record in records}


ALGORITHMS: Final[dict[str, AlgorithmRecord]] = _by_name(
    [
        *POLICIES,
        *REWARDS_OF_FRAMEWORKS,
        *PREFERENCES,
        *PREFERENCES_OF_FRAMEWORKS,
        *OF_OWN_SECTION,
    ]
)
"""By name, presets of frameworks included; in the order in which forms and help list them."""

ADVANTAGES: Final[dict[str, AdvantageRecord]] = {record.name: record for record in _ADVANTAGES}
"""By the name that `advantage` takes."""


def families() -> tuple[AlgorithmRecord, ...]:
    """The algorithms without the presets of frameworks."""
    return tuple(record for record in ALGORITHMS.values() if not record.family)


def names_with(fields: Fields) -> tuple[str, ...]:
    """The algorithms that have these settings."""
    return tuple(record.name for record in ALGORITHMS.values() if record.fields == fields)


def family_of(name: str) -> str:
    """The algorithm that a name is a setting of: `trl-grpo` is `grpo`."""
    record = ALGORITHMS.get(name)
    return record.family or name if record else name


def title_of(name: str) -> str:
    """What the algorithm is called of which a name is a setting: `trl-grpo` is `GRPO`."""
    family = family_of(name)
    return ALGORITHMS[family].title or family


def advantages_that_need(what: str) -> frozenset[str]:
    """The advantages that read a group, the values of a critic, or a greedy row."""
    return frozenset(record.name for record in ADVANTAGES.values() if record.needs == what)
