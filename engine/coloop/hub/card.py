"""The card of a pushed model: where it is from, its curves, how it is loaded, and the loop."""

from collections.abc import Iterator, Sequence
from html import escape

import yaml

from coloop.spec.algorithm import node_algorithms
from coloop.spec.data import FileSource, HubSource
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.nodes import DatasetNode
from coloop.units import count

LOOP, PICTURE, CURVES = "loop.yaml", "loop.svg", "curves.svg"
"""Files beside the card."""


@record
class Curve:
    """A metric of an evaluation over the run."""

    name: str
    points: tuple[tuple[int, float], ...]
    """(step, value)."""
    best: float


@record
class CardFacts:
    repo: str
    node: str
    spec: LoopSpec
    text: str
    """The loop as YAML."""
    run: str
    step: int
    is_best: bool
    curves: tuple[Curve, ...]
    base: str | None
    """Id of the model on the hub from which training started."""
    licence: str | None
    """Of that model."""
    is_adapter: bool
    gguf: str | None = None
    """Name of the GGUF file beside the weights."""


def card_of(facts: CardFacts) -> str:
    """`README.md` of the repository: metadata as YAML, then Markdown."""
    header = yaml.safe_dump(_metadata(facts), sort_keys=False, allow_unicode=True)
    return f"---\n{header}---\n\n" + "\n".join(_body(facts)) + "\n"


def _metadata(facts: CardFacts) -> dict[str, object]:
    found: dict[str, object] = {}
    if facts.licence is not None:
        found["license"] = facts.licence
    if facts.base is not None:
        found["base_model"] = facts.base
        found["base_model_relation"] = "adapter" if facts.is_adapter else "finetune"
    found["library_name"] = "peft" if facts.is_adapter else "transformers"
    found["pipeline_tag"] = "text-generation"
    if ids := list(dict.fromkeys(_hub_datasets(facts.spec))):
        found["datasets"] = ids
    found["tags"] = ["coloop", *_algorithms(facts.spec, facts.node)]
    return found


def _body(facts: CardFacts) -> Iterator[str]:
    spec, name = facts.spec, facts.repo.rpartition("/")[2]
    names = ", ".join(_algorithms(spec, facts.node)) or "no algorithm of its own"
    what = "An adapter" if facts.is_adapter else "A model"
    of = f" of [{facts.base}](https://huggingface.co/{facts.base})" if facts.base else ""
    best = ", the best by its evaluation" if facts.is_best else ""
    yield f"# {name}"
    yield ""
    yield (
        f"{what}{of}, trained with coloop as `{facts.node}` of the loop `{spec.name}` ({names}). "
        f"Checkpoint of step {facts.step}{best}; run `{facts.run}`."
    )
    yield from ("", f"![The loop]({PICTURE})", "")
    if facts.curves:
        yield from ("## Curves", "", f"![Evaluations by step]({CURVES})", "")
        yield "| metric | first | last | best |"
        yield "|---|---:|---:|---:|"
        for curve in facts.curves:
            values = [value for _, value in curve.points]
            yield f"| {curve.name} | {values[0]:.4g} | {values[-1]:.4g} | {curve.best:.4g} |"
        yield ""
    yield from ("## Data", "")
    for node, section in spec.nodes.items():
        if isinstance(section, DatasetNode):
            yield f"- `{node}`: {_source(section)}"
    yield from ("", "## Use", "", "```python", *_usage(facts), "```", "")
    if facts.gguf is not None:
        yield from (f"`{facts.gguf}` is for llama.cpp.", "")
    yield from ("## The loop", "", f"`coloop run {LOOP}` trains it again.", "")
    yield from ("```yaml", facts.text.rstrip().replace("```", "'''"), "```")


def _usage(facts: CardFacts) -> Iterator[str]:
    if facts.is_adapter:
        yield "from peft import AutoPeftModelForCausalLM"
        loader = "AutoPeftModelForCausalLM"
    else:
        yield "from transformers import AutoModelForCausalLM"
        loader = "AutoModelForCausalLM"
    yield "from transformers import AutoTokenizer"
    yield ""
    yield f'tokenizer = AutoTokenizer.from_pretrained("{facts.repo}")'
    yield f'model = {loader}.from_pretrained("{facts.repo}")'


def _source(section: DatasetNode) -> str:
    match section.source:
        case HubSource() as source:
            return f"[{source.path}](https://huggingface.co/datasets/{source.path}), {source.split}"
        case FileSource() as source:
            return f"a file, `{source.path.rpartition('/')[2]}`"
    task = getattr(section.source, "task", None)
    if task is not None:
        return f"the task `{task}`"
    return count(len(getattr(section.source, "rows", ())), "row") + " in the loop"


def _hub_datasets(spec: LoopSpec) -> Iterator[str]:
    for section in spec.nodes.values():
        if isinstance(section, DatasetNode) and isinstance(section.source, HubSource):
            yield section.source.path


def _algorithms(spec: LoopSpec, node: str) -> list[str]:
    entries = node_algorithms(spec, node).values()
    return list(dict.fromkeys(entry.name for algorithms in entries for entry in algorithms))


# Curves as a picture: one small chart for each metric.

WIDTH, HEIGHT, GAP, MARGIN = 300, 130, 24, 34
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#475467}.name{font-size:12px;fill:#1f2430}"
    "polyline{fill:none;stroke:#2f6fde;stroke-width:2}line{stroke:#d0d5dd}"
)


def curves_picture(curves: Sequence[Curve]) -> str:
    """SVG with one chart for each curve, two in a row."""
    columns = min(2, len(curves))
    rows = -(-len(curves) // columns)
    width, height = columns * (WIDTH + GAP) + GAP, rows * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
    ]
    for index, curve in enumerate(curves):
        x = GAP + index % columns * (WIDTH + GAP)
        y = GAP + index // columns * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x} {y})">{_chart(curve)}</g>')
    return "".join(parts) + "</svg>"


def _chart(curve: Curve) -> str:
    steps, values = zip(*curve.points, strict=True)
    low, high = min(values), max(values)
    span, length = high - low or 1.0, max(steps) - min(steps) or 1
    bottom, right = HEIGHT - 16, WIDTH - MARGIN
    points = " ".join(
        f"{MARGIN + (step - min(steps)) / length * (right - MARGIN):.1f},"
        f"{bottom - (value - low) / span * (bottom - 24):.1f}"
        for step, value in curve.points
    )
    return (
        f'<text class="name" x="0" y="10">{escape(curve.name)}</text>'
        f'<line x1="{MARGIN}" y1="{bottom}" x2="{right}" y2="{bottom}"/>'
        f'<text x="0" y="28">{high:.3g}</text><text x="0" y="{bottom}">{low:.3g}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 2}">{min(steps)}</text>'
        f'<text x="{right}" y="{HEIGHT - 2}" text-anchor="end">step {max(steps)}</text>'
        f'<polyline points="{points}"/>'
    )
