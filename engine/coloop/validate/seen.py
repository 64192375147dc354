"""Uncertain columns: some rows lack them, or only part of a large file was read.

The rules of `columns` run twice more: with the columns that every row has, and with those that were
seen. New findings become warnings that say what was read. Also rewards that combine scores, and
evaluations on other rows.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coloop.plan.phases import FlatPhase
from coloop.plan.unrolled import Unrolled
from coloop.spec.builtins import Weighted
from coloop.spec.diagnostics import Diagnostic, Fix, Severity, error, warning
from coloop.spec.graph import Edge
from coloop.spec.lineage.columns import Columns
from coloop.spec.names import shared
from coloop.spec.nodes import DatasetNode, EvaluateNode, RewardNode
from coloop.validate import columns
from coloop.validate.columns import fields_name_columns, score_fields, texts_are_there_to_read
from coloop.validate.facts import Facts, Rule, rules_of
from coloop.validate.references import ROW_GIVERS
from coloop.validate.structure import removal

UNKNOWN: Final = "structure.unknown_column"
NAME_RULES: Final = rules_of(columns)
WITHOUT_DEFAULT: Final = (fields_name_columns, texts_are_there_to_read)
"""Rules for fields that need a value in every row; in Jinja an absent one is empty."""


def columns_were_seen(facts: Facts) -> Iterator[Diagnostic]:
    """Names are columns of some row that was read, where only part of a large file was."""
    parts = {name: seen for name, seen in facts.glances.items() if not seen.is_whole}
    if not parts:
        return
    seen_columns = {name: facts.columns_of(name) for name in facts.glances}
    looked = ", ".join(f"{seen.rows:,} rows of `{name}`" for name, seen in parts.items())
    for finding in _new_findings(facts, seen_columns, NAME_RULES):
        yield _as_warning(finding, "data.unseen_column", f"{finding.message} in {looked}")


def columns_are_in_every_row(facts: Facts) -> Iterator[Diagnostic]:
    """Columns that are needed in each row are in each row."""
    lacking = {
        (name, column): lack
        for name, seen in facts.glances.items()
        for column, lack in seen.lacking.items()
    }
    if not lacking:
        return
    common = {name: facts.columns_of(name, everywhere=True) for name in facts.glances}
    for finding in _new_findings(facts, common, WITHOUT_DEFAULT):
        for (name, column), lack in lacking.items():
            if f"`{column}`" not in finding.message:
                continue
            message = (
                f"`{column}` is missing in {lack.rows:,} of {facts.glances[name].rows:,} rows of "
                f"`{name}`{lack.first}; nodes that read it get nothing for these rows"
            )
            yield _as_warning(finding, "data.partial_column", message)


def _new_findings(
    facts: Facts, known_columns: Mapping[str, frozenset[str]], rules: Iterable[Rule]
) -> Iterator[Diagnostic]:
    known = {(finding.path, finding.message) for rule in NAME_RULES for finding in rule(facts)}
    other = Facts(facts.spec, facts.root, known_columns=known_columns)
    for rule in rules:
        for finding in rule(other):
            if finding.code == UNKNOWN and (finding.path, finding.message) not in known:
                yield finding


def _as_warning(finding: Diagnostic, code: str, message: str) -> Diagnostic:
    return finding.model_copy(
        update={"code": code, "severity": Severity.WARNING, "message": message}
    )


# Built-in rewards that name the scores that they put together: none is forgotten, and what they
# make of them is not always 0.


def scores_are_read(facts: Facts) -> Iterator[Diagnostic]:
    """A reward that names scorers names all that are connected to it."""
    for name, node in facts.nodes.items():
        named = _named(facts, name) if isinstance(node, RewardNode) else set()
        edges = facts.walk.into(name, "scores")
        if not isinstance(node, RewardNode) or not named <= {edge.source.node for edge in edges}:
            continue
        for edge in edges if named else ():
            if edge.source.node not in named and not facts.is_dead(edge):
                yield _unread(facts, edge, name, node)


def _unread(facts: Facts, edge: Edge, name: str, node: RewardNode) -> Diagnostic:
    fixes, hint = [removal(facts, edge)], "name it there, or remove the edge"
    if isinstance(node.source, Weighted):
        fixes = [
            Fix.set(f"Give {edge.source.node} weight 1", f"{_path(name)}.{edge.source.node}", 1.0),
            *fixes,
        ]
        hint = "give it a weight in `weights`, or remove the edge"
    return error(
        "structure.unread_input",
        facts.place(edge),
        f"`{edge.label}` is not used: `{getattr(node.source, 'name', '')}` combines the scorers "
        f"that `{name}` lists, and `{edge.source.node}` is not one of them",
        hint,
        *fixes,
    )


def sums_have_a_weight(facts: Facts) -> Iterator[Diagnostic]:
    """Some score of a weighted sum counts, in every phase that learns from it."""
    for name in facts.nodes:
        idle = [phase for phase in facts.phases if _weighs_nothing(facts, name, phase)]
        learning = [phase for phase in idle if _pays_alone(facts, name, phase)]
        if len(idle) == len(facts.phases) or learning:
            where = "" if len(idle) == len(facts.phases) else f" in {learning[0].label}"
            yield error(
                "learning.every_weight_zero",
                f"nodes.{name}.source.weights",
                f"every weight of `{name}` is 0{where}, so its score is always 0",
                "give one of them a weight, or remove the node",
            )


def _pays_alone(facts: Facts, name: str, phase: FlatPhase) -> bool:
    """Whether this node is the only source of a live teaching port."""
    edges = (facts.alive(*port, phase=phase) for port in phase.live)
    return any({edge.source.node for edge in paying} == {name} for paying in edges)


def _weighs_nothing(facts: Facts, name: str, phase: FlatPhase) -> bool:
    """Whether every weight is 0 in a phase and none can change."""
    source, path = getattr(facts.nodes[name], "source", None), _path(name)
    if not isinstance(source, Weighted) or path in facts.moved_paths:
        return False
    values = facts.values_in(phase)
    weights = dict(values.get(path, source.weights))
    weights |= {key: values.get(f"{path}.{key}", own) for key, own in weights.items()}
    is_moved = any(f"{path}.{key}" in facts.moved_paths for key in weights)
    return not is_moved and not any(weights.values())


def _named(facts: Facts, name: str) -> set[str]:
    """Scorers that a reward names, in any phase."""
    named = {word for _, word in score_fields(facts.nodes[name])}
    sets = (*map(facts.values_in, facts.phases), *facts.trigger_values)
    return named.union(*(values.get(_path(name), ()) for values in sets))


def _path(name: str) -> str:
    return f"nodes.{name}.source.weights"


# Held-out rows in the place of a node's rows: do they bring the columns that are read after it.
#
# The rows of a probe stand under the replaced node's name and have no other ancestors. So the
# names of all tables are computed once more with these rows, and looked at by the same rules;
# what was wrong before is not told again.


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
            before = {_key(finding) for finding in _findings(facts)}
        for finding in _findings(_with_rows(facts, replaced, given)):
            if _node_of(facts, finding) in region and _key(finding) not in before:
                message = f"in the evaluation `{name}`: {finding.message}"
                rows = facts.walk.into(name, "rows")[0].source.node
                hint = f"give the rows of `{rows}` the columns of `{replaced}`"
                yield finding.model_copy(update={"message": message, "hint": hint, "fixes": ()})


def _given_columns(facts: Facts, probe: str) -> frozenset[str] | None:
    """Columns of a probe's rows; None if unknown."""
    edges = facts.walk.into(probe, "rows")
    tables = [part for edge in edges for part in facts.lineage.names.of_edge(edge).values()]
    if not tables:
        return None
    names = shared(tables)
    return None if names.is_open else frozenset(names.bare)


def _is_covered(facts: Facts, replaced: str, given: frozenset[str]) -> bool:
    """Whether `given` has all columns of the replaced dataset; False for other kinds of nodes."""
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
    """The node of a finding, or the target of its edge; None at a teaching port."""
    if finding.node is not None or finding.field is None:
        return finding.node
    index = finding.field.removeprefix("edges.").partition(".")[0]
    target = facts.spec.edges[int(index)].target if index.isdigit() else None
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
