"""Small graphs, written as nodes and edges."""

from collections.abc import Callable

import pytest

from coloop.spec.diagnostics import Diagnostic
from coloop.spec.io import parse
from coloop.spec.lineage import Level, Lineage, compute_lineage

KINDS = {
    "dataset": "{kind: dataset, source: {type: task, task: arithmetic}}",
    "actor": "{kind: actor, model: {type: pretrained, path: x}}",
    "pupil": (
        "{kind: actor, model: {type: pretrained, path: x}, "
        "algorithm: {rewards: {name: grpo, off_policy: {shaping: 0.1}}}}"
    ),
    "reward": "{kind: reward, source: {type: builtin, name: exact_match}}",
    "judge": (
        "{kind: verifier, method: generative, model: {type: pretrained, path: x}, "
        "template: {text: '{{ completion }}'}, rollout: {}}"
    ),
    "scorer": "{kind: verifier, method: discriminative, model: {type: pretrained, path: x}}",
    "reference": "{kind: reference, model: {type: pretrained, path: x}}",
    "template": "{kind: template}",
    "filter": "{kind: filter}",
    "buffer": "{kind: buffer, capacity: 8}",
    "evaluate": "{kind: evaluate}",
}

Drawn = Callable[[str, str], tuple[Lineage, list[Diagnostic]]]


@pytest.fixture
def drawn() -> Drawn:
    """Lineage of `name: kind` or `name: {yaml}` lines and of edges, one a line."""

    def draw(nodes: str, edges: str) -> tuple[Lineage, list[Diagnostic]]:
        lines = ["coloop: 1", "name: drawn", "nodes:"]
        for line in filter(None, map(str.strip, nodes.splitlines())):
            name, _, section = line.partition(":")
            lines.append(f"  {name}: {KINDS.get(section.strip(), section.strip())}")
        written = [f"  - {line.strip()}" for line in edges.splitlines() if line.strip()]
        lines += ["edges:", *written] if written else []
        parsed = parse("\n".join([*lines, "schedule: {steps: 1}"]))
        assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
        return compute_lineage(parsed.spec)

    return draw


def shown(level: Level) -> str:
    """A level as a term, e.g. `judge(actor(problems))`."""
    if not level.parents:
        return level.node
    inner = ", ".join(shown(parent) for parent in level.parents)
    return f"({inner})" if level.joined and level.node == "join" else f"{level.node}({inner})"


@pytest.fixture
def terms() -> Callable[[frozenset[Level]], list[str]]:
    """Levels as sorted terms."""
    return lambda levels: sorted(shown(level) for level in levels)
