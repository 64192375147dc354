"""Names inside fields: nodes, phases, ports, buffers, metrics and paths that must exist.

A name is looked up where it is written; what the named thing then does there is the business of
other rules.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean
from coloop.spec.lineage import Level
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    EvaluateNode,
    FilterNode,
    Node,
    RewardNode,
    VerifierNode,
)
from coloop.spec.shaping import GROUP_RULES
from coloop.spec.training import Gather
from coloop.validate.facts import Facts, found

GROUP_WORDS: Final = frozenset({"prompt", "role", "round"})
"""Words of `group_by` that are no nodes."""

ROW_GIVERS: Final = frozenset({"dataset", "template", "filter", "buffer"})
"""Kinds that give rows which others' rows can stand in for."""

SCORERS: Final = frozenset({"reward", "verifier"})


def models_name_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """`of` and `with` name other nodes that have weights; `at` names phases."""
    for name in facts.nodes:
        model = facts.model(name)
        if model is None:
            continue
        for key, attribute in (("of", "of"), ("with", "with_")):
            other = getattr(model, attribute, None)
            if other is None:
                continue
            where = f"model.{key}"
            if other not in facts.nodes:
                yield unknown_node(facts, other, name, where, _has_weights(facts))
            elif facts.model(other) is None:
                yield found(
                    "structure.wrong_kind",
                    f"`{where}` names `{other}`, which has no weights",
                    hint="name a node with a `model`",
                    node=name,
                    field=where,
                )
        moments = [("model.at", getattr(model, "at", None) if model.type == "copy" else None)]
        refresh = getattr(model, "refresh", None)
        moments += [("model.refresh.at", at) for at in as_tuple(getattr(refresh, "at", None))]
        for where, moment in moments:
            if moment is not None and moment not in facts.phase_names:
                yield unknown_phase(facts, moment, node=name, field=where)


def fields_name_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """Other fields of nodes that name nodes, and of which kind these must be."""
    for name, node in facts.nodes.items():
        for field, other, kinds in _named_nodes(node):
            if other not in facts.nodes:
                yield unknown_node(facts, other, name, field, of_kinds(facts, kinds))
            elif kinds and facts.walk.kinds[other] not in kinds:
                wanted = " or ".join(sorted(kinds))
                yield found(
                    "structure.wrong_kind",
                    f"`{field}` names the {facts.walk.kinds[other]} `{other}`, but needs a "
                    f"{wanted}",
                    hint=did_you_mean(other, of_kinds(facts, kinds)),
                    node=name,
                    field=field,
                )


def groups_name_ancestors(facts: Facts) -> Iterator[Diagnostic]:
    """What rows of a group share is a word, or a node from whose rows they descend."""
    for name, node in facts.nodes.items():
        for field, names, levels in _group_fields(facts, name, node):
            for word in names:
                if word == "round" and (buffers := _forgetting_rounds(facts, levels)):
                    yield _no_round(name, field, buffers[0])
                if word in GROUP_WORDS or (field == "per_group.by" and word not in facts.nodes):
                    continue
                if word not in facts.nodes:
                    known = [*GROUP_WORDS, *facts.nodes]
                    yield unknown_node(facts, word, name, field, known)
                    continue
                apart = [lv for lv in levels if facts.lineage.ancestor_at(lv, word) is None]
                if apart:
                    yield _no_ancestor(facts, name, field, word, apart)


