"""What teaching tables hold: labels of texts or of their steps, pairs that are sure or not.

Only what the graph decides is told: a service, Python or a column may give either, and the values
of a file are its own business.
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
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.graph import Edge
from coloop.spec.heads import learns_steps, scored_at
from coloop.spec.nodes import PairsNode, RewardNode, SearchNode, VerifierNode
from coloop.validate.facts import Facts, found

Kind = Literal["steps", "whole"]

AS_THEY_COME: Final = frozenset({"one_minus", "band", "first"})
"""Built-in rewards that give of each score what came in: one number, or one a step."""
OPEN: Final = frozenset({"column", "gate"})
"""Built-in rewards whose rows decide it."""


def labels_are_of_what_is_learned(facts: Facts) -> Iterator[Diagnostic]:
    """Who learns what steps are worth gets labels of steps, and who learns texts one of each."""
    for name in facts.learners:
        node = facts.nodes[name]
        for edge in facts.walk.into(name, "labels"):
            given = _given(facts, edge, frozenset())
            scorer = edge.source.node
            if given == "whole" and learns_steps(node):
                yield found(
                    "learning.label_kind",
                    f"`{name}.labels` needs one label per step (`read.granularity: step`), but "
                    f"`{edge.source}` has one number per row",
                    hint=(
                        "connect `step_scores` of a scorer that grades steps instead of "
                        f"`{scorer}`, or set `read.granularity: sequence`"
                    ),
                    node=name,
                    field="read.granularity",
                    fixes=_step_fixes(facts, edge, name),
                )
            elif given == "steps" and scored_at(node) == "scores":
                yield found(
                    "learning.label_kind",
                    f"`{name}.labels` needs one number per text, but `{edge.source}` has one per "
                    "step",
                    hint=(
                        f"connect `{scorer}.scores`, or train `{name}` on steps (a discriminative "
                        "verifier with `read.granularity: step`)"
                    ),
                    node=name,
                    field="algorithm.labels",
                )


def _given(facts: Facts, edge: Edge, seen: frozenset[str]) -> Kind | None:
    """Whether an edge brings one number a row or one a step; None where its rows decide it."""
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
    """What all scores are that come to a node."""
    edges = facts.walk.into(name, "scores")
    kinds = {_given(facts, edge, seen | {name}) for edge in edges}
    return kinds.pop() if len(kinds) == 1 else None


def _step_fixes(facts: Facts, edge: Edge, name: str) -> tuple[Fix, ...]:
    whole = Change(op="set", path=f"nodes.{name}.read.granularity", value="sequence")
    fixes = (Fix(title="Train on whole texts", changes=(whole,)),)
    source = facts.nodes[edge.source.node]
    if not isinstance(source, VerifierNode) or source.method != "rule":
        return fixes
    value = f"{edge.source.node}.step_scores -> {edge.target}"
    change = Change(op="set", path=facts.place(edge), value=value)
    return (Fix(title="Use its step scores", changes=(change,)), *fixes)


def pairs_are_sure_where_they_must_be(facts: Facts) -> Iterator[Diagnostic]:
    """Pairs that keep a preference as a probability go to who reads it."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "pairs"):
            soft = _soft_giver(facts, edge, frozenset())
            if soft is None:
                continue
            for entry in facts.algorithms(name, "pairs"):
                remedy = _reads_no_probability(entry)
                if remedy is not None:
                    yield found(
                        "learning.soft_pairs",
                        f"`{soft}` keeps preferences as probabilities (`soft`), but `{entry.name}` "
                        f"at `{name}.pairs` treats each pair as certain",
                        hint=f"{remedy}, or set `soft: false` on `{soft}`",
                        node=name,
                        field="algorithm",
                        fixes=_sure_fix(soft),
                    )


def pairs_with_a_probability_meet_who_reads_it(facts: Facts) -> Iterator[Diagnostic]:
    """A column `probability` that comes with the data is read, or the pairs are taken as sure."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "pairs"):
            givers = _givers_of_probabilities(facts, edge)
            if not givers or _soft_giver(facts, edge, frozenset()) is not None:
                continue
            for entry in facts.algorithms(name, "pairs"):
                remedy = _reads_no_probability(entry)
                if remedy is None or isinstance(entry, LabelCrossEntropy):
                    continue
                is_refused = isinstance(entry, PreferenceAlgorithm)
                end = (
                    ("the run ends at the first value that is not 1")
                    if is_refused
                    else "it is ignored"
                )
                yield found(
                    "learning.soft_pairs",
                    f"pairs of {', '.join(f'`{one}`' for one in givers)} have a column "
                    f"`probability` at `{name}.pairs`, but `{entry.name}` treats each pair as "
                    f"certain: {end}",
                    severity=Severity.WARNING,
                    hint=f"{remedy}, or remove the column from the data",
                    node=name,
                    field="algorithm",
                )


def _givers_of_probabilities(facts: Facts, edge: Edge) -> list[str]:
    """Whose rows have the column `probability` that an edge brings."""
    parts = facts.lineage.names.of_edge(edge).values()
    columns = (part.bare["probability"] for part in parts if "probability" in part.bare)
    return sorted({str(level) for column in columns for level in column.rows})


def _reads_no_probability(entry: Algorithm) -> str | None:
    """How an algorithm that takes pairs as sure is brought to read their probability."""
    if isinstance(entry, BradleyTerry | LabelCrossEntropy):
        return None if entry.soft else f"set `soft: true` on `{entry.name}`"
    full = resolve_algorithm(entry)
    if not isinstance(full, ResolvedPreference) or full.loss in SOFT_LOSSES:
        return None
    return "use a `loss` that reads them (" + ", ".join(sorted(SOFT_LOSSES)) + ", e.g. `dpo`)"


def _soft_giver(facts: Facts, edge: Edge, seen: frozenset[str]) -> str | None:
    """The node that makes soft pairs of what an edge brings."""
    name = edge.source.node
    node = facts.nodes[name]
    if name in seen:
        return None
    if isinstance(node, PairsNode):
        judged = "preference" if node.method == "relabel" else "scores"
        if node.method != "direct" and node.soft is not False and facts.is_connected(name, judged):
            return name
    givers = (_soft_giver(facts, one, seen | {name}) for one in facts.walk.into(name, "pairs"))
    return next((giver for giver in givers if giver is not None), None)


def _sure_fix(name: str) -> tuple[Fix, ...]:
    change = Change(op="set", path=f"nodes.{name}.soft", value=False)
    return (Fix(title="Make hard pairs", changes=(change,)),)


RULES = (
    labels_are_of_what_is_learned,
    pairs_are_sure_where_they_must_be,
    pairs_with_a_probability_meet_who_reads_it,
)
