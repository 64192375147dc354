"""What teaching ports get: labels per text or per step, pairs with or without probabilities.

Only what the graph decides is checked: a service, Python or a column may give either, and values in
files are not read.
"""

from collections.abc import Iterator
from typing import Final, Literal

from coloop.spec.algorithm import (
    SOFT_LOSSES,
    Algorithm,
    BradleyTerry,
    LabelCrossEntropy,
    PreferenceAlgorithm,
    ResolvedPreference,
    resolve_algorithm,
)
from coloop.spec.builtins import Gate, Margin, TurnAllocation, Weighted
from coloop.spec.diagnostics import Diagnostic, Fix, error, warning
from coloop.spec.graph import Edge
from coloop.spec.heads import learns_steps, scored_at
from coloop.spec.levels import Relation
from coloop.spec.lineage import Levels, relate
from coloop.spec.nodes import (
    BufferNode,
    EvaluateNode,
    FilterNode,
    PairsNode,
    RewardNode,
    SearchNode,
    VerifierNode,
)
from coloop.spec.reward import RewardSource
from coloop.spec.shaping import AccuracyBand, GroupMean, NonzeroVariance, ScoreRule
from coloop.validate.facts import Facts

Kind = Literal["steps", "whole"]

AS_THEY_COME: Final = frozenset({"one_minus", "band", "first", "other_rows", "constant", "coin"})
"""Built-in rewards with one number per row or step, as their input."""
OPEN: Final = frozenset({"column", "gate"})
"""Built-in rewards for which that depends on the rows."""


def labels_are_of_what_is_learned(facts: Facts) -> Iterator[Diagnostic]:
    """Step scorers get one label per step, text scorers one per text."""
    for name in facts.learners:
        node = facts.nodes[name]
        for edge in facts.walk.into(name, "labels"):
            given = _given(facts, edge, frozenset())
            scorer = edge.source.node
            if given == "whole" and learns_steps(node):
                yield error(
                    "learning.label_kind",
                    f"nodes.{name}.read.granularity",
                    f"`{name}.labels` needs one label per step (`read.granularity: step`), but "
                    f"`{edge.source}` has one number per row",
                    "connect `step_scores` of a scorer that grades steps instead of "
                    f"`{scorer}`, or set `read.granularity: sequence`",
                    *_step_fixes(facts, edge, name),
                )
            elif given == "steps" and scored_at(node) == "scores":
                yield error(
                    "learning.label_kind",
                    f"nodes.{name}.algorithm.labels",
                    f"`{name}.labels` needs one number per text, but `{edge.source}` has one per "
                    "step",
                    f"connect `{scorer}.scores`, or train `{name}` on steps (a discriminative "
                    "verifier with `read.granularity: step`)",
                )


def _given(facts: Facts, edge: Edge, seen: frozenset[str]) -> Kind | None:
    """Whether an edge brings a number per row or per step; None if it depends on the rows."""
    name = edge.source.node
    node = facts.nodes[name]
    if name in seen:
        return None
    match node:
        case VerifierNode() if edge.source.port == "step_scores":
            return None if facts.lineage.writes(name) or node.read.reduce else "steps"
        case SearchNode() if edge.source.port == "step_scores":
            return "steps"
        case VerifierNode() | SearchNode():
            return "whole"
        case RewardNode():
            return _of_reward(facts, name, node, seen)
        case _:
            return _of_inputs(facts, name, seen)


def _of_reward(facts: Facts, name: str, node: RewardNode, seen: frozenset[str]) -> Kind | None:
    source = node.source
    if source.type == "model":
        return "whole"
    if source.type != "builtin" or source.name in OPEN:
        return None
    return _of_inputs(facts, name, seen) if source.name in AS_THEY_COME else "whole"


def _of_inputs(facts: Facts, name: str, seen: frozenset[str]) -> Kind | None:
    """The kind of all scores that a node receives; None if they differ or it is not known."""
    edges = facts.walk.into(name, "scores")
    kinds = {_given(facts, edge, seen | {name}) for edge in edges}
    return kinds.pop() if len(kinds) == 1 else None


def _step_fixes(facts: Facts, edge: Edge, name: str) -> tuple[Fix, ...]:
    fixes = (Fix.set("Train on whole texts", f"nodes.{name}.read.granularity", "sequence"),)
    source = facts.nodes[edge.source.node]
    if not isinstance(source, VerifierNode) or source.method != "rule":
        return fixes
    value = f"{edge.source.node}.step_scores -> {edge.target}"
    return (Fix.set("Use its step scores", facts.place(edge), value), *fixes)


