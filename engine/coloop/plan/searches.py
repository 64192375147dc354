"""What a search is told that it does not do, and whom it cannot ask; `runnable` refuses it by
name."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.homes import turns_of
from coloop.spec.lineage import Lineage, compute_lineage
from coloop.spec.nodes import RewardNode, SearchNode, VerifierNode
from coloop.spec.runnable import RUNNABLE_SEARCHES
from coloop.spec.search import CompletionsByRate, RelativeProgress

SEARCH_HANDLES: Final = frozenset({("policy", "policy"), ("check", "outcome")})
"""(source port, target port) of the handles that a search calls."""
OF_TREES: Final = ("expand", "step_reward", "give")
"""Fields of methods that grow trees alone."""
ROW_BY_ROW: Final = frozenset({"rule", "discriminative", "generative"})
"""Methods of verifiers that score each row for itself, without others."""


class Objection(NamedTuple):
    """Why a search is refused."""

    what: str
    node: str
    field: str
    hint: str


def objections(spec: LoopSpec) -> Iterator[Objection]:
    """Of all searches of a loop."""
    searches = {name: node for name, node in spec.nodes.items() if isinstance(node, SearchNode)}
    if not searches:
        return
    lineage = compute_lineage(spec)[0]
    for name, node in searches.items():
        if node.method not in RUNNABLE_SEARCHES:
            names = ", ".join(f"`{method}`" for method in sorted(RUNNABLE_SEARCHES))
            what = f"searches of method {node.method} (node `{name}`)"
            yield Objection(what, name, "method", f"{names} run here")
            continue
        yield from _fields(name, node, lineage)
        yield from _asked(spec, name)


def _fields(name: str, node: SearchNode, lineage: Lineage) -> Iterator[Objection]:
    """Fields that the method does not read."""
    hint = "leave it out"
    for field in OF_TREES:
        if getattr(node, field) != type(node).model_fields[field].default:
            yield Objection(f"`{field}` of a search by {node.method}", name, field, hint)
    grows = not lineage.labels_texts(name)
    if node.select is not None and (node.method == "monte_carlo" or not grows):
        what = "`select` of a search that labels each text for itself"
        yield Objection(what, name, "select", hint)
    elif node.select is not None and node.select.rule == "puct":
        what = "`select.rule: puct` of a binary search"
        yield Objection(what, name, "select.rule", "take `omega` or `greedy`, or leave it open")
    if node.method != "binary_search":
        return
    if isinstance(node.labels, RelativeProgress):
        what = "`labels: {relative_progress: ...}` of a binary search, which looks at few steps"
        yield Objection(what, name, "labels", "take `soft` or `hard`, or `method: monte_carlo`")
    if isinstance(node.completions, CompletionsByRate) and grows:
        what = "`completions` by the pass rate of prompts without texts"
        yield Objection(what, name, "completions", "give a number, or give it rollouts")


def _asked(spec: LoopSpec, name: str) -> Iterator[Objection]:
    """Nodes and ports at which it would ask."""
    edges = spec.graph.edges_into(name, "policy")
    if len(edges) > 1:
        yield Objection("several policies of one search", name, "policy", "give each its search")
    for edge in edges:
        policy = edge.source.node
        if spec.kind_of(policy) != "actor":
            what = f"a search with the policy of a {spec.kind_of(policy)} (`{policy}`)"
            yield Objection(what, name, "policy", "connect an actor")
        elif turns_of(spec, policy) is not None:
            what = f"texts of several turns in a search (policy `{policy}`)"
            yield Objection(what, policy, "rollout.turns", "give the search a policy without tools")
    for edge in spec.graph.edges_into(name, "outcome"):
        if not _scores_alone(spec, edge.source.node):
            what = f"`{edge.source.node}` as the outcome of a search: it wants more than a row"
            hint = "connect a reward that works on rows, a rule or a classifier"
            yield Objection(what, name, "outcome", hint)
    for port in ("value", "tools"):
        if spec.graph.edges_into(name, port):
            what = f"the port `{port}` of a search that completes texts"
            yield Objection(what, name, port, "cut the edge: it asks only `policy` and `outcome`")


def _scores_alone(spec: LoopSpec, name: str) -> bool:
    """Whether a scorer needs nothing but the row that it is asked about."""
    node = spec.nodes[name]
    if node.join not in ("align", "concat", "cross") or spec.graph.edges_into(name, "scores"):
        return False
    if isinstance(node, VerifierNode):
        compares = spec.graph.edges_into(name, "comparisons") or spec.graph.edges_into(
            name, "library"
        )
        return node.method in ROW_BY_ROW and not compares
    return isinstance(node, RewardNode) and getattr(node.source, "name", "") not in SCORE_TO_SCORE
