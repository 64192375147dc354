"""Descriptions of presets: what they teach, what their nodes do, curves to expect, time and cost.

What a preset teaches is in `presets/about/NAME.yaml`: `lesson`, `teaches`, `tags`, `try`, `curves`
(`node.metric` or a learner's metric, and how it should look) and `nodes`. With `like: OTHER`,
whatever is missing comes from the other preset. Descriptions of other nodes, and the cost, come
from the loop itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from coloop.errors import PresetNotFound
from coloop.plan.cost import Explanation
from coloop.plan.cost import explain as explain_estimate
from coloop.spec import presets
from coloop.spec.algorithm import node_algorithms
from coloop.spec.algorithms.registry import title_of
from coloop.spec.base import FrozenRecord
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import chat_service
from coloop.spec.io import parse
from coloop.spec.modes import ModeName, mode_of
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


class AboutNode(FrozenRecord):
    node: str
    kind: str
    does: str
    """What the node does in this loop."""


class AboutCurve(FrozenRecord):
    metric: str
    """The metric as `node.metric`."""
    expect: str
    """How its curve should look."""


class Cost(FrozenRecord):
    """Estimated time and memory of the loop on its own hardware."""

    hardware: str
    gpus: int
    step_seconds: float | None
    """Seconds per step in the phase that takes most of the run; null if not known."""
    phase: str | None
    """Name of that phase; null if the loop has only one."""
    seconds: float
    """Seconds of all phases whose duration is known."""
    is_whole: bool
    """Whether `seconds` covers all phases; if not, the run takes longer."""
    gpu_hours: float
    """Number of GPUs times `seconds`, in hours; 0 without GPUs."""
    memory_bytes: int | None
    """Peak memory of the fullest GPU, or without GPUs of the largest process; null if not known."""


class About(FrozenRecord):
    name: str
    title: str
    lesson: str
    """What one can learn from the preset, in a few words."""
    teaches: str
    """What one can learn from the preset."""
    nodes: list[AboutNode]
    curves: list[AboutCurve]
    """Curves to watch in a run."""
    experiment: str
    """A change to try, and what it shows."""
    cost: Cost
    source: str | None
    """URL of the paper that it follows; null if there is none."""


class Traits(FrozenRecord):
    """What the gallery of presets sorts and filters by."""

    lesson: str
    tags: list[str]
    mode: ModeName
    learners: list[str]
    """Nodes that learn."""
    algorithms: list[str]
    """Titles of its algorithms; SFT and the value loss are left out if there are others."""
    needs_gpus: bool
    gpus: int
    hardware: str
    seconds: float
    """Estimated seconds of all phases whose duration is known."""
    is_whole: bool
    """Whether `seconds` covers all phases."""


@cache
def texts_of(name: str) -> dict[str, Any]:
    """The texts about a preset, those of the preset that it is `like` included.

    Raises:
        PresetNotFound: no texts were written about it.
    """
    own = presets.load_about(name)
    return {**(texts_of(own["like"]) if "like" in own else {}), **own}


def tags_of(name: str) -> tuple[str, ...]:
    """Search words of a preset; empty if it has no texts."""
    try:
        return tuple(texts_of(name).get("tags", ()))
    except PresetNotFound:
        return ()


@cache
def about(name: str) -> About:
    """The description of a preset; raises `PresetNotFound`."""
    preset = presets.load_loop(name)
    own, spec = texts_of(preset.name), _spec_of(preset.name)
    texts = own.get("nodes", {})
    return About(
        name=preset.name,
        title=preset.title,
        lesson=own["lesson"],
        teaches=own["teaches"],
        nodes=[
            AboutNode(node=name, kind=node.kind, does=texts.get(name) or describe_node(spec, name))
            for name, node in spec.nodes.items()
        ],
        curves=[AboutCurve(metric=metric, expect=text) for metric, text in own["curves"]],
        experiment=own["try"],
        cost=_cost(spec, explain_estimate(spec)),
        source=_paper(preset.name),
    )


def traits_of(name: str, spec: LoopSpec, found: Explanation) -> Traits:
    """Facts for the gallery; `found` is the preset's estimate."""
    own, cost = texts_of(name), _cost(spec, found)
    return Traits(
        lesson=own["lesson"],
        tags=list(own["tags"]),
        mode=mode_of(spec),
        learners=list(spec.graph.learners()),
        algorithms=_algorithms(spec),
        needs_gpus=cost.gpus > 0,
        gpus=cost.gpus,
        hardware=cost.hardware,
        seconds=cost.seconds,
        is_whole=cost.is_whole,
    )


