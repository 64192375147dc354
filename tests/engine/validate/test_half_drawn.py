"""The editor checks at every edit: no loop may be too broken to be told what is wrong with it."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.io import from_dict, parse
from coloop.spec.modes import MODES
from coloop.spec.ports import PORTS
from coloop.validate import validate

BASES = ("grpo", "spin", "judges", "ppo", "two_halves", "self_play", "tools", "asynchronous")


def spoiled(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A loop with a few edges, nodes, sections and names taken away or mixed up."""
    nodes, edges = document["nodes"], document["edges"]
    for _ in range(rng.randint(1, 6)):
        names = list(nodes)
        match rng.randrange(8):
            case 0 if edges:
                edges.pop(rng.randrange(len(edges)))
            case 1 if len(names) > 1:
                del nodes[rng.choice(names)]
            case 2:
                edges.append(f"{_output(nodes, rng)} -> {_input(nodes, rng)}")
            case 3 if edges:
                edges[rng.randrange(len(edges))] = {
                    "from": _output(nodes, rng),
                    "to": _input(nodes, rng),
                    "rounds": rng.choice([None, 2]),
                    "aggregate": rng.choice([None, "mean"]),
                }
            case 4:
                node = nodes[rng.choice(names)]
                removable = [k for k in node if k not in ("kind", "source", "method", "model")]
                if removable:
                    del node[rng.choice(removable)]
            case 5:
                nodes[f"n{rng.randrange(9)}"] = nodes.pop(rng.choice(names))
            case 6:
                node = nodes[rng.choice(names)]
                if "model" in node:
                    kind = rng.choice(["snapshot", "copy", "shared"])
                    key = "with" if kind == "shared" else "of"
                    node["model"] = {"type": kind, key: rng.choice(names)}
            case 7:
                document["schedule"] = rng.choice(
                    [
                        {"steps": 1},
                        {"epochs": 2},
                        {"phases": [{"name": "a", "steps": 1, "learn": [rng.choice(names)]}]},
                        {
                            "phases": [
                                {"name": "a", "until": f"{rng.choice(names)}.full", "max_steps": 2}
                            ]
                        },
                    ]
                )
    for edge in edges:
        if isinstance(edge, dict):
            for option in [key for key, value in edge.items() if value is None]:
                del edge[option]
    return document


def _output(nodes: dict[str, Any], rng: random.Random) -> str:
    name = rng.choice(list(nodes))
    ports = list(PORTS[nodes[name]["kind"]].outputs) or ["rows"]
    return f"{name}.{rng.choice(ports)}"


def _input(nodes: dict[str, Any], rng: random.Random) -> str:
    name = rng.choice(list(nodes))
    ports = list(PORTS[nodes[name]["kind"]].inputs) or ["rows"]
    return f"{name}.{rng.choice(ports)}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("base", BASES)
def test_no_broken_loop_breaks_the_check(base: str, changed: Callable[..., Any], text: Any) -> None:
    checked = 0

    for seed in range(25):
        rng = random.Random(f"{base} {seed}")
        parsed = parse(text(spoiled(changed(base), rng)))
        if parsed.spec is not None:
            validate(parsed.spec)
            checked += 1

    assert checked > 10


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "loop\n", "3.5\n"])
def test_a_text_that_is_no_loop_is_told_so(text: str) -> None:
    assert [one.code for one in parse(text).diagnostics] == ["yaml.not_a_mapping"]


def test_an_empty_canvas_is_told_what_it_lacks() -> None:
    parsed = parse("coloop: 1\nname: empty\nnodes: {}\nschedule: {steps: 1}\n")
    assert parsed.spec is not None

    report = validate(parsed.spec)

    assert [one.code for one in report.diagnostics] == ["learning.no_goal"]


