"""Numbers at steps or tokens: they go to the text that they index, and nowhere else, and to nobody
who wants one number a row."""

from collections.abc import Iterator

from coloop.spec.builtins import Gate, Margin, TurnAllocation, Weighted
from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.graph import Edge
from coloop.spec.levels import Relation
from coloop.spec.lineage import Levels, relate
from coloop.spec.nodes import (
    BufferNode,
    EvaluateNode,
    FilterNode,
    PairsNode,
    RewardNode,
    VerifierNode,
)
from coloop.spec.reward import RewardSource
from coloop.spec.shaping import AccuracyBand, GroupMean, NonzeroVariance, ScoreRule
from coloop.validate.facts import Facts, found
from coloop.validate.taught import AS_THEY_COME

SCORE_RULES = (AccuracyBand, NonzeroVariance, GroupMean, ScoreRule)
"""Rules of a filter that compare scores."""


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
            fixes = (Fix(title="Use the mean over steps", changes=(change,)),)
        yield found(
            "lineage.positions",
            f"`{edge.label}` carries step scores of {_names(texts)} to rows of "
            f"{_names(receivers)}, whose texts have other steps",
            hint="use `scores`, or set `read.reduce` (min, product, last, mean) on the scorer",
            field=facts.place(edge),
            fixes=fixes,
        )


def one_number_is_one(facts: Facts) -> Iterator[Diagnostic]:
    """Who reckons with one number a row is not given one a step."""
    for edge in facts.walk.edges:
        field = _wants_one(facts, edge)
        if field is None or facts.is_dead(edge):
            continue
        giver = _giver_of_steps(facts, edge, frozenset())
        if giver is None:
            continue
        name = edge.target.node
        fixes: tuple[Fix, ...] = ()
        if edge.source.port == "step_scores":
            value = edge.model_dump(by_alias=True, exclude_defaults=True)
            value |= {"from": f"{giver}.scores", "to": str(edge.target)}
            change = Change(op="set", path=facts.place(edge), value=value)
            fixes = (Fix(title=f"Use {giver}.scores", changes=(change,)),)
        yield found(
            "lineage.positions",
            f"`{field}` of `{name}` needs one number per row, but `{edge.label}` has one per step",
            hint=f"use `{giver}.scores` instead of `{giver}.step_scores`",
            node=name,
            field=field,
            fixes=fixes,
        )


def _wants_one(facts: Facts, edge: Edge) -> str | None:
    """The field that says so of what comes in over an edge; None where it may be one a step."""
    node, scorer = facts.nodes[edge.target.node], edge.source.node
    match node:
        case RewardNode() if edge.target.port == "scores":
            return _of_reward(node.source, scorer)
        case FilterNode() if edge.target.port in ("scores", "by"):
            return _of_filter(node, None if edge.target.port == "scores" else scorer)
        case BufferNode() if node.balance is not None and node.balance.by == scorer:
            return "balance.by"
        case PairsNode() if edge.target.port in ("scores", "preference"):
            return "method"
        case VerifierNode() if node.method == "vote" and edge.target.port == "scores":
            return "method"
    return None


def _of_reward(source: RewardSource, scorer: str) -> str | None:
    match source:
        case Weighted() if scorer in source.weights:
            return f"source.weights.{scorer}"
        case Gate() if source.by == scorer:
            return "source.by"
        case Margin() | TurnAllocation():
            return "source.name"
    return None


def _of_filter(node: FilterNode, of: str | None) -> str | None:
    for index, rule in enumerate(node.keep):
        if isinstance(rule, SCORE_RULES) and rule.of == of:
            return f"keep.{index}"
    if of is None and node.per_group is not None and node.per_group.pick in ("best", "worst"):
        return "per_group.pick"
    return "resample" if of is None and node.resample is not None else None


def _giver_of_steps(facts: Facts, edge: Edge, seen: frozenset[str]) -> str | None:
    """The scorer whose numbers at steps come over an edge, whoever hands them on; None where it is
    one number a row, or not known."""
    name = edge.source.node
    if edge.source.port == "step_scores":
        texts, receivers = _indexed_texts(facts, name), facts.lineage.attachment(edge).receivers
        return name if relate(receivers, texts) is Relation.SAME else None
    node = facts.nodes[name]
    hands_on = isinstance(node, FilterNode | BufferNode) or (
        isinstance(node, RewardNode)
        and node.source.type == "builtin"
        and node.source.name in AS_THEY_COME
    )
    if name in seen or edge.source.port != "scores" or not hands_on:
        return None
    givers = (
        _giver_of_steps(facts, one, seen | {name})
        for one in facts.walk.into(name, "scores")
        if not facts.is_dead(one)
    )
    return next((one for one in givers if one is not None), None)


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


RULES = (positions_stay_with_their_text, one_number_is_one)
