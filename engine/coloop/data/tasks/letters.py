"""The tasks `sorting`, `counting` and `last_letter`.

sort 5 2 9:            2 5 9
a in abcabba:          3
apple tree sun:        een      reached letter by letter; the column `steps` has the gold ones
"""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    answer_checker,
    decode,
    each_of,
    question,
    strata_over,
)
from coloop.spec.tasks import CountingTask, LastLetterTask, SortingTask

SYMBOLS: Final[Mapping[str, str]] = {
    "digits": "0123456789",
    "letters": "abcdefghijklmnopqrstuvwxyz",
}
SORT: Final = re.compile(r"sort ([a-z\d ]+):")


def _sorting(parameters: SortingTask) -> Sequence[Stratum]:
    symbols = SYMBOLS[parameters.symbols]

    def stratum(length: int) -> Stratum:
        def problem(index: int) -> Problem:
            shown = [symbols[number] for number in decode(index, [len(symbols)] * length)]
            answer = " ".join(sorted(shown))
            return question(answer, f"sort {' '.join(shown)}:", answer)

        return Stratum(size=len(symbols) ** length, problem=problem)

    return [stratum(length) for length in each_of(parameters.length)]


def _sorted(columns: Mapping[str, Any]) -> str | None:
    prompt = SORT.search(str(columns.get("prompt", "")))
    return " ".join(sorted(prompt[1].split())) if prompt is not None else None


SORTING: Final = Task(
    name="sorting",
    parameters=SortingTask,
    main=Part(strata=_sorting),
    check=answer_checker(_sorted),
)

ALPHABET: Final = "abcd"
"""Few letters, so that they occur in a word more than once."""
COUNT: Final = re.compile(r"(\w) in (\w+):")


def _counting(length: int) -> Stratum:
    bases = [len(ALPHABET)] * (length + 1)

    def problem(index: int) -> Problem:
        wanted, *letters = (ALPHABET[number] for number in decode(index, bases))
        word = "".join(letters)
        return question(word, f"{wanted} in {word}:", str(word.count(wanted)))

    return Stratum(size=len(ALPHABET) ** (length + 1), problem=problem)


def _counted(columns: Mapping[str, Any]) -> str | None:
    prompt = COUNT.search(str(columns.get("prompt", "")))
    return str(prompt[2].count(prompt[1])) if prompt is not None else None


COUNTING: Final = Task(
    name="counting",
    parameters=CountingTask,
    main=Part(strata=strata_over("length", _counting)),
    check=answer_checker(_counted),
)

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


def _last_letters(count: int) -> Stratum:
    def problem(index: int) -> Problem:
        words = [LEXICON[number] for number in decode(index, [len(LEXICON)] * count)]
        key, steps = " ".join(words), gold_steps(words)
        return question(key, f"{key}:", steps[-1], target="\n".join(steps), steps=steps)

    return Stratum(size=len(LEXICON) ** count, problem=problem)


def gold_steps(words: Sequence[str]) -> list[str]:
    """The last letters of the words so far, after each word."""
    letters = "".join(word[-1] for word in words)
    return [letters[: end + 1] for end in range(len(letters))]


def _gold(columns: Mapping[str, Any]) -> list[str]:
    steps = columns.get("steps")
    if isinstance(steps, list) and steps:
        return [str(step) for step in steps]
    words = str(columns.get("prompt", "")).rstrip().rstrip(":").split()
    return gold_steps(words) if words and all(word.isalpha() for word in words) else []


def check_last_letter(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 if the completion's last line is the letters of all words, else 0."""
    gold = _gold(columns)
    return float(says(completion, gold[-1])) if gold else None


def check_last_letter_steps(columns: Mapping[str, Any], steps: Sequence[str]) -> list[float | None]:
    """1 for each step that equals the gold step at its position, else 0; extra steps get 0."""
    gold = _gold(columns)
    if not gold:
        return [None] * len(steps)
    pairs = zip_longest(steps, gold[: len(steps)])
    return [float(step.strip() == right) for step, right in pairs]


LAST_LETTER: Final = Task(
    name="last_letter",
    parameters=LastLetterTask,
    main=Part(strata=strata_over("words", _last_letters)),
    check=check_last_letter,
    check_steps=check_last_letter_steps,
)
