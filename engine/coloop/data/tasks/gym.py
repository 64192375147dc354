"""The task `reasoning_gym`: problems that the package reasoning-gym generates.

A row keeps what makes its problem again: the generator, its settings and the number of the problem.
Answers are scored by the reward `reasoning_gym`, in a sandbox, because some of the package's
verifiers evaluate the text of an answer.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from coloop.data.tasks.base import Part, Problem, Stratum, Task, TaskProblem, question
from coloop.spec.tasks import ReasoningGymTask

MISSING: Final = (
    "the task reasoning_gym needs the package reasoning-gym: pip install 'coloop[reasoning-gym]'"
)
PROBLEMS: Final = 1_000_000
"""Numbered problems of a generator."""
FEW: Final[Mapping[str, int]] = dict.fromkeys(("acre", "gsm_symbolic", "list_functions"), 500)
"""Of generators that make all of their problems at once."""


@lru_cache(maxsize=32)
def generator(name: str, settings: str) -> Any:
    """A generator of reasoning-gym by its name and its settings as JSON; problems by their number.

    Raises:
        TaskProblem: the package is not installed, or the settings are none of this generator.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import reasoning_gym
    except ImportError as error:
        raise TaskProblem(MISSING, field="task") from error
    size = FEW.get(name, PROBLEMS)
    try:
        return reasoning_gym.create_dataset(name, seed=0, size=size, **json.loads(settings))
    except (TypeError, ValueError, AssertionError) as error:
        raise TaskProblem(
            f"reasoning-gym cannot make {name} with these settings: {error}", field="settings"
        ) from error


def _strata(parameters: ReasoningGymTask) -> Sequence[Stratum]:
    name = parameters.generator
    settings = json.dumps(parameters.settings, sort_keys=True)
    made = generator(name, settings)

    def problem(index: int) -> Problem:
        entry = made[index]
        return question(
            entry["question"],
            entry["question"],
            "" if entry["answer"] is None else str(entry["answer"]),
            gym=name,
            gym_index=index,
            gym_settings=settings,
        )

    return [Stratum(size=FEW.get(name, PROBLEMS), problem=problem)]


def _not_here(columns: Mapping[str, Any], completion: str) -> None:
    """The reward `task` gives no score to these rows."""
    del columns, completion


REASONING_GYM: Final = Task(
    name="reasoning_gym",
    parameters=ReasoningGymTask,
    main=Part(strata=_strata),
    check=_not_here,
)
