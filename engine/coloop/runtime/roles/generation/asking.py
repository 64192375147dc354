"""Asks a chat model by URL for a node: verdicts as rows of a verifier, answers for a reward.

A request that fails is handled as the node's `on_error` says. Its metrics are those of the service:
requests, answers that were known, tokens, cost.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

from coloop.algorithms.batch import Prompt
from coloop.data.rewards.user_code import OnError, RowFailure
from coloop.data.services.chat import Answer, Chat, Counted, Question
from coloop.data.tables import Row, Table
from coloop.data.tables.row import child_row
from coloop.errors import ServiceFailed
from coloop.runtime.roles.generation.writer import RowPrompt, Writer
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.outside import chat_of
from coloop.spec.base import as_tuple
from coloop.spec.reward import ScoreAs
from coloop.spec.rollout import JudgeRollout
from coloop.spec.services import ChatService

FAILED: Final = "failed"
"""Column of a verdict whose request failed: the message."""
ANSWERS: Final = "answers"
"""Column of a verdict by several requests: the answer about each criterion, by name."""
SEEDS: Final = 2**31
"""Seeds are below it, as servers keep them in 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """Answers to the questions of one call, in their order, and what is told about them."""

    answers: Sequence[Answer | ServiceFailed]
    metrics: Mapping[str, float] = field(default_factory=dict)
    alerts: Sequence[tuple[str, str]] = ()
    is_over_cost: bool = False
    """Whether nothing is asked any more."""


class Asker:
    """The chat model of one node; it is called from the first question on."""

    def __init__(self, node: str, section: str) -> None:
        """`section`: path of the service's settings in the node, e.g. `rollout.chat`."""
        self._node = node
        self._section = section
        self._chat: Chat | None = None
        self._lock = threading.Lock()
        """Another node may call this one while its own stage runs."""
        self._has_told_cost = False

    def ask(
        self, questions: Sequence[Question], service: ChatService, on_error: OnError, call: Call
    ) -> Replies:
        """Raises ServiceFailed for the first failed request if `on_error` is `stop`."""
        chat = self._started(service, call.context)
        answers, counted = chat.ask(questions, until_failure=on_error == "stop", tick=call.tick)
        return Replies(
            answers=answers,
            metrics=_metrics(answers, counted, service, chat.total_cost),
            alerts=self._alerts(answers, chat),
            is_over_cost=chat.is_over_cost,
        )

    def close(self) -> None:
        if self._chat is not None:
            self._chat.close()
            self._chat = None

    def _started(self, service: ChatService, context: Context) -> Chat:
        with self._lock:
            if self._chat is None:
                self._chat = chat_of(self._node, self._section, service, context)
            return self._chat

    def _alerts(
        self, answers: Sequence[Answer | ServiceFailed], chat: Chat
    ) -> list[tuple[str, str]]:
        failed = [answer for answer in answers if isinstance(answer, ServiceFailed)]
        refusals = [one.refusal for one in answers if isinstance(one, Answer) and one.refusal]
        alerts = []
        if failed and chat.is_over_cost and not self._has_told_cost:
            alerts.append(("service.over_cost", str(failed[0])))
            self._has_told_cost = True
        if refusals and len(refusals) == len(answers):
            message = f"{self._node}: its model refuses every request; the first: {refusals[0]}"
            alerts.append(("service.refuses", message[:300]))
        return alerts


def _metrics(
    answers: Sequence[Answer | ServiceFailed],
    counted: Counted,
    service: ChatService,
    total_cost: float,
) -> dict[str, float]:
    metrics = {
        "service/requests": float(counted.asked + counted.failed),
        "service/cached": float(counted.cached),
        "service/failed": float(counted.failed),
        "service/prompt_tokens": float(counted.prompt_tokens),
        "service/completion_tokens": float(counted.completion_tokens),
        "service/seconds": counted.seconds,
    }
    given = [answer for answer in answers if isinstance(answer, Answer)]
    if given:
        metrics["service/cut"] = fmean(answer.is_cut for answer in given)
        metrics["service/refused"] = fmean(answer.refusal is not None for answer in given)
    if service.input_price is not None or service.output_price is not None:
        metrics["service/cost"] = service.cost(counted.prompt_tokens, counted.completion_tokens)
        metrics["service/total_cost"] = total_cost
    return metrics


def messages_of(prompt: Prompt) -> list[dict[str, Any]]:
    """A prompt as the messages of a chat."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [{"role": one["role"], "content": one["content"]} for one in prompt]


def failures_of(
    node: str, answers: Sequence[Answer | ServiceFailed], rows: Sequence[int]
) -> list[RowFailure]:
    """The failed requests as failures of rows. `rows`: index of each answer's row."""
    return [
        RowFailure(row=row, message=f"{node}, row {row}: {str(answer).removeprefix(f'{node}: ')}")
        for row, answer in zip(rows, answers, strict=True)
        if isinstance(answer, ServiceFailed)
    ]


