"""Phases, groups, triggers and annealing: the forms that may be written."""

from __future__ import annotations

from typing import Any

import pytest

from coloop.spec.fields import look
from coloop.spec.io import parse
from coloop.spec.schedule import EpochsOf, Schedule


def schedule(text: str) -> Schedule:
    """The schedule of a loop."""
    found = parse(f"coloop: 1\nname: x\nnodes: {{}}\nschedule: {text}\n")
    assert found.spec is not None, [d.describe() for d in found.diagnostics]
    return found.spec.schedule


def codes(text: str) -> list[str]:
    """Codes and fields of what is wrong."""
    found = parse(f"coloop: 1\nname: x\nnodes: {{}}\nschedule: {text}\n")
    return [f"{d.code} {d.field}" for d in found.diagnostics]


def test_groups_are_opened_in_order() -> None:
    found = schedule(
        "{phases: [{name: a, steps: 1}, {repeat: 2, phases: [{name: b, steps: 1}, "
        "{repeat: 3, phases: [{name: c, steps: 1}]}]}]}"
    )

    assert [phase.name for phase in found.flat_phases()] == ["a", "b", "c"]


def test_epochs_have_two_forms() -> None:
    assert schedule("{epochs: 3}").epochs == 3
    assert schedule("{epochs: {of: data, count: 3}}").epochs == EpochsOf(of="data", count=3)
    assert schedule("{phases: [{name: a, epochs: {of: d, count: 2}}]}").flat_phases()[0].epochs


def test_until_takes_one_buffer_or_several() -> None:
    one, two = schedule(
        "{phases: [{name: a, until: pool.full, max_steps: 9}, {name: b, until: [p.full, q.full]}]}"
    ).flat_phases()

    assert (one.until, one.max_steps) == ("pool.full", 9)
    assert two.until == ("p.full", "q.full")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("{when: {metric: p.accuracy, above: 0.5}, do: {next_phase: true}}", "do.next_phase", True),
        ("{when: {metric: p.accuracy, below: 0.5}, do: {stop: true}}", "do.stop", True),
        ("{when: {metric: p.kl, falls_by: 0.1, for: 3}, do: {clear: pool}}", "when.for", 3),
        ("{when: {metric: p.kl, rises_by: 0.1}, do: {clear: [a, b]}}", "do.clear", ("a", "b")),
        ("{in: rl, when: {metric: p.kl, above: 1}, do: {checkpoint: true}}", "in", "rl"),
        ("{in: [a, b], when: {metric: p.kl, above: 1}, do: {stop: true}}", "in", ("a", "b")),
        (
            "{when: {metric: p.kl, above: 1}, do: {refresh: {node: s, from: best}}}",
            "do.refresh.from",
            "best",
        ),
        (
            "{when: {metric: p.kl, above: 1}, do: {set: {edges.a.weight: 0}}}",
            "do.set",
            {"edges.a.weight": 0},
        ),
        (
            "{when: {metric: p.kl, above: 1}, do: {reset_optimizer: actor}}",
            "do.reset_optimizer",
            "actor",
        ),
    ],
)
def test_triggers_have_these_forms(text: str, path: str, value: object) -> None:
    found: Any = schedule(f"{{steps: 1, triggers: [{text}]}}").triggers[0]

    for part in path.split("."):
        found = look(found, part)
    assert found == value


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{}", "structure.missing_field schedule.steps"),
        ("{steps: 0}", "numbers.out_of_range schedule.steps"),
        ("{epochs: 0}", "numbers.out_of_range schedule.epochs"),
        ("{phases: [], steps: 1, stream: 1}", "structure.wrong_type schedule.stream"),
        ("{phases: [{name: a, steps: 1}], fill: [b]}", "structure.conflict schedule.fill"),
        (
            "{phases: [{name: a, steps: 1, max_steps: 2}]}",
            "structure.conflict schedule.phases.0.max_steps",
        ),
        (
            "{phases: [{name: a, steps: 1, do: {stop: true}}]}",
            "structure.unknown_field schedule.phases.0.do.stop",
        ),
        ("{phases: [{repeat: 2}]}", "structure.missing_field schedule.phases.0.phases"),
        ("{phases: [{repeat: 2, phases: []}]}", "structure.bad_value schedule.phases.0.phases"),
        (
            "{steps: 1, anneal: [{path: run.seed, from: 0.0, to: 1.0, shape: exponential}]}",
            "structure.bad_value schedule.anneal.0.shape",
        ),
        (
            "{steps: 1, triggers: [{when: {metric: a.b, above: 1, below: 2}, do: {stop: true}}]}",
            "structure.conflict schedule.triggers.0.when.below",
        ),
        (
            "{steps: 1, triggers: [{when: {metric: a.b, above: 1}, do: {}}]}",
            "structure.missing_field schedule.triggers.0.do.set",
        ),
        (
            "{steps: 1, learn: {a: {when: sometimes}}}",
            "structure.unknown_value schedule.learn.a.when",
        ),
        ("{steps: 1, max_staleness: -0.5}", "numbers.out_of_range schedule.max_staleness"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, wrong: str) -> None:
    assert codes(text) == [wrong]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{preset: cpu, gpu: H100-80GB}", "structure.conflict hardware.gpu"),
        ("{nodes: 2, gpus_per_node: 8}", "structure.missing_field hardware.gpu"),
        ("{memory_budget: 1.5}", "numbers.out_of_range hardware.memory_budget"),
        ("{pools: {a: {}}}", "structure.conflict hardware.pools.a.gpus"),
        ("{pools: {a: {gpus: 1, workers: 1}}}", "structure.conflict hardware.pools.a.gpus"),
        ("{pools: {a: {gpus: 0}}}", "numbers.out_of_range hardware.pools.a.gpus"),
    ],
)
def test_hardware_is_a_preset_or_explicit(text: str, wrong: str) -> None:
    found = parse(f"coloop: 1\nname: x\nnodes: {{}}\nschedule: {{steps: 1}}\nhardware: {text}\n")

    assert [f"{d.code} {d.field}" for d in found.diagnostics] == [wrong]


def test_silence_about_hardware_is_the_cpu_preset() -> None:
    found = parse("coloop: 1\nname: x\nnodes: {}\nschedule: {steps: 1}\n").spec
    assert found is not None

    assert found.hardware.preset_name == "cpu"