def _named_nodes(node: Node) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Field, name and the kinds that are allowed there (none: any)."""
    if isinstance(node.join, Gather) and node.join.gather is not None:
        yield "join.gather", node.join.gather, frozenset()
    match node:
        case EvaluateNode():
            if node.instead_of is not None:
                yield "instead_of", node.instead_of, ROW_GIVERS
            for port in node.of:
                yield "of", port.partition(".")[0], frozenset()
        case BufferNode() if node.balance is not None:
            yield "balance.by", node.balance.by, SCORERS
        case FilterNode():
            if node.fill is not None and node.fill.from_ is not None:
                yield "fill.from", node.fill.from_, frozenset()
            for index, rule in enumerate(node.keep):
                of = getattr(rule, "of", None)
                if of is not None:
                    yield f"keep.{index}.of", of, frozenset()
        case ActorNode() | VerifierNode() if node.credit.class_weights is not None:
            yield "credit.class_weights.by", node.credit.class_weights.by, SCORERS
        case RewardNode():
            yield from _scorers_of_builtin(node)


def _scorers_of_builtin(node: RewardNode) -> Iterator[tuple[str, str, frozenset[str]]]:
    source = node.source
    if source.type != "builtin":
        return
    match source.name:
        case "agreement":
            for index, name in enumerate(source.columns):
                yield f"source.columns.{index}", name, frozenset()
        case "gate":
            yield "source.value", source.value, frozenset()
            yield "source.by", source.by, frozenset()
        case "weighted":
            for name in source.weights:
                yield f"source.weights.{name}", name, frozenset()


def _group_fields(
    facts: Facts, name: str, node: Node
) -> Iterator[tuple[str, tuple[str, ...], frozenset[Any]]]:
    rows = facts.lineage.input_levels(name)
    match node:
        case ActorNode() | VerifierNode():
            own = facts.rewarded_levels(name)
            if node.credit.group_by is not None:
                yield "credit.group_by", node.credit.group_by, own
            if node.credit.balance is not None:
                yield "credit.balance.per", (node.credit.balance.per,), own
            if isinstance(node, VerifierNode) and node.by is not None:
                yield "by", as_tuple(node.by), rows
        case FilterNode():
            for index, rule in enumerate(node.keep):
                if rule.rule in GROUP_RULES:
                    yield f"keep.{index}.by", as_tuple(getattr(rule, "by", None)), rows
            if node.per_group is not None:
                yield "per_group.by", as_tuple(node.per_group.by), rows


def _forgetting_rounds(facts: Facts, levels: Iterable[Level]) -> list[str]:
    """Buffers that some of the levels come out of, and into which rows of several rounds went."""
    return [
        name
        for name in facts.buffers_in(levels)
        if any(facts.lineage.rounds_along(edge) for edge in facts.walk.into(name))
    ]


def _no_round(name: str, field: str, buffer: str) -> Diagnostic:
    return found(
        "structure.group_not_ancestor",
        f"`{field}` names `round`, but rows from `{buffer}` no longer have a round: those of all "
        "rounds would be one group",
        hint="name `prompt` or `role`",
        node=name,
        field=field,
    )


def _no_ancestor(
    facts: Facts, name: str, field: str, word: str, apart: Iterable[Level]
) -> Diagnostic:
    """Groups of rows that descend from no row of the node by which they are grouped."""
    buffers = facts.buffers_in(apart)
    rows, hint = f"the rows of `{name}`", "name a node further up, or `prompt`, `role`, `round`"
    if buffers:
        rows = f"the rows of `{name}` from `{buffers[0]}`"
        hint = "rows from a buffer have no ancestors: name `prompt` or `role`"
    return found(
        "structure.group_not_ancestor",
        f"`{field}` names `{word}`, but {rows} do not descend from rows of `{word}`",
        hint=hint,
        node=name,
        field=field,
    )


def _has_weights(facts: Facts) -> list[str]:
    return [name for name in facts.nodes if facts.model(name) is not None]


def of_kinds(facts: Facts, kinds: Iterable[str]) -> list[str]:
    wanted = set(kinds)
    return [name for name, kind in facts.walk.kinds.items() if not wanted or kind in wanted]


def unknown_node(
    facts: Facts, name: str, node: str | None, field: str, known: Iterable[str]
) -> Diagnostic:
    names = list(known) or list(facts.nodes)
    path = f"nodes.{node}.{field}" if node is not None else field
    fixes = tuple(
        Fix(title=f"Change to {near}", changes=(Change(op="set", path=path, value=near),))
        for near in closest(name, names, limit=1)
    )
    return found(
        "structure.unknown_node",
        f"there is no node `{name}`",
        hint=did_you_mean(name, names),
        node=node,
        field=field,
        fixes=() if node is not None and field == "of" else fixes,
    )


def unknown_phase(facts: Facts, name: str, *, node: str | None = None, field: str) -> Diagnostic:
    return found(
        "structure.unknown_phase",
        f"there is no phase `{name}`",
        hint=did_you_mean(name, facts.phase_names) or "this schedule has no phases",
        node=node,
        field=field,
    )


Rule = Callable[[Facts], Iterator[Diagnostic]]
RULES: tuple[Rule, ...] = (
    models_name_nodes,
    fields_name_nodes,
    groups_name_ancestors,
)
