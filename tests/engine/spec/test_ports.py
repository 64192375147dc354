"""The port table against the language's, and what goes into what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from ruamel.yaml import YAML

from coloop.spec.base import Section
from coloop.spec.io import load
from coloop.spec.nodes import KINDS, NODE_CLASSES
from coloop.spec.ports import HANDLES, PORTS, PortType, accepts, is_of_use

GROWN: dict[str, dict[str, dict[str, Any]]] = {
    "actor": {"reference": {"type": "LogProbs", "max": None, "phase": "learn", "teaching": True}},
    "reference": {"prompts": {"type": "Rows", "max": 1, "phase": "score"}},
}
"""Inputs that differ from the table of the language: distillation."""

ADDED: dict[str, Any] = {
    "environment": {
        "stages": ["generate"],
        "in": {
            "rows": {"type": "Rows", "max": 1, "phase": "generate", "required": True},
            "policy": {"type": "Policy", "max": None, "phase": "generate", "required": True},
        },
        "out": {"rollouts": "Rollouts", "scores": "Scores"},
    },
}
"""Kinds that the table of the language has not."""


def test_the_table_is_that_of_the_language(language: Path) -> None:
    wanted = YAML(typ="safe", pure=True).load((language / "ports.yaml").read_text("utf-8"))
    wanted |= ADDED
    for kind, inputs in GROWN.items():
        wanted[kind]["in"] |= inputs

    found = {
        kind: {
            "stages": list(ports.stages),
            "in": {
                name: {
                    key: value
                    for key, value in (
                        ("type", str(port.type)),
                        ("max", port.max),
                        ("phase", port.phase),
                        ("teaching", port.teaching),
                        ("required", port.required),
                        ("of", port.of),
                    )
                    if value not in (False, None) or key == "max"
                }
                for name, port in ports.inputs.items()
            },
            "out": {name: str(port.type) for name, port in ports.outputs.items()},
        }
        for kind, ports in PORTS.items()
    }

    assert found == wanted


def test_every_kind_has_ports_and_help() -> None:
    assert set(PORTS) == set(KINDS)
    for ports in PORTS.values():
        assert all(port.help for port in (*ports.inputs.values(), *ports.outputs.values()))


def test_the_outputs_in_a_condition_exist() -> None:
    for ports in PORTS.values():
        for port in ports.inputs.values():
            assert set(port.required_where_used) <= set(ports.outputs)
            assert isinstance(port.required, str) == bool(port.required_where_used)


@pytest.mark.parametrize(
    ("target", "source", "fits"),
    [
        (PortType.ROWS, PortType.ROWS, True),
        (PortType.ROWS, PortType.ROLLOUTS, True),
        (PortType.ROLLOUTS, PortType.ROWS, False),
        (PortType.SCORES, PortType.VALUES, False),
    ],
)
def test_rollouts_go_where_rows_are_asked(target: PortType, source: PortType, fits: bool) -> None:
    assert accepts(target, source) is fits


def test_teaching_ports_are_learned_from() -> None:
    teaching = {
        (kind, name)
        for kind, ports in PORTS.items()
        for name in ports.teaching
        if ports.inputs[name].phase == "learn"
    }

    assert ("actor", "rewards") in teaching
    assert ("critic", "returns") in teaching
    assert all(PORTS[kind].inputs[name].type not in HANDLES for kind, name in teaching)


def test_settings_of_a_condition_and_their_values_exist() -> None:
    for kind, ports in PORTS.items():
        for port in (*ports.inputs.values(), *ports.outputs.values()):
            for path, values in port.when.items():
                known = set(known_values(NODE_CLASSES[kind], path.split(".")))
                assert set(values) - {None} <= known, (kind, path)


def known_values(section: Any, path: list[str]) -> Iterator[Any]:
    """All that the last setting of a path can be, in whichever section of a union it stands."""
    if not path:
        for value in get_args(section):
            yield from get_args(value) or (value,)
        return
    for one in sections_in(section):
        found = one.model_fields.get(path[0])
        if found is not None:
            yield from known_values(found.annotation, path[1:])


def sections_in(found: Any) -> Iterator[Any]:
    if isinstance(found, type) and issubclass(found, Section):
        yield found
    for inner in get_args(found):
        yield from sections_in(inner)


def test_a_loop_connects_only_what_its_nodes_make_use_of(example: Path) -> None:
    spec = load(example)

    for edge in spec.edges:
        source, target = spec.nodes[edge.source.node], spec.nodes[edge.target.node]
        assert is_of_use(PORTS[source.kind].outputs[edge.source.port], source), edge.label
        assert is_of_use(PORTS[target.kind].inputs[edge.target.port], target), edge.label


@pytest.mark.parametrize(
    ("source", "of_use"),
    [
        ({"type": "builtin", "name": "format", "pattern": "x"}, set()),
        ({"type": "python", "code": "def reward(prompts, completions): ..."}, {"comparisons"}),
        ({"type": "model"}, {"comparisons", "pairs", "labels"}),
    ],
)
def test_a_reward_makes_use_of_what_its_source_can_read(
    source: dict[str, Any], of_use: set[str]
) -> None:
    model = {"model": {"type": "scratch", "architecture": "tiny-qwen3"}}
    node = NODE_CLASSES["reward"].model_validate(
        {"kind": "reward", "source": source} | (model if source["type"] == "model" else {})
    )

    found = {name for name, port in PORTS["reward"].inputs.items() if is_of_use(port, node)}

    assert found == {"rollouts", "rows", "scores"} | of_use
