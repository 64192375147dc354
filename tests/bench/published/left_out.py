"""Leave one source out: what an error would be if the estimate were fitted to all other sources."""

import math
import statistics
from collections.abc import Mapping, Sequence

from tests.bench.results import Table


def left_out_table(title: str, logs: Mapping[str, Sequence[float]]) -> Table:
    """`logs`: by source, log(estimated / measured) of its rows. One factor on all estimates is
    fitted to the other sources, as the median of their rows, and judged on this one."""
    lines = []
    for source, own in logs.items():
        others = [one for name, group in logs.items() if name != source for one in group]
        factor = statistics.median(others)
        before, after = (statistics.median(abs(one - by) for one in own) for by in (0.0, factor))
        lines.append(
            (source, str(len(own)), f"{math.exp(-factor):.3f}", f"{before:.3f}", f"{after:.3f}")
        )
    head = ("source", "rows", "factor of the others", "median |log|", "with the factor")
    return Table(title=title, head=head, rows=tuple(lines))
