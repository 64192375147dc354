"""Every loop preset validates and compiles; those for a CPU run two steps of each phase.

Those runs are rehearsals: the same graph and models, with few rows, and with texts that parse in
place of those that an untrained model samples.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop.explain.rehearsal import rehearsed
from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_runs
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of
from coloop.spec.io import dump, parse
from coloop.validate import validate

LOOPS = presets.presets_root() / "loops"
NAMES = [loop.name for loop in presets.list_loops()]


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    assert parsed.spec is not None, [found.describe() for found in parsed.diagnostics]
    return parsed.spec


def is_for_a_cpu(name: str) -> bool:
    return presets.hardware_of(spec_of(presets.load_loop_text(name)).hardware).gpus == 0


ON_A_CPU = [name for name in NAMES if is_for_a_cpu(name)]
EXTRAS = {"reasoning-gym": "reasoning_gym", "textarena-two-players": "textarena"}
"""Packages that a preset needs to run."""


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", NAMES)
def test_a_loop_preset_has_nothing_to_complain_about(name: str) -> None:
    parsed = parse(presets.load_loop_text(name))

    assert not parsed.diagnostics
    assert parsed.spec is not None
    assert not validate(parsed.spec, root=LOOPS).diagnostics


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_preset_compiles_to_a_plan_that_learns(name: str) -> None:
    plan = compile_plan(spec_of(presets.load_loop_text(name)))

    assert plan.phases
    assert any(phase.learn for phase in plan.phases)


def test_a_loop_preset_is_called_as_its_file_and_has_a_title_and_a_description() -> None:
    for loop in presets.list_loops():
        assert spec_of(loop.path.read_text(encoding="utf-8")).name == loop.name
        assert loop.title
        assert loop.description


def test_no_two_presets_have_one_name_or_one_title() -> None:
    titles = [loop.title for loop in presets.list_loops()]

    assert len(set(NAMES)) == len(NAMES)
    assert len(set(titles)) == len(titles)


def test_every_loop_preset_can_be_run() -> None:
    refused = {name for name in NAMES if check_runs(spec_of(presets.load_loop_text(name)))}

    assert refused == set()


def test_presets_for_gpus_are_named_after_their_machine() -> None:
    for name in set(NAMES) - set(ON_A_CPU):
        machine = presets.hardware_of(spec_of(presets.load_loop_text(name)).hardware)
        assert name.endswith(f"-{machine.name}"), name


@pytest.fixture(scope="module")
def run_in(tmp_path_factory: pytest.TempPathFactory) -> Any:
    start = pytest.importorskip("coloop.runtime.start")

    def run(name: str) -> Any:
        spec = rehearsed(spec_of(presets.load_loop_text(name)), root=LOOPS).spec
        spec = spec.model_copy(update={"run": spec.run.model_copy(update={"keep": 100})})
        return spec, start.run(
            start.RunRequest(
                spec=spec,
                text=dump(spec),
                root=LOOPS,
                runs_dir=tmp_path_factory.mktemp(name),
                cluster="local",
                threads=1,
            )
        )

    return run


@pytest.mark.parametrize("name", ON_A_CPU)
def test_every_learner_of_a_preset_for_a_cpu_changes_in_a_short_run(name: str, run_in: Any) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason="not installed; `make test-extras`")
    spec, result = run_in(name)

    assert result.error is None
    assert result.state == "finished"
    lines = (result.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    entered = {e["phase"] for e in events if e["type"] == "phase" and e["state"] == "finished"}
    assert entered == {phase.name for phase in compile_plan(spec).phases}
    losses = {name: list(values) for name, values in readings(events, "loss")}
    assert set(losses) == set(learners(spec))
    assert all(math.isfinite(value) for values in losses.values() for value in values)
    for node, values in readings(events, "parse/none"):
        assert min(values) < 1, f"no text of `{node}` was parsed"
    owners = {owner_of(spec, node) or node for node in learners(spec)}
    assert [owner for owner in owners if not is_changed(result.folder / "checkpoints", owner)] == []


def learners(spec: LoopSpec) -> tuple[str, ...]:
    return tuple(spec.graph.learners())


def readings(events: list[dict[str, Any]], metric: str) -> Iterator[tuple[str, list[float]]]:
    """Values of a metric of the steps, by node."""
    found: dict[str, list[float]] = {}
    for event in events:
        if event["type"] == "metrics" and not event["evaluation"] and metric in event["metrics"]:
            found.setdefault(event["node"], []).append(event["metrics"][metric])
    yield from found.items()


def is_changed(checkpoints: Path, owner: str) -> bool:
    """Whether the last checkpoint has other weights than the first."""
    steps = sorted(
        checkpoints.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-"))
    )
    first, last = (weights_in(steps[at] / owner) for at in (0, -1))
    return len(first) > 0 and first != last


def weights_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


LARGE = "grpo-qwen2.5-7b-8xH100"
HEAD = "# GRPO with Qwen2.5-7B on eight H100s"


def _set(path: str, value: object) -> list[Change]:
    return [Change(op="set", path=path, value=value)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hardware.preset", "32xH100"),
        ("hardware.pools", {"main": {"gpus": 4}}),
        ("nodes.actor.model.path", "Qwen/Qwen2.5-32B"),
        ("nodes.actor.model", {"type": "scratch", "architecture": "tiny-qwen3"}),
    ],
)
def test_what_a_preset_says_of_itself_goes_with_its_machine_or_model(path, value):
    text = presets.load_loop_text(LARGE)

    new = presets.patched(text, _set(path, value))

    assert text.startswith(HEAD)
    assert new.startswith("coloop: 1\n")
    assert "eight H100" not in new
    assert presets.patched(text.replace("\n", "\r\n"), _set(path, value)).startswith("coloop: 1")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schedule.steps", 7),
        ("hardware.memory_budget", 0.8),
        ("nodes.actor.training.optimizer.lr", 2e-6),
        ("nodes.other", {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}),
        ("name", "mine"),
    ],
)
def test_what_a_preset_says_of_itself_stays_with_other_changes(path, value):
    assert presets.patched(presets.load_loop_text(LARGE), _set(path, value)).startswith(HEAD)


def test_a_comment_of_ones_own_stays():
    text = presets.load_loop_text(LARGE)
    for own in ("# Ours, on eight H100.\n" + text, text.replace(HEAD, "# Mine on eight H100")):
        assert presets.patched(own, _set("hardware.preset", "32xH100")).startswith(own[:20])


def test_comments_of_all_presets_are_known():
    for name in presets.loop_names():
        text = presets.load_loop_text(name)
        new = presets.patched(text, _set("hardware", {"preset": "1xL4"}))
        assert not new.startswith("#"), name
