"""Numbers at steps or tokens: they go to the text that they index, and nowhere else."""

from collections.abc import Iterator

from coloop.diagnostics import Change, Diagnostic, Fix
from coloop.spec.graph import Edge
from coloop.spec.lineage import Levels, relate
from coloop.spec.lineage.levels import Relation
from coloop.spec.nodes import EvaluateNode, VerifierNode
from coloop.validate.facts import Facts, found


def positions_stay_with_their_text(facts: Facts) -> Iterator[Diagnostic]:
    """Step scores reach rows whose text has those steps, or are reduced to one number."""
    for edge in facts.walk.edges:
        if edge.source.port != "step_scores" or not _asks_for_rows(facts, edge):
            continue
        node = facts.nodes[edge.source.node]
        if isinstance(node, VerifierNode) and node.read.reduce is not None:
            continue
        texts = _indexed_texts(facts, edge.source.node)
        receivers = facts.lineage.attachment(edge).receivers
        if not texts or not receivers or relate(receivers, texts) is Relation.SAME:
            continue
        fixes: tuple[Fix, ...] = ()
        if isinstance(node, VerifierNode):
            path = f"nodes.{edge.source.node}.read.reduce"
            change = Change(op="set", path=path, value="mean")
            fixes = (Fix(title="Reduce steps by their mean", changes=(change,)),)
        yield found(
            "lineage.positions",
            f"`{edge.label}` brings numbers at steps of {_names(texts)} to rows of "
            f"{_names(receivers)}, whose text has other steps",
            hint="take `scores`, or set `read.reduce` (min, product, last, mean) at the scorer",
            field=facts.place(edge),
            fixes=fixes,
        )


def _asks_for_rows(facts: Facts, edge: Edge) -> bool:
    if edge.target.port == "rewards":
        return True
    target = edge.target.node
    is_probe = isinstance(facts.nodes[target], EvaluateNode)
    return not is_probe and edge.target.port in facts.walk.score_inputs(target)


def _indexed_texts(facts: Facts, scorer: str) -> Levels:
    """Levels of the rows whose text the positions count: what was judged, not the verdict."""
    if facts.lineage.writes(scorer):
        return facts.lineage.input_levels(scorer)
    return facts.lineage.levels(scorer, "step_scores")


def _names(levels: Levels) -> str:
    return ", ".join(f"`{name}`" for name in sorted({str(level) for level in levels}))


RULES = (positions_stay_with_their_text,)