def pairs_are_sure_where_they_must_be(facts: Facts) -> Iterator[Diagnostic]:
    """Pairs with a preference probability, from a node or in a column, go to algorithms that read
    it."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "pairs"):
            soft = _soft_giver(facts, edge, frozenset())
            givers = [] if soft else _givers_of_probabilities(facts, edge)
            for entry in facts.algorithms(name, "pairs"):
                remedy = _reads_no_probability(entry)
                if soft and remedy:
                    yield error(
                        "learning.soft_pairs",
                        f"nodes.{name}.algorithm",
                        f"`{soft}` keeps preferences as probabilities (`soft`), but `{entry.name}` "
                        f"at `{name}.pairs` treats each pair as certain",
                        f"{remedy}, or set `soft: false` on `{soft}`",
                        Fix.set("Make hard pairs", f"nodes.{soft}.soft", False),
                    )
                if not givers or remedy is None or isinstance(entry, LabelCrossEntropy):
                    continue
                is_refused = isinstance(entry, PreferenceAlgorithm)
                ends = "the run ends at the first value that is not 1"
                end = ends if is_refused else "it is ignored"
                yield warning(
                    "learning.soft_pairs",
                    f"nodes.{name}.algorithm",
                    f"pairs of {', '.join(f'`{giver}`' for giver in givers)} have a column "
                    f"`probability` at `{name}.pairs`, but `{entry.name}` treats each pair as "
                    f"certain: {end}",
                    f"{remedy}, or remove the column from the data",
                )


def _givers_of_probabilities(facts: Facts, edge: Edge) -> list[str]:
    """Nodes that add a column `probability` to the rows of an edge."""
    parts = facts.lineage.names.of_edge(edge).values()
    columns = (part.bare["probability"] for part in parts if "probability" in part.bare)
    return sorted({str(level) for column in columns for level in column.rows})


def _reads_no_probability(entry: Algorithm) -> str | None:
    """How to make an algorithm read the probability of a pair; None if it does."""
    if isinstance(entry, BradleyTerry | LabelCrossEntropy):
        return None if entry.soft else f"set `soft: true` on `{entry.name}`"
    full = resolve_algorithm(entry)
    if not isinstance(full, ResolvedPreference) or full.loss in SOFT_LOSSES:
        return None
    return "use a `loss` that reads them (" + ", ".join(sorted(SOFT_LOSSES)) + ", e.g. `dpo`)"


def _soft_giver(facts: Facts, edge: Edge, seen: frozenset[str]) -> str | None:
    """The node upstream of an edge that makes soft pairs; None if there is none."""
    name = edge.source.node
    node = facts.nodes[name]
    if name in seen:
        return None
    if isinstance(node, PairsNode):
        judged = "preference" if node.method == "relabel" else "scores"
        if node.method != "direct" and node.soft is not False and facts.is_connected(name, judged):
            return name
    givers = (_soft_giver(facts, above, seen | {name}) for above in facts.walk.into(name, "pairs"))
    return next((giver for giver in givers if giver is not None), None)


# Numbers at steps or tokens: they go to the text that they index, and nowhere else, and to nobody
# who wants one number a row.

SCORE_RULES = (AccuracyBand, NonzeroVariance, GroupMean, ScoreRule)


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
            fixes = (Fix.set("Use the mean over steps", path, "mean"),)
        yield error(
            "lineage.positions",
            facts.place(edge),
            f"`{edge.label}` carries step scores of {_names(texts)} to rows of "
            f"{_names(receivers)}, whose texts have other steps",
            "use `scores`, or set `read.reduce` (min, product, last, mean) on the scorer",
            *fixes,
        )


def one_number_is_one(facts: Facts) -> Iterator[Diagnostic]:
    """Nodes that compute with one number per row do not get step scores."""
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
            fixes = (Fix.set(f"Use {giver}.scores", facts.place(edge), value),)
        yield error(
            "lineage.positions",
            f"nodes.{name}.{field}",
            f"`{field}` of `{name}` needs one number per row, but `{edge.label}` has one per step",
            f"use `{giver}.scores` instead of `{giver}.step_scores`",
            *fixes,
        )


def _wants_one(facts: Facts, edge: Edge) -> str | None:
    """The field that requires one number per row; None if steps are allowed."""
    node, scorer = facts.nodes[edge.target.node], edge.source.node
    match node:
        case RewardNode() if edge.target.port == "scores":
            return _of_reward_positions(node.source, scorer)
        case FilterNode() if edge.target.port in ("scores", "by"):
            return _of_filter(node, None if edge.target.port == "scores" else scorer)
        case BufferNode() if node.balance is not None and node.balance.by == scorer:
            return "balance.by"
        case PairsNode() if edge.target.port in ("scores", "preference"):
            return "method"
        case VerifierNode() if node.method == "vote" and edge.target.port == "scores":
            return "method"
    return None


def _of_reward_positions(source: RewardSource, scorer: str) -> str | None:
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
    """The scorer whose step scores an edge brings; None for one number per row, or if unknown."""
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
    edges = facts.alive(name, "scores")
    givers = (_giver_of_steps(facts, above, seen | {name}) for above in edges)
    return next((above for above in givers if above is not None), None)


def _asks_for_rows(facts: Facts, edge: Edge) -> bool:
    if edge.target.port == "rewards":
        return True
    target = edge.target.node
    is_probe = isinstance(facts.nodes[target], EvaluateNode)
    return not is_probe and edge.target.port in facts.walk.score_inputs(target)


def _indexed_texts(facts: Facts, scorer: str) -> Levels:
    """Levels of the judged rows, whose text the positions index."""
    if facts.lineage.writes(scorer):
        return facts.lineage.input_levels(scorer)
    return facts.lineage.levels(scorer, "step_scores")


def _names(levels: Levels) -> str:
    return ", ".join(f"`{name}`" for name in sorted({str(level) for level in levels}))
