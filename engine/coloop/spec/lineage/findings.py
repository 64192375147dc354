"""Findings that need lineage: scores that go up without `aggregate`, joins of rows without a common
ancestor, gathering by a node that is no ancestor.

Invariant: each problem is reported once, where it first shows; what only follows from it (an empty
table downstream) is not reported.
"""

from collections.abc import Mapping

from coloop.spec.algorithm import off_policy_of
from coloop.spec.diagnostics import Change, Diagnostic, Fix, error
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.levels import Levels, Relation
from coloop.spec.lineage.lineage import Attachment, Lineage, lineage_throughout
from coloop.spec.lineage.walk import OWN_ROLLOUT_INPUTS
from coloop.spec.training import Gather


def compute_lineage(
    spec: LoopSpec, known_columns: Mapping[str, frozenset[str]] | None = None
) -> tuple[Lineage, list[Diagnostic]]:
    """The lineage over all edges that are live in any phase, and what is wrong with it.

    Args:
        known_columns: by dataset node, the columns found in its source.
    """
    lineage = lineage_throughout(spec, known_columns)
    findings = [_check_join(lineage, name) for name in spec.nodes]
    findings += [_check_scores(lineage, edge) for edge in lineage.walk.edges]
    return lineage, [finding for finding in findings if finding is not None]


def _path_of(lineage: Lineage, edge: Edge) -> str:
    return f"edges.{lineage.spec.graph.place_of(edge)}"


def _check_join(lineage: Lineage, name: str) -> Diagnostic | None:
    node, join = lineage.spec.nodes[name], lineage.join(name)
    apart = join.apart
    if apart is None and (later := lineage.later_join(name)) is not None:
        apart = later.apart
    if apart is not None:
        return _no_common_ancestor(lineage, name, *apart)
    if isinstance(node.join, Gather) and join.gather_missing:
        by = node.join.gather
        rows = _names(join.gather_missing)
        return error(
            "lineage.gather_without_ancestor",
            f"nodes.{name}.join",
            f"its rows ({rows}) have no parent to be gathered under"
            if by is None
            else f"cannot gather by `{by}`: its rows ({rows}) do not descend from rows of `{by}`",
            "set a node further up, or use `join: concat`",
        )
    return None


def _no_common_ancestor(lineage: Lineage, name: str, first: Edge, second: Edge) -> Diagnostic:
    path = f"nodes.{name}.join"
    fixes: list[Fix] = []
    if lineage.spec.nodes[name].about.is_concat_allowed:
        fixes.append(Fix.set("Put the inputs one after another", path, "concat"))
    fixes.append(_removal(lineage, second, f"Remove {second.label}"))
    return error(
        "lineage.no_common_ancestor",
        path,
        f"`{first.label}` and `{second.label}` carry rows that share no ancestor "
        f"({_names(lineage.edge_levels(first))}; {_names(lineage.edge_levels(second))}), so "
        "they cannot be joined",
        "use `join: concat` to append them, each with its own lineage",
        *fixes,
    )


def _removal(lineage: Lineage, edge: Edge, title: str) -> Fix:
    change = Change(op="remove_edge", path=_path_of(lineage, edge))
    return Fix(title=title, changes=(change,))


def _check_scores(lineage: Lineage, edge: Edge) -> Diagnostic | None:
    target = edge.target
    own = target.port == OWN_ROLLOUT_INPUTS
    if not own and target.port not in lineage.walk.score_inputs(target.node):
        return None
    attachment = lineage.attachment(edge)
    if not attachment.scored:
        return None
    if not attachment.receivers:
        return _aggregate_without_rows(lineage, edge)
    if attachment.relation is Relation.NONE:
        return _unrelated_scores(lineage, edge, attachment)
    # rows that others wrote are taken as own completions, so nothing has to rise
    is_off_policy = own and off_policy_of(lineage.spec, target.node) is not None
    if attachment.rises and edge.aggregate is None and not is_off_policy:
        return _missing_aggregate(lineage, edge, attachment)
    return None


def _missing_aggregate(lineage: Lineage, edge: Edge, attachment: Attachment) -> Diagnostic:
    scored, receivers = _names(attachment.scored), _names(attachment.receivers)
    where = "descend from" if attachment.relation is Relation.UP else "stand beside"
    path = _path_of(lineage, edge)
    value = edge.model_dump(by_alias=True, exclude_defaults=True)
    fixes = (
        Fix.set(f"Add `aggregate: {how}`", path, {**value, "aggregate": how})
        for how in ("mean", "max", "min")
    )
    return error(
        "lineage.missing_aggregate",
        path,
        f"`{edge.label}` has no `aggregate`: it scores rows of {scored}, which {where} the rows of "
        f"{receivers} that receive the score",
        "set how several scores are reduced to one: `aggregate: mean | min | max | sum | last`",
        *fixes,
    )


def _unrelated_scores(lineage: Lineage, edge: Edge, attachment: Attachment) -> Diagnostic:
    own = edge.target.port == OWN_ROLLOUT_INPUTS
    receivers = f"what `{edge.target.node}` wrote" if own else "the rows that receive them"
    return error(
        "lineage.no_common_ancestor",
        _path_of(lineage, edge),
        f"`{edge.label}` carries scores of {_names(attachment.scored)}, which share no ancestor "
        f"with {receivers} ({_names(attachment.receivers)})",
        "score rows that descend from the same dataset or buffer",
        _removal(lineage, edge, "Remove the edge"),
    )


def _aggregate_without_rows(lineage: Lineage, edge: Edge) -> Diagnostic | None:
    target = edge.target
    if target.port == OWN_ROLLOUT_INPUTS or edge.aggregate is None:
        return None
    if lineage.walk.row_edges(target.node):
        return None
    others = lineage.walk.score_edges(target.node)
    if any(other.aggregate is None for other in others) or others[0] is not edge:
        return None
    path = _path_of(lineage, edge)
    value = edge.model_dump(by_alias=True, exclude_defaults=True, exclude={"aggregate"})
    return error(
        "lineage.aggregate_without_rows",
        path,
        f"`{edge.label}` has an `aggregate`, but `{target.node}` has no rows to receive it",
        "connect the rows that should receive the scores, or remove `aggregate`",
        Fix.set("Remove `aggregate`", path, value if len(value) > 2 else edge.label),
    )


def _names(levels: Levels) -> str:
    return ", ".join(f"`{name}`" for name in sorted({str(level) for level in levels}))
