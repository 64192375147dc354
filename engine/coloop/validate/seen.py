"""Columns that are not certain: some rows lack them, or not all of a large file was looked at.

The rules of `columns` are asked twice more: with the columns that every row has, and with those
that were seen. What they find then and not before is told as a warning, with what was looked at.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coloop.spec.builtins import Weighted
from coloop.spec.diagnostics import Diagnostic, Fix, Severity, error
from coloop.spec.graph import Edge
from coloop.spec.nodes import RewardNode
from coloop.validate import columns as column_names
from coloop.validate.columns import fields_name_columns, score_fields, texts_are_there_to_read
from coloop.validate.edges import removal
from coloop.validate.facts import Facts, PhaseFacts, Rule, rules_of

UNKNOWN: Final = "structure.unknown_column"
NAME_RULES: Final = rules_of(column_names)
WITHOUT_DEFAULT: Final = (fields_name_columns, texts_are_there_to_read)
"""Rules for places that want a value in every row; in a text an absent one is empty."""


def columns_were_seen(facts: Facts) -> Iterator[Diagnostic]:
    """Names that no row gives, as far as a large file was looked at."""
    parts = {name: seen for name, seen in facts.glances.items() if not seen.is_whole}
    if not parts:
        return
    columns = {name: facts.columns_of(name) for name in facts.glances}
    looked = ", ".join(f"{seen.rows:,} rows of `{name}`" for name, seen in parts.items())
    for finding in _new_findings(facts, columns, NAME_RULES):
        yield _as_warning(finding, "data.unseen_column", f"{finding.message} in {looked}")


def columns_are_in_every_row(facts: Facts) -> Iterator[Diagnostic]:
    """Names that some rows give and others do not, where each row needs them."""
    lacking = {
        (name, column): lack
        for name, seen in facts.glances.items()
        for column, lack in seen.lacking.items()
    }
    if not lacking:
        return
    columns = {name: facts.columns_of(name, everywhere=True) for name in facts.glances}
    for finding in _new_findings(facts, columns, WITHOUT_DEFAULT):
        for (name, column), lack in lacking.items():
            if f"`{column}`" not in finding.message:
                continue
            message = (
                f"`{column}` is missing in {lack.rows:,} of {facts.glances[name].rows:,} rows of "
                f"`{name}`{lack.first}; nodes that read it get nothing for these rows"
            )
            yield _as_warning(finding, "data.partial_column", message)


def _new_findings(
    facts: Facts, columns: Mapping[str, frozenset[str]], rules: Iterable[Rule]
) -> Iterator[Diagnostic]:
    known = {(one.path, one.message) for rule in NAME_RULES for one in rule(facts)}
    other = Facts(facts.spec, facts.root, is_confined=facts.is_confined, known_columns=columns)
    for rule in rules:
        for one in rule(other):
            if one.code == UNKNOWN and (one.path, one.message) not in known:
                yield one


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


def _pays_alone(facts: Facts, name: str, phase: PhaseFacts) -> bool:
    """Whether a live port learns from this scorer and no other."""
    for port in phase.live:
        edges = [one for one in facts.walk.into(*port) if not facts.is_dead(one, phase)]
        if edges and {edge.source.node for edge in edges} == {name}:
            return True
    return False


def _weighs_nothing(facts: Facts, name: str, phase: PhaseFacts) -> bool:
    """Whether every weight is 0 in a phase, and nothing moves one."""
    source, path = getattr(facts.nodes[name], "source", None), _path(name)
    if not isinstance(source, Weighted) or path in facts.moved_paths:
        return False
    values = facts.values_in(phase)
    weights = dict(values.get(path, source.weights))
    weights |= {key: values.get(f"{path}.{key}", own) for key, own in weights.items()}
    is_moved = any(f"{path}.{key}" in facts.moved_paths for key in weights)
    return not is_moved and not any(weights.values())


def _named(facts: Facts, name: str) -> set[str]:
    """Scorers that a reward names, in whatever phase."""
    named = {word for _, word in score_fields(facts.nodes[name])}
    sets = (*map(facts.values_in, facts.phases), *facts.trigger_values)
    return named.union(*(one.get(_path(name), ()) for one in sets))


def _path(name: str) -> str:
    return f"nodes.{name}.source.weights"
