"""The port table against the language's, and what goes into what."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from coloop.spec.nodes import KINDS
from coloop.spec.ports import HANDLES, PORTS, PortType, accepts


def test_the_table_is_that_of_the_language(language: Path) -> None:
    wanted = YAML(typ="safe", pure=True).load((language / "ports.yaml").read_text("utf-8"))

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