class ChatWriter(Writer):
    """Verdicts of a chat model by URL as child rows, which have texts and no tokens."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self._asker = Asker(node, "rollout.chat")

    def run_chat(
        self,
        prompts: Mapping[str, Sequence[RowPrompt]],
        schemas: Sequence[Mapping[str, Any] | None],
        on_error: OnError,
        call: Call,
    ) -> Outcome:
        """The verdicts about rows.

        Args:
            prompts: by criterion, the prompts about the rows, in the same order for each; without
                criteria under an empty name. Each verdict has an answer to all of them.
            schemas: of the answers to the prompts of one criterion.
        """
        rollout = self._rollout(call.context)
        assert isinstance(rollout, JudgeRollout)
        assert rollout.chat is not None
        first = next(iter(prompts.values()))
        count = self._count(call)
        questions = [
            self._question(row_prompt, k, schema, rollout, call)
            for own in prompts.values()
            for row_prompt, schema in zip(own, schemas, strict=True)
            for k in range(count)
        ]
        replies = self._asker.ask(questions, rollout.chat, on_error, call)
        size = len(first) * count
        rows: list[Row] = []
        for index, row_prompt in enumerate(first):
            for k in range(count):
                at = index * count + k
                said = {
                    name: replies.answers[number * size + at] for number, name in enumerate(prompts)
                }
                row = self._verdict(row_prompt, k, said, on_error, call)
                rows += [] if row is None else [row]
        texts = [answer for answer in replies.answers if isinstance(answer, Answer)]
        failed = [answer for answer in replies.answers if isinstance(answer, ServiceFailed)]
        alerts = list(replies.alerts)
        if failed and not replies.is_over_cost:
            message = f"{len(failed)} of {len(questions)} requests failed; the first: {failed[0]}"
            alerts.append(("service.requests_failed", message))
        return Outcome(
            outputs={"rollouts": Table(rows=tuple(rows))},
            samples=len(rows),
            tokens=sum(answer.completion_tokens for answer in texts),
            metrics={**replies.metrics, **_lengths(rows)},
            alerts=alerts,
        )

    def close(self) -> None:
        self._asker.close()

    def _question(
        self,
        row_prompt: RowPrompt,
        k: int,
        schema: Mapping[str, Any] | None,
        rollout: JudgeRollout,
        call: Call,
    ) -> Question:
        temperature = rollout.temperature if call.temperature is None else call.temperature
        temperature = 0.0 if call.greedy else temperature
        [seed] = self._seeds(row_prompt, [row_prompt.number * self._count(call) + k], call)
        return Question(
            messages=messages_of(row_prompt.prompt),
            temperature=temperature,
            max_tokens=rollout.max_new_tokens,
            seed=seed % SEEDS if temperature > 0 else None,
            top_p=rollout.top_p,
            top_k=rollout.top_k,
            stop=as_tuple(rollout.stop),
            schema=schema,
        )

    def _verdict(
        self,
        row_prompt: RowPrompt,
        k: int,
        said: Mapping[str, Answer | ServiceFailed],
        on_error: OnError,
        call: Call,
    ) -> Row | None:
        """The verdict of one or several answers; None if a request failed and nothing stands for
        it."""
        failed = next((one for one in said.values() if isinstance(one, ServiceFailed)), None)
        columns: dict[str, Any] = dict(row_prompt.columns)
        if failed is not None:
            if not isinstance(on_error, ScoreAs):
                return None
            columns |= {"completion": "", "length": 0, "finished": False, FAILED: str(failed)}
        else:
            answers = {name: one for name, one in said.items() if isinstance(one, Answer)}
            columns |= {
                "completion": _joined({name: one.text for name, one in answers.items()}),
                "length": sum(one.completion_tokens for one in answers.values()),
                "finished": not any(one.is_cut for one in answers.values()),
            }
            if "" not in answers:
                columns[ANSWERS] = {name: one.text for name, one in answers.items()}
        k += self._first_k(row_prompt, call, greedy_extra=False)
        return child_row(self._node, row_prompt.row, k, columns, prompt=row_prompt.prompt)


def _lengths(verdicts: Sequence[Row]) -> dict[str, float]:
    """Metrics of verdicts: mean length, and the share that finished."""
    written = [row for row in verdicts if FAILED not in row.columns]
    if not written:
        return {}
    return {
        "rollout/length": fmean(row.columns["length"] for row in written),
        "rollout/finished": fmean(row.columns["finished"] for row in written),
    }


def _joined(texts: Mapping[str, str]) -> str:
    """The answers about several criteria, each below its name."""
    return "\n\n".join(f"{name}:\n{text}" if name else text for name, text in texts.items())
