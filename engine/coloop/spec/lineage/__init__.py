"""Lineage: which table's rows descend from which, computed from the spec alone (language.md 2)."""

from coloop.spec.levels import (
    JOINED,
    Level,
    Levels,
    Relation,
    ancestors,
    births,
    common_ancestor,
    match,
    relate,
    relate_pair,
)
from coloop.spec.lineage.columns import Columns
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.findings import compute_lineage
from coloop.spec.lineage.lineage import Attachment, Join, Lineage, Lineages
from coloop.spec.lineage.walk import RoundsRegion, Walk
from coloop.spec.names import Names

__all__ = [
    "JOINED",
    "Attachment",
    "Columns",
    "Join",
    "Level",
    "Levels",
    "Lineage",
    "Lineages",
    "Names",
    "Relation",
    "RoundsRegion",
    "RowCounts",
    "Walk",
    "ancestors",
    "births",
    "common_ancestor",
    "compute_lineage",
    "match",
    "relate",
    "relate_pair",
]
