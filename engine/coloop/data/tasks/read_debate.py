"""Reading debates: a passage that only the debaters see, a question, and two answers to defend.

passage: k=4 q=7 z=2     question: q?     mine: 7     theirs: 3     mine_is_right: 1
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    each_of,
)
from coloop.spec.tasks import ReadDebateTask

LETTERS: Final = "bcdfghjklmnpqrstvwxz"
SEEDS: Final = 1 << 40


def _strata(parameters: ReadDebateTask) -> Sequence[Stratum]:
    return [_stratum(facts) for facts in each_of(parameters.facts)]


def _stratum(facts: int) -> Stratum:
    def problem(index: int) -> Problem:
        rng = random.Random(index)
        keys = rng.sample(LETTERS, facts)
        values = [rng.randrange(10) for _ in keys]
        asked = rng.randrange(facts)
        wrong = rng.choice([digit for digit in range(10) if digit != values[asked]])
        mine_is_right = rng.randrange(2)
        sides = (values[asked], wrong) if mine_is_right else (wrong, values[asked])
        facts_told = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        passage = " ".join(facts_told)
        return Problem(
            key=" ".join(sorted(facts_told)),
            columns={
                "prompt": f"{keys[asked]}?",
                "passage": passage,
                "question": f"{keys[asked]}?",
                "mine": str(sides[0]),
                "theirs": str(sides[1]),
                "mine_is_right": mine_is_right,
                "answer": str(values[asked]),
            },
        )

    return Stratum(size=SEEDS, problem=problem)


def check_read_debate(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion is the passage's answer."""
    gold = columns.get("answer")
    return float(says(completion, gold)) if isinstance(gold, str) else None


READ_DEBATE: Final = Task(
    name="read_debate",
    help="A hidden passage, a question, and two answers that debaters defend.",
    parameters=ReadDebateTask,
    main=Part(
        help="The passage, the question, the two answers and which one is right.",
        columns=(
            "prompt",
            "passage",
            "question",
            "mine",
            "theirs",
            "mine_is_right",
            "answer",
        ),
        strata=_strata,
    ),
    check=check_read_debate,
)
