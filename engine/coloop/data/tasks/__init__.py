"""The procedural tasks: generated problems with checkers, and splits that do not overlap.

To add one: its parameters in `coloop.spec.tasks`, a file with a `Task`, and a line in OWN_TASKS.
Importing this package loads neither torch nor transformers.
"""

from collections.abc import Mapping
from typing import Any, Final

from coloop.data.tasks.base import Part, Task, TaskProblem, draw_rows, first_rows
from coloop.data.tasks.gym import REASONING_GYM
from coloop.data.tasks.images import IMAGES
from coloop.data.tasks.knights import KNIGHTS
from coloop.data.tasks.knowledge import KNOWLEDGE, READ_DEBATE
from coloop.data.tasks.letters import COUNTING, LAST_LETTER, SORTING
from coloop.data.tasks.numbers import ARITHMETIC, CALCULATOR, COUNTDOWN, TWO_HALVES
from coloop.data.tasks.preference import PREFERENCE
from coloop.data.tasks.proof import PROOF
from coloop.spec import plugins as spec_tasks
from coloop.spec.installed import WithPlugins
from coloop.spec.names import TASK_COLUMN
from coloop.spec.tasks import PLUGINS

OWN_TASKS: Final[Mapping[str, Task]] = {
    task.name: task
    for task in (
        *(ARITHMETIC, COUNTDOWN, SORTING, LAST_LETTER, KNIGHTS, COUNTING, CALCULATOR, KNOWLEDGE),
        *(PROOF, PREFERENCE, READ_DEBATE, TWO_HALVES, IMAGES, REASONING_GYM),
    )
}

TASKS: Final = WithPlugins(OWN_TASKS, {name: plugin.task for name, plugin in PLUGINS.items()})


def part_of(task: Task, part: str | None) -> Part:
    """A part of a task by name; None: the main one. Raises TaskProblem if there is none."""
    if part is None:
        return task.main
    if part not in task.parts:
        there = ", ".join(task.parts) or "none"
        raise TaskProblem(
            f"task {task.name} has no part {part!r}; its parts: {there}", field="part"
        )
    return task.parts[part]


def rows_of(source: spec_tasks.Task) -> list[dict[str, Any]]:
    task = TASKS[str(vars(source)["task"])]
    part = part_of(task, vars(source).get("part"))
    return draw_rows(
        task.name, part, source, split=source.split, size=source.size, seed=source.seed
    )


def first_rows_of(source: spec_tasks.Task, most: int) -> list[dict[str, Any]]:
    """The first rows of a task of ours, at most `most`, in the order of `rows_of`."""
    task = OWN_TASKS[str(vars(source)["task"])]
    part = part_of(task, vars(source).get("part"))
    return first_rows(task.name, part, source, split=source.split, most=most, seed=source.seed)


def task_rows(name: str, **parameters: Any) -> list[dict[str, Any]]:
    """Rows of a task with the parameters of a `task` source."""
    section = TASKS[name].parameters
    return rows_of(section.model_validate({"type": "task", "task": name, **parameters}))


def check_row(columns: Mapping[str, Any], completion: str) -> float | None:
    """Grade of a completion by the checker of the row's task; None if the row has no task."""
    task = _task_of_row(columns)
    return None if task is None else task.check(columns, completion)


def check_row_steps(columns: Mapping[str, Any], steps: list[str]) -> list[float | None]:
    """Grades of a completion's steps; all None if the task cannot check steps."""
    task = _task_of_row(columns)
    if task is None or task.check_steps is None:
        return [None] * len(steps)
    return task.check_steps(columns, steps)


def has_checker(columns: Mapping[str, Any]) -> bool:
    return _task_of_row(columns) is not None


def _task_of_row(columns: Mapping[str, Any]) -> Task | None:
    name = columns.get(TASK_COLUMN)
    return TASKS.get(name.partition("?")[0]) if isinstance(name, str) else None
