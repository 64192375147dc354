"""Numbers from verdicts, as the judge's `read` says: the values of its words, or the probability of
its first label where a label was generated.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from coloop.algorithms.batch import Choice, Prompt, Text
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.patterns import PatternTimeout
from coloop.data.prompting import ParsedVerdict, Words, numbers_in, rubric_verdict, words_in
from coloop.data.rewards.user_code import score_instead
from coloop.data.tables import Row
from coloop.errors import DataError
from coloop.runtime.roles.generation.asking import ANSWERS, FAILED
from coloop.runtime.roles.generation.writer import RowPrompt
from coloop.runtime.roles.protocol import Context
from coloop.runtime.roles.rows.texts import as_read
from coloop.runtime.roles.verifiers.judge import (
    SWAPPED,
    finished,
    opposite,
    read_range,
    reduced,
    section_of,
)
from coloop.spec.nodes import VerifierNode
from coloop.spec.reading import Criterion, Read
from coloop.workers.messages import TooLong

UNREAD = "parse/none"
"""Metric: the share of answers without a verdict."""
SOUGHT = ("verdict", "step_verdicts", "number", "numbers", "labels", "json_path", "rubric")
"""Fields of `read` that look for something in a text."""


def weighs_labels(section: VerifierNode) -> bool:
    """Whether a judge's scores are probabilities of its first label."""
    return section.rollout is None or section.read.score == "probability"


def criteria_apart(read: Read) -> Sequence[Criterion | None]:
    """The criteria that are asked about one by one; a single None if there are none."""
    return read.rubric if read.rubric is not None and read.ask == "one_by_one" else (None,)


def read_verdicts(
    node: str,
    verdicts: Sequence[Row],
    steps: Sequence[int | None],
    things: Sequence[int | None],
    context: Context,
) -> list[ParsedVerdict]:
    """The numbers in each verdict.

    Args:
        steps: number of steps of each judged text; None: unknown.
        things: number of things that each verdict is about; None: one.
    """
    section = section_of(node, context)
    texts = [
        (str(row.columns["completion"]), section.read, count)
        for row, count in zip(verdicts, steps, strict=True)
    ]
    try:
        if weighs_labels(section):
            return _weighed(node, verdicts, [words_in(*text) for text in texts], context)
        return [
            rubric_in(row.columns[ANSWERS], section.read)
            if ANSWERS in row.columns
            else numbers_in(*text, count)
            for row, text, count in zip(verdicts, texts, things, strict=True)
        ]
    except PatternTimeout as late:
        raise DataError(f"{node}: read: {late}", node, "read") from None


def why_unread(read: Read, text: str) -> dict[str, str]:
    """The reason for `UNREAD`: the field that looks for a verdict, and a text in which it finds
    none."""
    fields = (name for name in SOUGHT if getattr(read, name) is not None)
    field = next(fields, None)
    if field is None:
        return {}
    sought, key = getattr(read, field), "json" if field == "json_path" else field
    pattern = f" ({sought[:80]})" if isinstance(sought, str) else ""
    return {UNREAD: f"`read.{key}`{pattern} finds nothing in {repr(text)[:80]}"}


def rubric_in(answers: Mapping[str, str], read: Read) -> ParsedVerdict:
    """The verdict by answers about single criteria, by their names."""
    found = {name: numbers_in(text, read).whole for name, text in answers.items()}
    return rubric_verdict({name: s for name, s in found.items() if s is not None}, read)


def parts_of(names: Sequence[str], said: Sequence[ParsedVerdict]) -> dict[str, dict[str, float]]:
    """By criterion and row, the scores of a rubric. `names`: the row of each verdict."""
    parts: dict[str, dict[str, float]] = {}
    for row, one in zip(names, said, strict=True):
        for name, score in one.criteria.items():
            parts.setdefault(name, {})[row] = score
    return parts


def measured_parts(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Metrics: the mean score of each criterion."""
    return {f"rubric/{name}": fmean(scores.values()) for name, scores in parts.items()}


def score_of(row: Row, said: ParsedVerdict, section: VerifierNode) -> float | None:
    """The score of a verdict; for a swapped pair, mirrored to be about `chosen`."""
    if FAILED in row.columns:
        return score_instead(section.on_error)
    read, number = section.read, said.whole
    is_by_steps = read.verdict is None and read.number is None and read.json_path is None
    if is_by_steps and number is None:
        number = reduced(said.steps.values(), read)
    if number is None:
        return read.on_no_match
    if row.columns.get(SWAPPED):
        number = opposite(number, read_range(read, by_label=weighs_labels(section)))
    score = finished(number, read)
    assert isinstance(score, float)
    return score


def _weighed(
    node: str, verdicts: Sequence[Row], words: Sequence[Words], context: Context
) -> list[ParsedVerdict]:
    """Probabilities of the first label at the positions of the written labels."""
    asked: list[tuple[int, int | None, int]] = []  # verdict, step or None, place in its text
    for number, one in enumerate(words):
        if one.whole is not None:
            asked.append((number, None, one.whole.start))
        asked += [(number, step, part.start) for step, part in sorted(one.steps.items())]
    labels = section_of(node, context).read.labels or ()
    texts = [
        as_read(verdicts[number], choice=Choice(words=labels, field=FIELD, at=start))
        for number, _, start in asked
    ]
    wholes: dict[int, float] = {}
    steps: dict[int, dict[int, float]] = {}
    for (number, step, _), chance in zip(asked, _chances(node, texts, context), strict=True):
        if isinstance(chance, TooLong):
            continue
        if step is None:
            wholes[number] = chance
        else:
            steps.setdefault(number, {})[step] = chance
    return [
        ParsedVerdict(whole=wholes.get(n), steps=steps.get(n, {})) for n in range(len(verdicts))
    ]


# Probability of a judge's first label, among its labels only.

FIELD = "read.labels"


def label_chances(
    node: str, row_prompts: Sequence[RowPrompt], context: Context
) -> list[float | TooLong]:
    """The probability of the first label right after each prompt."""
    labels = section_of(node, context).read.labels or ()
    texts = [asked_labels(own.row.id, own.prompt, labels) for own in row_prompts]
    return _chances(node, texts, context)


def asked_labels(name: str, prompt: Prompt, labels: tuple[str, ...]) -> TokenSequence:
    """A sequence with this id in which a judge chooses one of its labels after the prompt."""
    choice = Choice(words=labels, field=FIELD)
    return TokenSequence(id=name, text=Text(prompt=prompt, target=""), choice=choice)


def first_share(log_probs: Numbers) -> float:
    """p₀ / Σ p, from log-probs."""
    wide = np.asarray(log_probs, dtype=np.float64)
    shares = np.exp(wide - wide.max())
    return float(shares[0] / shares.sum())


def _chances(node: str, texts: Sequence[TokenSequence], context: Context) -> list[float | TooLong]:
    if not texts:
        return []
    replies = context.hosts.score(context.groups[node], node, texts, 1.0, "choices")
    return [own if isinstance(own, TooLong) else first_share(own) for own in replies]
