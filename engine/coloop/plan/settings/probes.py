"""The rows of evaluations: what their stages work on when they run on the evaluation's own rows.

Knows one evaluation at a time, and no memory or time.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lean import record
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.metrics import samples_of
from coloop.spec.nodes import EvaluateNode
from coloop.spec.table_sizes import EMPTY, TableSize


@record
class ProbeLoad:
    """What an evaluation runs besides reading its tables."""

    stages: tuple[str, ...] = ()
    """Stages that run on its rows (`node.verb`), once per pass."""
    compared: tuple[str, ...] = ()
    """With `of`: stages that score the rows for the loss."""
    writers: tuple[str, ...] = ()
    """First generating nodes, to which `greedy` and `samples` apply."""
    edges: frozenset[str] = frozenset()
    """Edges between these stages, by key."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(stage.rpartition(".")[0] for stage in self.stages)


def samples_of_probe(section: EvaluateNode) -> int | None:
    """Completions per row: as written, or else as many as its `@k` metrics need."""
    if section.samples is not None:
        return section.samples
    return max((k for name in section.metrics if (k := samples_of(name)) is not None), default=None)


def completions_of(section: EvaluateNode) -> Iterator[int | None]:
    """Completions per row of each pass of an evaluation; None: as in the `rollout` of its nodes.
    With `greedy` the first pass has one, and there is a second if samples are wanted as well."""
    samples = samples_of_probe(section)
    if section.greedy:
        yield 1
    if not section.greedy or samples is not None:
        yield samples


def counts_of_passes(
    spec: LoopSpec, name: str, load: ProbeLoad, step: RowCounts, **texts: Any
) -> Sequence[RowCounts]:
    """Rows and lengths in each pass of an evaluation with `instead_of`. `step`: those of a step;
    `texts`: what `RowCounts` knows of lengths."""
    section = spec.nodes[name]
    assert isinstance(section, EvaluateNode)
    if section.instead_of is None or not load.stages:
        return ()
    rows = step.arriving(name, "rows")
    running = {section.instead_of, *load.nodes}

    def delivers(edge: Edge) -> bool:
        is_taught = spec.graph.teaches(edge) and edge.source.node in running
        return edge.key in load.edges or is_taught

    counts = []
    for each in completions_of(section):
        paths = [f"nodes.{node}.rollout.completions_per_prompt" for node in load.writers]
        counts.append(
            RowCounts(
                step.lineage,
                overrides={} if each is None else dict.fromkeys(paths, each),
                delivers=delivers,
                stand_ins={section.instead_of: rows},
                is_probe=True,
                nodes=spec.graph.upstream(
                    running | {port.partition(".")[0] for port in section.of}
                ),
                **texts,
            )
        )
    return counts


def compared_rows(
    spec: LoopSpec, name: str, port: str, passes: Sequence[RowCounts], step: RowCounts
) -> TableSize:
    """Rows of which an evaluation with `of` reads the loss at a teaching port (`node.port`): those
    that its last pass would teach, or its own."""
    learner, _, teaching = port.partition(".")
    if passes:
        return passes[-1].taught(learner, teaching).mean
    own = [step.arriving(name, kind).mean for kind in ("rows", "pairs")]
    table = max(own, key=lambda size: size.rows, default=EMPTY)
    return table.as_pairs if teaching == "pairs" else table
