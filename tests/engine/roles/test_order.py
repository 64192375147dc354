"""The order in which stages end changes nothing: tables, orders to learn and alerts are those of
one stage after another."""

import random
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.matrix import halved

from coloop.errors import DataError
from coloop.plan.run_check import check_drawn
from coloop.spec.io import from_dict
from coloop.spec.paths import apply_overrides

Bench = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[3]
WRITTEN = sorted(
    [
        *(ROOT / "tests/engine/runs/combinations").glob("*.yaml"),
        *(ROOT / "presets/loops").glob("*.yaml"),
    ]
)


class ShuffledLanes:
    """Any number of stages at work, which end in an order drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._works: dict[Future[Any], Callable[[], Any]] = {}
        self.most_at_once = 0

    def room(self, lane: str | None) -> int:
        return 99 if lane is None else 1

    def submit(self, lane: str | None, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._works[future] = work
        self.most_at_once = max(self.most_at_once, len(self._works))
        return future

    def wait(
        self, works: Collection[Future[Any]], seconds: float, /
    ) -> tuple[set[Future[Any]], set[Future[Any]]]:
        future = self._chance.choice([*self._works])
        future.set_result(self._works.pop(future)())
        return {future}, set()

    def close(self) -> None: ...


def written(path: Path) -> dict[str, Any]:
    """A loop over few rows; what is expected of it stands in a document behind it."""
    return small(next(iter(YAML(typ="safe").load_all(path.read_text(encoding="utf-8")))))


def small(value: dict[str, Any]) -> dict[str, Any]:
    """The same loop over few rows."""
    for node in value["nodes"].values():
        if node["kind"] == "dataset":
            node["rows_per_step"] = min(4, node.get("rows_per_step") or 4)
        rollout = node.get("rollout") or {}
        if rollout.get("completions_per_prompt", 0) > 4:
            rollout["completions_per_prompt"] = 4
    return value


def played(loop: Any) -> list[Any]:
    """All that two steps of every phase bring."""
    loop.hosts.write = lambda prompt, k: str(k % 10)
    found: list[Any] = []
    step = 0
    for phase in loop.plan.phases:
        loop.stand(spec=apply_overrides(loop.spec, phase.overrides))
        for role in (*loop.roles.values(), *loop.groups.values()):
            starts = getattr(role, "phase_starts", None)
            if starts is not None:
                starts(phase, {}, loop.context)
        for _ in range(2):
            step += 1
            found.append(loop.step(step, phase.name).tables)
    orders = sorted(loop.hosts.orders, key=lambda order: (order.group, order.seed))
    states = {node: role.state() for node, role in loop.roles.items()}
    return [found, [list(tables) for tables in found], orders, states, sorted(loop.alerts)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", halved(WRITTEN, first=0), ids=lambda path: path.stem)
def test_what_a_step_brings_does_not_depend_on_which_stage_ends_first(
    path: Path, bench: Bench
) -> None:
    value = written(path)
    for node in value["nodes"].values():
        source = node.get("source")
        if isinstance(source, dict) and source.get("type") == "file":
            source["path"] = str(path.parent / source["path"])
    parsed = from_dict(value)
    assert parsed.spec is not None
    assert not check_drawn(parsed.spec)
    parts = (value["nodes"], value["edges"], value["schedule"])
    try:
        expected = played(bench(*parts))
    except DataError as problem:
        pytest.skip(f"its data is not here: {problem}")

    for seed in range(3):
        assert played(bench(*parts, lanes=ShuffledLanes(seed))) == expected


def test_shuffled_stages_are_at_work_at_once(bench: Bench) -> None:
    """A control: else the test above would compare one order with itself."""
    path = ROOT / "tests/engine/runs/combinations/four-siblings-edge-woken.yaml"
    value = written(path)
    lanes = ShuffledLanes(0)

    played(bench(value["nodes"], value["edges"], value["schedule"], lanes=lanes))

    assert lanes.most_at_once >= 2
