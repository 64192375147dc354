"""Built-in rewards for the form of a completion: patterns, named shapes, length, repeats."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.rewards.math_text import last_boxed
from coloop.data.rewards.scoring import Score, ScoringRow, text_of, tokens_of
from coloop.errors import DataError
from coloop.spec import builtins as options

SUM: Final = re.compile(r"\s*\d+(?:\s*\+\s*\d+)+\s*=?\s*")
NUMBER: Final = re.compile(r"\s*-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)\s*")
TAGS: Final = re.compile(
    r"\s*<think>((?:(?!</?think>).)+)</think>\s*<answer>((?:(?!</?answer>).)+)</answer>\s*",
    re.DOTALL,
)
TAG_NAMES: Final = ("<think>", "</think>", "<answer>", "</answer>")
QUESTION: Final = re.compile(r"<question>((?:(?!</?question>).)+)</question>", re.DOTALL)
QUESTION_TAGS: Final = ("<question>", "</question>")
STEP: Final = re.compile(r"^step (\d{1,9}): (?:right|wrong)$")
VERDICT: Final = re.compile(r"^final: (?:correct|incorrect)$")
UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Characters of scripts that set no blanks between words: Thai, Lao, Burmese, Khmer, Japanese,
Chinese."""
LONGEST_WORD: Final = 40
PIECE: Final = re.compile(r"\w+|[^\w\s]")


def _is_sum(text: str) -> float:
    return float(SUM.fullmatch(text) is not None)


def _is_number(text: str) -> float:
    return float(NUMBER.fullmatch(text) is not None)


def _is_boxed(text: str) -> float:
    """One boxed answer; half where it is not closed or blank."""
    if (last_boxed(text) or "").strip():
        return 1.0
    return 0.5 if "\\boxed" in text else 0.0


def _has_tags(text: str) -> float:
    """Thought, then answer, nothing else; in part, the share of the four tags that stand once and
    in order."""
    found = TAGS.fullmatch(text)
    if found is not None and all(map(str.strip, found.groups())):
        return 1.0
    places = [text.find(tag) for tag in TAG_NAMES if text.count(tag) == 1]
    return min(0.75, _longest_rise(places) / len(TAG_NAMES))


def _longest_rise(places: Sequence[int]) -> int:
    """How many of the numbers are in order, at best."""
    longest: list[int] = []
    for at, place in enumerate(places):
        before = (longest[other] for other in range(at) if places[other] < place)
        longest.append(1 + max(before, default=0))
    return max(longest, default=0)


def _has_verdicts(text: str) -> float:
    """`step 1: right` and so on in order, then `final: correct`; in part, the share of lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return 0.0
    in_order = 0
    for line in lines:
        found = STEP.match(line)
        in_order += found is not None and int(found[1]) == in_order + 1
    is_closed = VERDICT.match(lines[-1]) is not None
    return (in_order + is_closed) / max(len(lines), 2) if in_order else 0.5 * is_closed


def _has_question(text: str) -> float:
    """One question in tags; half where only one of the tags stands."""
    found = QUESTION.findall(text)
    if len(found) == 1 and found[0].strip() and all(text.count(tag) == 1 for tag in QUESTION_TAGS):
        return 1.0
    return 0.5 if ("<question>" in text) != ("</question>" in text) else 0.0


SHAPES: Final[Mapping[str, Callable[[str], float]]] = {
    "sum": _is_sum,
    "number": _is_number,
    "boxed": _is_boxed,
    "tags": _has_tags,
    "verdict_per_step": _has_verdicts,
    "question_tag": _has_question,
}
"""How much a text has of a named form, 1 all of it."""


def format_(rows: Sequence[ScoringRow], given: options.Format) -> list[Score]:
    """`right` for a text in form, `wrong` for any other; graded: in between by its share."""
    scores: list[Score] = []
    for row in rows:
        text = text_of(row)
        if text is None:
            scores.append(None)
            continue
        share = _share(text, given)
        share = share if given.graded else float(share == 1.0)
        scores.append(given.wrong + (given.right - given.wrong) * share)
    return scores


def _share(text: str, given: options.Format) -> float:
    if given.shape is not None:
        return SHAPES[given.shape](text)
    assert given.pattern is not None
    try:
        return float(pattern(given.pattern).is_in(text))
    except PatternTimeout as late:
        raise DataError(f"format: {late}") from None


def regex(rows: Sequence[ScoringRow], given: options.Regex) -> list[Score]:
    """The number that the last match says, brought from `scale` onto 0 to 1; no group: 1."""
    found = pattern(given.pattern)
    scores: list[Score] = []
    for row in rows:
        text = text_of(row)
        if text is None:
            scores.append(None)
            continue
        try:
            said = found.last(text)
        except PatternTimeout as late:
            raise DataError(f"regex: {late}") from None
        if said is None:
            scores.append(given.on_no_match)
        elif found.groups == 0:
            scores.append(1.0)
        else:
            scores.append(_scaled(said, given))
    return scores


def _scaled(said: str, given: options.Regex) -> Score:
    try:
        value = float(said)
    except ValueError:
        return given.on_no_match
    if not math.isfinite(value):
        return given.on_no_match
    if given.scale is None:
        return value
    low, high = given.scale
    return min(1.0, max(0.0, (value - low) / (high - low)))


def length(rows: Sequence[ScoringRow], given: options.Length) -> list[Score]:
    """1 up to `min` tokens, 0 from `max` on, between them falling in a line or a half cosine."""
    scores: list[Score] = []
    for row in rows:
        share = (tokens_of(row) - given.min) / (given.max - given.min)
        share = min(1.0, max(0.0, share))
        if given.shape == "cosine":
            scores.append(0.5 * (1.0 + math.cos(math.pi * share)))
        else:
            scores.append(1.0 - share)
    return scores


def overlong(rows: Sequence[ScoringRow], given: options.Overlong) -> list[Score]:
    """min(-(L - (max - buffer)) / buffer * factor, 0), DAPO's penalty near the limit.

    arXiv 2503.14476.
    """
    start = given.max - given.buffer
    return [min(-(tokens_of(row) - start) / given.buffer * given.factor, 0.0) + 0.0 for row in rows]


def ngram_repetition(rows: Sequence[ScoringRow], given: options.NgramRepetition) -> list[Score]:
    """-factor * (1 - different n-grams / n-grams), over words; 0 for a text of fewer words.

    Where there are no blanks, characters stand for words.
    """
    scores: list[Score] = []
    for row in rows:
        text = text_of(row)
        words = [] if text is None else _words(text)
        count = len(words) - given.size + 1
        if text is None or count < 1:
            scores.append(None if text is None else 0.0)
            continue
        different = {tuple(words[start : start + given.size]) for start in range(count)}
        scores.append(-given.factor * (1.0 - len(different) / count) + 0.0)
    return scores


def _words(text: str) -> list[str]:
    """Words between blanks; in scripts without blanks, and in a run too long for a word, smaller
    pieces."""
    words: list[str] = []
    for run in UNSPACED.sub(r" \g<0> ", text).split():
        if len(run) <= LONGEST_WORD:
            words.append(run)
            continue
        for piece in PIECE.findall(run):
            words += [piece] if len(piece) <= LONGEST_WORD else piece
    return words