def _spec_of(name: str) -> LoopSpec:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None, name
    return spec


def _algorithms(spec: LoopSpec) -> list[str]:
    names = [
        entry.name
        for node in spec.graph.learners()
        for entries in node_algorithms(spec, node).values()
        for entry in entries
    ]
    telling = [name for name in names if name not in ("sft", "value")] or names
    return list(dict.fromkeys(title_of(name) for name in telling))


def _cost(spec: LoopSpec, found: Explanation) -> Cost:
    hardware = presets.hardware_of(spec.hardware)
    known = [phase.seconds for phase in found.phases if phase.seconds is not None]
    seconds = found.total_seconds if found.total_seconds is not None else sum(known)
    main = next((phase for phase in found.phases if phase.name == found.main), None)
    gpus = found.estimate.gpus
    peaks = [gpu.peak_bytes for gpu in gpus if gpu.peak_bytes is not None]
    return Cost(
        hardware=hardware.name,
        gpus=hardware.gpus,
        step_seconds=main.step_seconds if main else None,
        phase=main.name if main and len(found.phases) > 1 else None,
        seconds=seconds,
        is_whole=found.total_seconds is not None,
        gpu_hours=seconds * hardware.gpus / 3600,
        memory_bytes=max(peaks, default=0) if len(peaks) == len(gpus) else None,
    )


def _paper(name: str) -> str | None:
    """URL of the first arXiv paper in the header comment of a preset; None without one."""
    head = presets.load_loop_text(name).partition("coloop:")[0]
    arxiv = re.search(r"arXiv (\d{4}\.\d{5})", head)
    return f"https://arxiv.org/abs/{arxiv[1]}" if arxiv else None


# What a node does in its loop, in a sentence or two, from its settings and its edges.

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
            if (chat := chat_service(node)) is not None:
                how = f"by asking the chat model `{chat.model}` by URL"
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
        case "chat":
            return f"by asking the chat model `{getattr(source, 'model', '')}` by URL"
    return "by a model that gives each text a score"


def _filters(spec: LoopSpec, name: str, node: FilterNode) -> str:
    rules = ", ".join(f"`{rule.rule}`" for rule in node.keep)
    kept = f" that meet {rules}" if rules else ""
    again = "" if node.fill is None else " It fetches more rows until the step is full."
    return f"Passes on rows of {_read_from(spec, name)}{kept}.{again}"


def _measures(spec: LoopSpec, name: str, node: EvaluateNode) -> str:
    metrics = ", ".join(f"`{metric}`" for metric in node.metrics)
    rows = _sources(spec, name, ("rows", "pairs", "rollouts"))
    of = f" on {rows}" if rows else ""
    return f"Measures {metrics}{of} every {node.every} steps; nothing is learned from it."


def _weights(spec: LoopSpec, name: str) -> Iterator[str]:
    model: Any = getattr(spec.nodes[name], "model", None)
    kind = getattr(model, "type", None)
    if kind == "snapshot":
        at = getattr(model.refresh, "at", None)
        phases = (at,) if isinstance(at, str) else at
        when = f", updated when {_and(f'`{phase}`' for phase in phases)} starts" if phases else ""
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
            titles = _and(title_of(entry.name) for entry in entries)
            yield f"Learns from {port} of {sources} by {titles}."


def _read_from(spec: LoopSpec, name: str) -> str:
    """Names of the nodes whose texts, or without any, whose scores a node reads."""
    texts = _sources(spec, name, ("rollouts", "rows", "pairs", "comparisons"))
    return texts or _sources(spec, name, ("scores",)) or "rows"


def _sources(spec: LoopSpec, name: str, ports: Iterable[str]) -> str:
    found = [edge.source.node for port in ports for edge in spec.graph.edges_into(name, port)]
    return _and(f"`{node}`" for node in dict.fromkeys(found))


def _and(parts: Iterable[str]) -> str:
    *most, last = [*parts] or [""]
    return f"{', '.join(most)} and {last}" if most else last
