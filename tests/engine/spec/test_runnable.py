"""What the engine runs, told from the spec alone."""

from __future__ import annotations

from pathlib import Path

from coloop.spec.io import parse
from coloop.spec.runnable import later


def reasons(text: str) -> list[tuple[str, str | None]]:
    """What is for later, and at which node."""
    spec = parse(text).spec
    assert spec is not None
    return [(found.what, found.node) for found in later(spec)]


def test_the_small_loop_runs(small: str) -> None:
    assert reasons(small) == []


def test_each_thing_for_later_is_named(small: str) -> None:
    text = small.replace("{name: grpo}", "{name: gspo}")
    text = text.replace("{steps: 3}", "{steps: 3, max_staleness: 1, stream: true}")
    text = text.replace("    rollout: {", "    rollout: {turns: {max: 2}, engine: vllm, ")

    assert reasons(text) == [
        ("the engine `vllm`", "actor"),
        ("turns with tools", "actor"),
        ("the algorithm `gspo`", "actor"),
        ("staleness above 0", None),
        ("streaming", None),
    ]


def test_kinds_for_later_are_named(language: Path) -> None:
    text = (language / "examples" / "ppo-four-models.yaml").read_text("utf-8")

    found = reasons(text)

    assert ("nodes of kind `critic`", "critic") in found
    assert ("rewards of type `model`", "preference_model") in found
    assert ("the algorithm `ppo`", "actor") in found


def test_the_three_loops_of_the_first_issue_run(language: Path) -> None:
    for name in ("grpo-arithmetic", "spin"):
        assert reasons((language / "examples" / f"{name}.yaml").read_text("utf-8")) == []
