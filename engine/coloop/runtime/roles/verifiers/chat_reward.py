"""Scores of rows by a chat model: a reward with `source: {type: chat}`.

    rows ── template ──> questions ── chat model ──> answers ── read ──> scores of the rows

A judge that generates (`engine: chat` of a verifier) has rows of its own for its verdicts; here an
answer is only a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coloop.data.patterns import PatternTimeout
from coloop.data.prompting import ParsedVerdict, numbers_in
from coloop.data.rewards.user_code import OnError, RowFailure, score_instead
from coloop.data.seeds import derive_seed
from coloop.data.services.chat import Answer, Question
from coloop.data.tables import Row, Score
from coloop.errors import DataError, ServiceFailed
from coloop.runtime.roles.generation.asking import SEEDS, Asker, Replies, failures_of, messages_of
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.template import prompts_over
from coloop.runtime.roles.verifiers.judge import finished, score_range
from coloop.runtime.roles.verifiers.taught import names_asked, things_of
from coloop.runtime.roles.verifiers.verdicts import (
    UNREAD,
    criteria_apart,
    measured_parts,
    parts_of,
    rubric_in,
    why_unread,
)
from coloop.spec.answers import answer_schema
from coloop.spec.nodes import RewardNode
from coloop.spec.reading import Read
from coloop.spec.reward import ChatSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatScores:
    """By row, or with `per: row` a list with a number for each row gathered."""

    scores: Sequence[float | list[float | None] | None]
    score_range: tuple[float, float] | None
    failures: Sequence[RowFailure] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By metric, the cause of an abnormal value."""
    alerts: Sequence[tuple[str, str]] = ()
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By criterion and row, the scores of a rubric."""


def chat_scores(
    node: str,
    section: RewardNode,
    asker: Asker,
    rows: Sequence[Row],
    incoming: Sequence[Mapping[str, Score]],
    call: Call,
) -> ChatScores:
    """Raises ServiceFailed for the first failed request with `on_error: stop`."""
    source, read, on_error = section.source, section.read, section.on_error
    assert isinstance(source, ChatSource)
    assert read is not None
    names = ["" if one is None else one.name for one in criteria_apart(read)]
    questions = _questions(node, section, source, read, rows, incoming, call)
    replies = asker.ask(questions, source, on_error, call)
    by_row = [
        dict(zip(names, replies.answers[index :: len(rows)], strict=True))
        for index in range(len(rows))
    ]
    said = [
        _read(node, own, read, things_of(row, section.per))
        for row, own in zip(rows, by_row, strict=True)
    ]
    parts = parts_of([row.id for row in rows], [one or ParsedVerdict() for one in said])
    unread = [
        own for own, one in zip(by_row, said, strict=True) if one is not None and not one.is_read
    ]
    return ChatScores(
        scores=[
            _score(one, read, on_error, things_of(row, section.per))
            for row, one in zip(rows, said, strict=True)
        ],
        score_range=score_range(read, by_label=False),
        failures=_failures(node, replies, len(rows)),
        metrics={
            **replies.metrics,
            **({UNREAD: len(unread) / len(rows)} if rows else {}),
            **measured_parts(parts),
        },
        reasons=why_unread(read, _text_of(unread[0])) if unread else {},
        alerts=replies.alerts,
        parts=parts,
    )


def _questions(
    node: str,
    section: RewardNode,
    source: ChatSource,
    read: Read,
    rows: Sequence[Row],
    incoming: Sequence[Mapping[str, Score]],
    call: Call,
) -> list[Question]:
    """The questions about all rows, criterion by criterion."""
    assert section.template is not None
    prompts = prompts_over(node, section.template, rows, incoming, call)
    questions = []
    for criterion in criteria_apart(read):
        for index, row in enumerate(rows):
            things = things_of(row, section.per)
            shown = names_asked(read, things, criterion)
            seed = derive_seed(call.context.seed, node, call.salt, call.step, row.id)
            questions.append(
                Question(
                    messages=messages_of(prompts(index, columns=shown)),
                    temperature=source.temperature,
                    max_tokens=source.max_new_tokens,
                    seed=seed % SEEDS if source.temperature > 0 else None,
                    schema=source.answer_schema or answer_schema(read, things),
                )
            )
    return questions


def _read(
    node: str, said: Mapping[str, Answer | ServiceFailed], read: Read, things: int | None
) -> ParsedVerdict | None:
    """The verdict about a row; None if a request about it failed."""
    texts = {name: one.text for name, one in said.items() if isinstance(one, Answer)}
    if len(texts) < len(said):
        return None
    try:
        return numbers_in(texts[""], read, None, things) if "" in texts else rubric_in(texts, read)
    except PatternTimeout as late:
        raise DataError(f"{node}: read: {late}", node, "read") from None


def _text_of(said: Mapping[str, Answer | ServiceFailed]) -> str:
    """The answers about a row, one after another."""
    return " ".join(one.text for one in said.values() if isinstance(one, Answer))


def _score(
    said: ParsedVerdict | None, read: Read, on_error: OnError, things: int | None
) -> float | list[float | None] | None:
    missing = score_instead(on_error) if said is None else read.on_no_match
    if things is None:
        return _finished(None if said is None else said.whole, missing, read)
    numbers = {} if said is None else said.things
    return [_finished(numbers.get(place), missing, read) for place in range(things)]


def _finished(number: float | None, missing: float | None, read: Read) -> float | None:
    if number is None:
        return missing
    score = finished(number, read)
    assert isinstance(score, float)
    return score


def _failures(node: str, replies: Replies, count: int) -> list[RowFailure]:
    """The first failed request about each row."""
    rows = [index % count for index in range(len(replies.answers))]
    failures = {one.row: one for one in reversed(failures_of(node, replies.answers, rows))}
    return [failures[row] for row in sorted(failures)]