@pytest.mark.parametrize(
    ("mode", "lesson"),
    [
        ("online", "scores to `actor.rewards`"),
        ("offline", "pairs to `actor.pairs`"),
        ("reward_modeling", "pairs to `reward.pairs`"),
    ],
)
def test_a_loop_that_learns_nothing_is_told_a_lesson_of_its_mode(mode: str, lesson: str) -> None:
    parsed = parse(f"coloop: 1\nname: empty\nmode: {mode}\nnodes: {{}}\nschedule: {{steps: 1}}\n")
    assert parsed.spec is not None

    [found] = validate(parsed.spec).diagnostics

    assert found.hint is not None
    assert found.hint.endswith(lesson)


def test_a_single_node_of_each_kind_can_be_checked() -> None:
    nodes = {
        "dataset": "{kind: dataset, source: {type: task, task: arithmetic}}",
        "actor": "{kind: actor, model: {type: scratch, architecture: tiny-qwen3}}",
        "critic": "{kind: critic, model: {type: scratch, architecture: tiny-qwen3}}",
        "reference": "{kind: reference, model: {type: scratch, architecture: tiny-qwen3}}",
        "reward": "{kind: reward, source: {type: builtin, name: exact_match}}",
        "verifier": "{kind: verifier, method: vote}",
        "template": "{kind: template, text: '{{ prompt }}'}",
        "filter": "{kind: filter}",
        "pairs": "{kind: pairs, method: all}",
        "buffer": "{kind: buffer, capacity: 8}",
        "tool": "{kind: tool, type: calculator}",
        "environment": "{kind: environment, source: {type: textarena, game: Nim-v0}}",
        "search": "{kind: search, method: puct, budget: {tokens: 8}}",
        "evaluate": "{kind: evaluate}",
    }
    assert nodes.keys() == PORTS.keys()

    for kind, section in nodes.items():
        parsed = parse(f"coloop: 1\nname: one\nnodes:\n  one: {section}\nschedule: {{steps: 1}}\n")
        assert parsed.spec is not None, kind

        assert not validate(parsed.spec).ok


def _numbers(value: Any, path: str) -> list[str]:
    """Paths of the numbers in a part of a loop, each with one that names nothing beside it."""
    if not isinstance(value, dict):
        return [path] if isinstance(value, int | float) else []
    inner = [one for key, own in value.items() for one in _numbers(own, f"{path}.{key}")]
    return [*inner, f"{path}.nothing"]


@pytest.mark.sample(16)
@pytest.mark.parametrize("value", ["many", None, {}, -1], ids=repr)
@pytest.mark.parametrize("base", BASES)
def test_no_value_that_a_phase_sets_breaks_the_check(
    base: str, value: Any, changed: Callable[..., Any], text: Any
) -> None:
    paths = _numbers(changed(base)["nodes"], "nodes")
    phase = {"name": "a", "steps": 1, "set": dict.fromkeys(paths, value)}

    parsed = parse(text(changed(base, ("set", "schedule", {"phases": [phase]}))))

    assert parsed.spec is not None, parsed.diagnostics
    assert validate(parsed.spec).errors


@pytest.mark.parametrize("kind", ["actor", "critic", "reward", "verifier"])
def test_a_node_that_was_just_drawn_is_told_one_thing(kind: str) -> None:
    nodes = {"new": {"kind": kind, **begins_as(kind)}}
    document = {"coloop": 1, "name": "drawn", "nodes": nodes, "edges": [], "schedule": {"steps": 1}}
    spec = from_dict(document).spec
    assert spec is not None

    report = validate(spec)

    about = [found for found in report.diagnostics if found.node == "new"]
    assert [found.message for found in about] == ["`new` is not connected yet"]


def begins_as(kind: str) -> dict[str, Any]:
    """A node of a kind in a loop that teaches judges, where all of them may learn."""
    begins = {**KIND_TEXTS[kind].template, **MODES["reward_modeling"].of(kind).begins}
    return {key: value for key, value in begins.items() if value is not None}
