"""Last-letter chains: of `apple tree sun:` the answer is `een`, reached letter by letter.

Each step writes what has been collected so far on a line of its own; the column `steps` holds the
gold ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
)
from coloop.spec.tasks import LastLetterTask

WORDS: Final = """
apple tree sun map bag club crib sofa area idea panda music disk cloud bird road sand hand leaf
roof wolf half king song ring frog fish bath path moth taxi kiwi rabbi book desk duck lake milk
wall ball hill pool farm drum room team moon rain corn town lion zero piano taco photo auto soup
ship lamp jeep step car door star fire river bear bus grass dress boss glass hat boat night test
fruit you menu guru law snow bow view cow fox box wax six tax day key toy sky city baby jazz quiz
buzz fizz cake nose house table chair horse mouse plane stone bread wood gold food cold wind flag
frog egg leg dog pig bell tail girl school wheel gem film arm storm poem plum pen fan pin van iron
ocean lemon queen cup cap jump sheep camp chip paper water tiger flower sugar winter letter number
yes plus gas class lens iris salt light heart plant coat wheat root knot bolt
"""


LEXICON: Final = tuple(dict.fromkeys(WORDS.split()))


def _strata(parameters: LastLetterTask) -> Sequence[Stratum]:
    return [_stratum(words) for words in each_of(parameters.words)]


def _stratum(count: int) -> Stratum:
    def problem(index: int) -> Problem:
        words = [LEXICON[place] for place in decode(index, [len(LEXICON)] * count)]
        steps = gold_steps(words)
        return Problem(
            key=" ".join(words),
            columns={
                "prompt": f"{' '.join(words)}:",
                "answer": steps[-1],
                "target": "\n".join(steps),
                "steps": steps,
            },
        )

    return Stratum(size=len(LEXICON) ** count, problem=problem)


def gold_steps(words: Sequence[str]) -> list[str]:
    """What has been collected after each word."""
    letters = "".join(word[-1] for word in words)
    return [letters[: end + 1] for end in range(len(letters))]


def _gold(columns: Mapping[str, Any]) -> list[str]:
    steps = columns.get("steps")
    if isinstance(steps, list) and steps:
        return [str(step) for step in steps]
    words = str(columns.get("prompt", "")).rstrip().rstrip(":").split()
    return gold_steps(words) if words and all(word.isalpha() for word in words) else []


def check_last_letter(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion ends with the whole chain of letters."""
    gold = _gold(columns)
    return float(says(completion, gold[-1])) if gold else None


def check_last_letter_steps(columns: Mapping[str, Any], steps: Sequence[str]) -> list[float | None]:
    """1 for each step that is the gold step of its place; a step too many is wrong."""
    gold = _gold(columns)
    if not gold:
        return [None] * len(steps)
    return [
        float(place < len(gold) and step.strip() == gold[place]) for place, step in enumerate(steps)
    ]


LAST_LETTER: Final = Task(
    name="last_letter",
    help="Collect the last letters of some words, one word a step.",
    parameters=LastLetterTask,
    main=Part(
        help="Words, their last letters, and the chain's gold steps.",
        columns=("prompt", "answer", "target", "steps"),
        strata=_strata,
    ),
    check=check_last_letter,
    check_steps=check_last_letter_steps,
)
