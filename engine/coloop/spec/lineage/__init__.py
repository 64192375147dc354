"""Lineage: which table's rows descend from which, computed from the spec alone."""

from coloop.spec.levels import Level as Level
from coloop.spec.levels import Levels as Levels
from coloop.spec.levels import Relation as Relation
from coloop.spec.levels import ancestors as ancestors
from coloop.spec.levels import common_ancestor as common_ancestor
from coloop.spec.levels import match as match
from coloop.spec.levels import relate as relate
from coloop.spec.levels import relate_pair as relate_pair
from coloop.spec.lineage.columns import Columns as Columns
from coloop.spec.lineage.counts import RowCounts as RowCounts
from coloop.spec.lineage.findings import compute_lineage as compute_lineage
from coloop.spec.lineage.lineage import Lineage as Lineage
from coloop.spec.lineage.lineage import Lineages as Lineages
from coloop.spec.lineage.walk import RoundsRegion as RoundsRegion
from coloop.spec.lineage.walk import Walk as Walk
from coloop.spec.names import Names as Names
