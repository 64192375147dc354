"""Rows and lengths of the tables of a loop, counted once for all variants that differ only in how
they are carried out."""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.plan.settings.probes import ProbeLoad, counts_of_passes
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.lineage import Lineages
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.walk import Walk
from coloop.spec.table_sizes import TableSize


@record
class Texts:
    """What is known of the lengths of texts."""

    lengths: Mapping[str, TableSize]
    """Of the rows of a dataset, by its node."""
    is_characters: bool
    """Whether a token is a single character."""
    written: Mapping[str, float]
    """Mean tokens of completions that the loop does not state, by node."""


class Counted:
    """The tables of a step and of the passes of evaluations, with lengths of texts."""

    def __init__(self, lineages: Lineages, texts: Texts) -> None:
        self._texts: dict[str, Any] = {
            "lengths": texts.lengths,
            "is_characters": texts.is_characters,
            "written": texts.written,
        }
        self.counts = RowCounts(lineages.throughout, overrides={}, **self._texts)
        """Over the edges of all phases."""
        self._passes: dict[tuple[str, ProbeLoad], Sequence[RowCounts]] = {}

    def passes_of(self, spec: LoopSpec, probe: str, load: ProbeLoad) -> Sequence[RowCounts]:
        """Rows in each pass of an evaluation that runs stages on rows of its own."""
        key = probe, load
        if key not in self._passes:
            self._passes[key] = counts_of_passes(spec, probe, load, self.counts, **self._texts)
        return self._passes[key]


class Tables:
    """Tables by what is known of their texts."""

    def __init__(self, lineages: Lineages) -> None:
        self._lineages = lineages
        self._known: list[tuple[Texts, Counted]] = []

    @property
    def walk(self) -> Walk:
        """Over the edges of all phases."""
        return self._lineages.throughout.walk

    def of(self, texts: Texts) -> Counted:
        for known, counted in self._known:
            if known == texts:
                return counted
        self._known.append((texts, Counted(self._lineages, texts)))
        return self._known[-1][1]
