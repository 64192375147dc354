"""Held-out rows in the place of a node's rows: do they bring the columns that are read after it.

The rows of a probe stand under the replaced node's name and have no other ancestors. So the names
of all tables are computed once more with these rows, and looked at by the same rules; what was
wrong before is not told again.
"""

import copy
from collections.abc import Iterator

from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic, warning
from coloop.spec.graph import Edge
from coloop.spec.lineage.columns import Columns
from coloop.spec.names import shared
from coloop.spec.nodes import DatasetNode, EvaluateNode
from coloop.validate import columns
from coloop.validate.facts import Facts
from coloop.validate.references import ROW_GIVERS


def probes_bring_what_is_read(facts: Facts) -> Iterator[Diagnostic]:
    """Every column that the probed stages read is in the probe's rows."""
    before: set[tuple[str, str | None, str | None]] | None = None
    for name, node in facts.nodes.items():
        replaced = node.instead_of if isinstance(node, EvaluateNode) else None
        if replaced is None or facts.walk.kinds.get(replaced) not in ROW_GIVERS:
            continue
        given = _given_columns(facts, name)
        if not given or _is_covered(facts, replaced, given):
            continue
        region = facts.walk.downstream(replaced) & facts.walk.upstream(name)
        if before is None:
            before = {_key(one) for one in _findings(facts)}
        for finding in _findings(_with_rows(facts, replaced, given)):
            place = _node_of(facts, finding)
            if place in region and _key(finding) not in before:
                message = f"in the evaluation `{name}`: {finding.message}"
                rows = facts.walk.into(name, "rows")[0].source.node
                hint = f"give the rows of `{rows}` the columns of `{replaced}`"
                yield finding.model_copy(update={"message": message, "hint": hint, "fixes": ()})


def _given_columns(facts: Facts, probe: str) -> frozenset[str] | None:
    """Columns of a probe's rows; nothing where there are none, or they are not known."""
    edges = facts.walk.into(probe, "rows")
    tables = [part for edge in edges for part in facts.lineage.names.of_edge(edge).values()]
    if not tables:
        return None
    names = shared(tables)
    return None if names.is_open else frozenset(names.bare)


def _is_covered(facts: Facts, replaced: str, given: frozenset[str]) -> bool:
    """Whether nothing can be missing: a dataset in the place of one with no more columns."""
    if not isinstance(facts.nodes[replaced], DatasetNode):
        return False
    tables = facts.lineage.names.at(replaced, "rows").values()
    return all(names.bare.keys() <= given and not names.is_open for names in tables)


def _with_rows(facts: Facts, replaced: str, given: frozenset[str]) -> Facts:
    variant, lineage = copy.copy(facts), copy.copy(facts.lineage)
    names = Columns(facts.lineage, facts.known_columns, {replaced: given})
    lineage.__dict__["names"] = names
    variant.lineage = lineage
    return variant


def _findings(facts: Facts) -> list[Diagnostic]:
    rules = (
        columns.texts_name_columns,
        columns.functions_name_columns,
        columns.fields_name_columns,
        columns.texts_are_there_to_read,
    )
    return [finding for rule in rules for finding in rule(facts)]


def _node_of(facts: Facts, finding: Diagnostic) -> str | None:
    """The node that a finding is about; nothing for what is learned, which a probe does not run."""
    if finding.node is not None or finding.field is None:
        return finding.node
    number = finding.field.removeprefix("edges.").partition(".")[0]
    target = facts.spec.edges[int(number)].target if number.isdigit() else None
    if target is None or (target.node, target.port) in facts.teaching_ports:
        return None
    return target.node


def _key(finding: Diagnostic) -> tuple[str, str | None, str | None]:
    return finding.code, finding.node, finding.field


# Evaluations of a step's own tables whose tables no step has.
#
# Such an evaluation causes nothing to run but scorers without weights on rows that are there. So
# a verifier or reward model that it reads has to run for somebody else: for a learner, a buffer
# or a filter. Found in the unrolled steps.


def tables_are_there_to_measure(unrolled: Unrolled) -> Iterator[Diagnostic]:
    """What an evaluation of the step's own tables reads runs in some phase."""
    running = frozenset(
        giver for phase in unrolled.phases for stage in phase.step.stages for giver in stage.givers
    )
    for name, node in unrolled.spec.nodes.items():
        if not isinstance(node, EvaluateNode) or node.instead_of or node.of:
            continue
        for edge in unrolled.spec.graph.edges_into(name):
            if edge.source.node not in running:
                yield _unmeasured(edge)


def _unmeasured(edge: Edge) -> Diagnostic:
    probe, scorer = edge.target.node, edge.source.node
    return warning(
        "structure.never_measured",
        f"nodes.{probe}.{edge.target.port}",
        f"`{probe}` measures nothing of `{scorer}`: it reads the tables of the step, but no phase "
        f"runs `{scorer}`, because nothing learns from it",
        "connect held-out rows and name the node that they replace in `instead_of`, or let a "
        f"node learn from, store or filter by the scores of `{scorer}`",
    )
