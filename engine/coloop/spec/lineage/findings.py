"""What only lineage can see of a loop: scores that would have to rise without `aggregate`, joins of
rows that have nothing in common, gathering by a node that is no ancestor.

Invariant: each problem is found once, at the first place where it shows; what merely follows from
it (an empty table downstream) is not reported.
"""

from collections.abc import Mapping

from coloop.spec.algorithm import off_policy_of
from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.levels import Levels, Relation
from coloop.spec.lineage.lineage import Attachment, Lineage, lineage_throughout
from coloop.spec.lineage.walk import OWN_ROLLOUT_INPUTS
from coloop.spec.training import Gather


def compute_lineage(
    spec: LoopSpec, known_columns: Mapping[str, frozenset[str]] | None = None
) -> tuple[Lineage, list[Diagnostic]]:
    """The lineage of a loop from its spec alone, over the edges that live in any phase, and what is
    wrong with it.

    Args:
        known_columns: by dataset node, the columns of a source that somebody has looked into.
    """
    lineage = lineage_throughout(spec, known_columns)
    numbers = {id(edge): index for index, edge in enumerate(spec.edges)}
    found: list[Diagnostic] = []
    for name in spec.nodes:
        found.extend(_check_join(lineage, name, numbers))
    for edge in lineage.walk.edges:
        finding = _check_scores(lineage, edge, numbers[id(edge)])
        if finding is not None:
            found.append(finding)
    return lineage, found


def _check_join(lineage: Lineage, name: str, numbers: Mapping[int, int]) -> list[Diagnostic]:
    node, join = lineage.spec.nodes[name], lineage.join(name)
    apart = join.apart
    if apart is None and (later := lineage.later_join(name)) is not None:
        apart = later.apart
    if apart is not None:
        return [_no_common_ancestor(lineage, name, apart, numbers)]
    if isinstance(node.join, Gather) and join.gather_missing:
        by = node.join.gather
        rows = _names(join.gather_missing)
        message = (
            f"its rows ({rows}) have no parent to be gathered under"
            if by is None
            else f"cannot gather by `{by}`: its rows ({rows}) do not descend from rows of `{by}`"
        )
        return [
            Diagnostic(
                code="lineage.gather_without_ancestor",
                message=message,
                hint="set a node further up, or use `join: concat`",
                node=name,
                field="join",
            )
        ]
    return []


def _no_common_ancestor(
    lineage: Lineage, name: str, apart: tuple[Edge, Edge], numbers: Mapping[int, int]
) -> Diagnostic:
    first, second = apart
    fixes: list[Fix] = []
    if lineage.spec.nodes[name].about.is_concat_allowed:
        fixes.append(Fix.set("Put the inputs one after another", f"nodes.{name}.join", "concat"))
    path = f"edges.{numbers[id(second)]}"
    removal = Change(op="remove_edge", path=path)
    fixes.append(Fix(title=f"Remove {second.label}", changes=(removal,)))
    return Diagnostic(
        code="lineage.no_common_ancestor",
        message=(
            f"`{first.label}` and `{second.label}` carry rows that share no ancestor "
            f"({_names(lineage.edge_levels(first))}; {_names(lineage.edge_levels(second))}), so "
            "they cannot be joined"
        ),
        hint="use `join: concat` to append them, each with its own lineage",
        node=name,
        field="join",
        fixes=tuple(fixes),
    )


def _check_scores(lineage: Lineage, edge: Edge, number: int) -> Diagnostic | None:
    if not _reaches_rows(lineage, edge):
        return None
    attachment = lineage.attachment(edge)
    if not attachment.scored:
        return None
    if not attachment.receivers:
        return _aggregate_without_rows(lineage, edge, number)
    if attachment.relation is Relation.NONE:
        return _unrelated_scores(lineage, edge, attachment, number)
    if attachment.rises and edge.aggregate is None and not _is_off_policy(lineage, edge):
        return _missing_aggregate(edge, attachment, number)
    return None


def _reaches_rows(lineage: Lineage, edge: Edge) -> bool:
    return edge.target.port == OWN_ROLLOUT_INPUTS or edge.target.port in lineage.walk.score_inputs(
        edge.target.node
    )


def _is_off_policy(lineage: Lineage, edge: Edge) -> bool:
    """Rows that others wrote are taken as own completions, so nothing has to rise."""
    if edge.target.port != OWN_ROLLOUT_INPUTS:
        return False
    return off_policy_of(lineage.spec, edge.target.node) is not None


def _missing_aggregate(edge: Edge, attachment: Attachment, number: int) -> Diagnostic:
    scored, receivers = _names(attachment.scored), _names(attachment.receivers)
    where = "descend from" if attachment.relation is Relation.UP else "stand beside"
    value = edge.model_dump(by_alias=True, exclude_defaults=True)
    fixes = tuple(
        Fix.set(f"Add `aggregate: {how}`", f"edges.{number}", {**value, "aggregate": how})
        for how in ("mean", "max", "min")
    )
    return Diagnostic(
        code="lineage.missing_aggregate",
        message=(
            f"`{edge.label}` has no `aggregate`: it scores rows of {scored}, which {where} the "
            f"rows of {receivers} that receive the score"
        ),
        hint=(
            "set how several scores are reduced to one: `aggregate: mean | min | max | sum | last`"
        ),
        field=f"edges.{number}",
        fixes=fixes,
    )


def _unrelated_scores(
    lineage: Lineage, edge: Edge, attachment: Attachment, number: int
) -> Diagnostic:
    own = edge.target.port == OWN_ROLLOUT_INPUTS
    receivers = f"what `{edge.target.node}` wrote" if own else "the rows that receive them"
    change = Change(op="remove_edge", path=f"edges.{number}")
    removal = Fix(title="Remove the edge", changes=(change,))
    return Diagnostic(
        code="lineage.no_common_ancestor",
        message=(
            f"`{edge.label}` carries scores of {_names(attachment.scored)}, which share no "
            f"ancestor with {receivers} ({_names(attachment.receivers)})"
        ),
        hint="score rows that descend from the same dataset or buffer",
        field=f"edges.{number}",
        fixes=(removal,),
    )


def _aggregate_without_rows(lineage: Lineage, edge: Edge, number: int) -> Diagnostic | None:
    target = edge.target
    if target.port == OWN_ROLLOUT_INPUTS or edge.aggregate is None:
        return None
    if lineage.walk.row_edges(target.node):
        return None
    others = lineage.walk.score_edges(target.node)
    if any(other.aggregate is None for other in others) or others[0] is not edge:
        return None
    value = edge.model_dump(by_alias=True, exclude_defaults=True, exclude={"aggregate"})
    new = value if len(value) > 2 else edge.label
    return Diagnostic(
        code="lineage.aggregate_without_rows",
        message=f"`{edge.label}` has an `aggregate`, but `{target.node}` has no rows to receive it",
        hint="connect the rows that should receive the scores, or remove `aggregate`",
        field=f"edges.{number}",
        fixes=(Fix.set("Remove `aggregate`", f"edges.{number}", new),),
    )


def _names(levels: Levels) -> str:
    return ", ".join(f"`{name}`" for name in sorted({str(level) for level in levels}))
