"""What a node does in its loop, in a sentence or two, from its settings and its edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from coloop.spec.algorithm import node_algorithms
from coloop.spec.algorithms.registry import title_of
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    DatasetNode,
    EvaluateNode,
    FilterNode,
    PairsNode,
    ReferenceNode,
    RewardNode,
    SearchNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)

PAIRINGS = {
    "best_worst": "the best and the worst answer to a prompt",
    "all": "every two answers to a prompt of which one is better",
    "margin": "two answers to a prompt with very different scores",
    "direct": "an answer from one source and one from another",
    "relabel": "two answers, ordered by a judge",
}
SEARCHES = {
    "monte_carlo": "completing a text from each of its steps",
    "binary_search": "completing a text from its middle, by halves, until the first wrong step",
    "puct": "a tree of steps, the promising ones first",
    "and_or": "a tree of goals, each of which must be proved",
}


def describe_node(spec: LoopSpec, name: str) -> str:
    """What the node does."""
    parts = [_does(spec, name), *_weights(spec, name), *_learns(spec, name)]
    return " ".join(part for part in parts if part)


def _does(spec: LoopSpec, name: str) -> str:
    node = spec.nodes[name]
    match node:
        case DatasetNode():
            rows = f"{node.rows_per_step:,} rows a step" if node.rows_per_step else "rows"
            return f"Provides {rows} {_of_source(node)}."
        case ActorNode():
            return _writes(spec, name, node)
        case RewardNode():
            return f"Scores {_read_from(spec, name)} {_by_reward(node)}."
        case VerifierNode():
            how = "in words" if node.method == "generative" else f"by the method `{node.method}`"
            return f"Judges {_read_from(spec, name)} {how}."
        case TemplateNode():
            return f"Makes new rows of {_read_from(spec, name)}: texts with columns filled in."
        case FilterNode():
            return _filters(spec, name, node)
        case PairsNode():
            return f"Makes pairs of better and worse: {PAIRINGS[node.method]}."
        case BufferNode():
            return (
                f"Stores up to {node.capacity:,} rows and returns them again: {node.sample} ones."
            )
        case ToolNode():
            return f"A tool ({node.type}) that can be called in the middle of a text."
        case SearchNode():
            return f"Searches by {SEARCHES[node.method]}."
        case ReferenceNode():
            return (
                f"Gives the log-probs of the texts of {_read_from(spec, name)} under frozen "
                "weights."
            )
        case EvaluateNode():
            return _measures(spec, name, node)
    return KIND_TEXTS[node.kind].help


def _of_source(node: DatasetNode) -> str:
    source = node.source
    task = getattr(source, "task", None)
    if task is not None:
        return f"of the task `{task}`, generated on the fly"
    path = getattr(source, "path", None)
    return f"of `{path}`" if path else "written in the loop"


def _writes(spec: LoopSpec, name: str, node: ActorNode) -> str:
    sources = _sources(spec, name, ("prompts",))
    if not sources:
        return "A language model."
    count = node.rollout.completions_per_prompt
    answers = "one answer" if count == 1 else f"{count} answers"
    return f"Generates {answers} for each prompt of {sources}."


def _by_reward(node: RewardNode) -> str:
    source = node.source
    match source.type:
        case "builtin":
            return f"by the rule `{getattr(source, 'name', '')}`"
        case "python":
            return "by a function in Python"
        case "remote":
            return "by calling a service"
    return "by a model that gives each text a score"


def _filters(spec: LoopSpec, name: str, node: FilterNode) -> str:
    rules = ", ".join(f"`{rule.rule}`" for rule in node.keep)
    kept = f" that meet {rules}" if rules else ""
    again = ""
    if node.fill is not None:
        again = " It fetches more rows until the step is full."
    return f"Passes on rows of {_read_from(spec, name)}{kept}.{again}"


def _measures(spec: LoopSpec, name: str, node: EvaluateNode) -> str:
    metrics = ", ".join(f"`{metric}`" for metric in node.metrics)
    rows = _sources(spec, name, ("rows", "pairs", "rollouts"))
    of = f" on {rows}" if rows else ""
    return f"Measures {metrics}{of} every {node.every} steps; nothing is learned from it."


def _weights(spec: LoopSpec, name: str) -> Iterator[str]:
    """Where its weights come from, where that is another node."""
    model: Any = getattr(spec.nodes[name], "model", None)
    kind = getattr(model, "type", None)
    if kind == "snapshot":
        at = getattr(model.refresh, "at", None)
        phases = (at,) if isinstance(at, str) else at
        when = f", updated when {_and(f'`{one}`' for one in phases)} starts" if phases else ""
        yield f"Has the weights of `{model.of}` as they were{when}."
    elif kind == "shared":
        yield f"Shares the weights of `{model.with_}`."
    elif kind == "copy":
        yield f"Starts from the weights of `{model.of}`."
    elif kind == "scratch":
        yield "Its weights are random."


def _learns(spec: LoopSpec, name: str) -> Iterator[str]:
    for port, entries in node_algorithms(spec, name).items():
        sources = _sources(spec, name, (port,))
        if sources:
            titles = _and(title_of(one.name) for one in entries)
            yield f"Learns from {port} of {sources} by {titles}."


def _read_from(spec: LoopSpec, name: str) -> str:
    """Whose texts it looks at, else whose scores."""
    texts = _sources(spec, name, ("rollouts", "rows", "pairs", "comparisons"))
    return texts or _sources(spec, name, ("scores",)) or "rows"


def _sources(spec: LoopSpec, name: str, ports: Iterable[str]) -> str:
    found = [edge.source.node for port in ports for edge in spec.graph.edges_into(name, port)]
    return _and(f"`{one}`" for one in dict.fromkeys(found))


def _and(parts: Iterable[str]) -> str:
    *most, last = [*parts] or [""]
    return f"{', '.join(most)} and {last}" if most else last
