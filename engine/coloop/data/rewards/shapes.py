"""Built-in rewards for the form of a completion: patterns, named shapes, length, repeats."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from coloop.data.answers import number_in
from coloop.data.patterns import PatternTimeout, pattern
from coloop.data.rewards.math_text import last_boxed
from coloop.data.rewards.scoring import ScoringRow, by_row, by_text, tokens_of
from coloop.data.tables.row import Score
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
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
LONGEST_WORD: Final = 40
PIECE: Final = re.compile(r"\w+|[^\w\s]")


def _is_boxed(text: str) -> float:
    """1 if the last closed `\\boxed{}` is not blank; 0.5 for another `\\boxed`, else 0."""
    if (last_boxed(text) or "").strip():
        return 1.0
    return 0.5 if "\\boxed" in text else 0.0


def _has_tags(text: str) -> float:
    """1 for `<think>`, then `<answer>`, and nothing else; otherwise the share of the four tags that
    occur once and in order, at most 0.75."""
    parts = TAGS.fullmatch(text)
    if parts is not None and all(map(str.strip, parts.groups())):
        return 1.0
    places = [text.find(tag) for tag in TAG_NAMES if text.count(tag) == 1]
    return min(0.75, _longest_rise(places) / len(TAG_NAMES))


def _longest_rise(places: Sequence[int]) -> int:
    """Length of the longest increasing subsequence."""
    longest: list[int] = []
    for at, value in enumerate(places):
        before = (longest[other] for other in range(at) if places[other] < value)
        longest.append(1 + max(before, default=0))
    return max(longest, default=0)


def _has_verdicts(text: str) -> float:
    """1 for `step 1: right` etc. and then `final: correct`; otherwise the share of valid lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return 0.0
    in_order = 0
    for line in lines:
        step = STEP.match(line)
        in_order += step is not None and int(step[1]) == in_order + 1
    is_closed = VERDICT.match(lines[-1]) is not None
    return (in_order + is_closed) / max(len(lines), 2) if in_order else 0.5 * is_closed


def _has_question(text: str) -> float:
    """1 for exactly one `<question>` that is not blank; 0.5 if one of its two tags is missing."""
    asked = QUESTION.findall(text)
    if len(asked) == 1 and asked[0].strip() and all(text.count(tag) == 1 for tag in QUESTION_TAGS):
        return 1.0
    return 0.5 if ("<question>" in text) != ("</question>" in text) else 0.0


SHAPES: Final[Mapping[str, Callable[[str], float]]] = {
    "sum": lambda text: float(SUM.fullmatch(text) is not None),
    "number": lambda text: float(NUMBER.fullmatch(text) is not None),
    "boxed": _is_boxed,
    "tags": _has_tags,
    "verdict_per_step": _has_verdicts,
    "question_tag": _has_question,
}
"""By name: how well a text has this form, from 0 to 1."""


@by_text
def format_(text: str, _: ScoringRow, given: options.Format) -> Score:
    """`right` for a matching text, else `wrong`; `graded` interpolates by how well it matches."""
    share = _share(text, given)
    share = share if given.graded else float(share == 1.0)
    return given.wrong + (given.right - given.wrong) * share


def _share(text: str, given: options.Format) -> float:
    if given.shape is not None:
        return SHAPES[given.shape](text)
    assert given.pattern is not None
    try:
        return float(pattern(given.pattern).is_in(text))
    except PatternTimeout as late:
        raise DataError(f"format: {late}") from None


@by_text
def regex(text: str, _: ScoringRow, given: options.Regex) -> Score:
    """The number in the last match, mapped from `scale` to 0..1; 1 if the pattern has no groups.
    Without a match or a number, `on_no_match`."""
    compiled = pattern(given.pattern)
    try:
        value = compiled.last(text)
    except PatternTimeout as late:
        raise DataError(f"regex: {late}") from None
    if value is not None and compiled.groups == 0:
        return 1.0
    number = None if value is None else number_in(value, given.scale)
    return given.on_no_match if number is None else number


@by_row
def length(row: ScoringRow, given: options.Length) -> Score:
    """1 up to `min` tokens, 0 from `max`, linear or half cosine in between."""
    share = min(1.0, max(0.0, (tokens_of(row) - given.min) / (given.max - given.min)))
    return 0.5 * (1.0 + math.cos(math.pi * share)) if given.shape == "cosine" else 1.0 - share


@by_row
def overlong(row: ScoringRow, given: options.Overlong) -> Score:
    """min(-(L - (max - buffer)) / buffer * factor, 0), as in DAPO (arXiv 2503.14476)."""
    over = tokens_of(row) - (given.max - given.buffer)
    return min(-over / given.buffer * given.factor, 0.0) + 0.0


@by_text
def ngram_repetition(text: str, _: ScoringRow, given: options.NgramRepetition) -> Score:
    """-factor * (1 - distinct n-grams / n-grams), over words, or over characters in scripts without
    spaces; 0 for texts shorter than n."""
    words = _words(text)
    count = len(words) - given.size + 1
    if count < 1:
        return 0.0
    different = {tuple(words[start : start + given.size]) for start in range(count)}
    return -given.factor * (1.0 - len(different) / count) + 0.0


def _words(text: str) -> list[str]:
    """Words of a text; single characters in scripts without spaces. Long words are split."""
    words: list[str] = []
    for run in UNSPACED.sub(r" \g<0> ", text).split():
        if len(run) <= LONGEST_WORD:
            words.append(run)
            continue
        for piece in PIECE.findall(run):
            words += [piece] if len(piece) <= LONGEST_WORD else piece
    return words
