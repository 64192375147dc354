"""The built-in reward `reasoning_gym`: the verifier of the generator that made a row's problem."""

import base64
import pickle
from typing import Any, Final

from coloop.data.answers import in_tags
from coloop.data.rewards.scoring import Question, ScoringRow, by_text
from coloop.data.tables.row import Score
from coloop.data.tasks.base import TaskProblem
from coloop.data.tasks.gym import generator
from coloop.errors import DataError
from coloop.spec import builtins as options

LONGEST: Final = 20_000
"""Characters of an answer that is scored; a longer one gets 0."""


@by_text
def reasoning_gym(text: str, row: ScoringRow, given: options.ReasoningGym) -> Score | Question:
    """The verifier's score of the answer in the tags, or of the whole text."""
    name, settings, index = (row.columns.get(f"gym{part}") for part in ("", "_settings", "_index"))
    if not (isinstance(name, str) and isinstance(settings, str) and isinstance(index, int)):
        raise DataError(
            "the reward `reasoning_gym` needs rows of the task `reasoning_gym`, with the columns "
            f"gym, gym_index and gym_settings; this row has {', '.join(sorted(row.columns))}"
        )
    answer = answer_in(text, given.tag)
    if len(answer) > LONGEST:
        return 0.0
    try:
        made = generator(name, settings)
        entry = made[index]
    except (TaskProblem, IndexError) as error:
        raise DataError(f"reasoning_gym: problem {index} of {name}: {error}") from error
    columns = {"text": answer, "gym": name, "config": _sent(made.config), "entry": _sent(entry)}
    return Question(columns=columns)


def answer_in(text: str, tag: str | None) -> str:
    """The last answer in tags, stripped; without tags the whole text."""
    found = [] if tag is None else list(in_tags(text, tag))
    return (found[-1] if found else text).strip()


def _sent(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
