"""When the state of a run goes to disk."""

from pathlib import Path
from typing import Any

import pytest

from coloop.runtime.checkpoints.checkpoint_manager import SECONDS_BETWEEN, CheckpointManager


class Folders:
    """Counts what is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[int] = []

    def write(self, step: int, state: Any, saver: Any, *, best: bool) -> Path:
        self.steps.append(step)
        return self.folder / f"step-{step}"

    def record(self, event: Any) -> None: ...


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@pytest.fixture
def checkpoint_manager(folders: Folders, clock: list[float]) -> CheckpointManager:
    parts: Any = folders
    return CheckpointManager(parts, parts, parts, dict, lambda: clock[0])


def test_so_many_steps_are_counted_where_the_loop_says_how_many(
    checkpoint_manager: CheckpointManager,
) -> None:
    assert [step for step in range(10) if checkpoint_manager.is_due(step, 4)] == [4, 8]


def test_where_nobody_says_how_often_ten_minutes_are_lost_at_most(
    checkpoint_manager: CheckpointManager, folders: Folders, clock: list[float]
) -> None:
    for step in range(1, 11):
        clock[0] += SECONDS_BETWEEN / 4
        if checkpoint_manager.is_due(step, None):
            checkpoint_manager.write(step, once=True)

    assert folders.steps == [4, 8]


def test_a_checkpoint_for_another_reason_begins_the_ten_minutes_anew(
    checkpoint_manager: CheckpointManager, clock: list[float]
) -> None:
    clock[0] = SECONDS_BETWEEN - 1
    checkpoint_manager.note_best({"probe.accuracy": 1.0})
    checkpoint_manager.write(3)
    clock[0] += SECONDS_BETWEEN - 1

    assert not checkpoint_manager.is_due(4, None)
    clock[0] += 1
    assert checkpoint_manager.is_due(4, None)


def test_nothing_is_written_before_the_first_step(
    checkpoint_manager: CheckpointManager, clock: list[float]
) -> None:
    clock[0] = 2 * SECONDS_BETWEEN

    assert not checkpoint_manager.is_due(0, None)
