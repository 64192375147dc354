"""Generation for a node of any kind: asks the workers of the node's weights for completions and
makes them rows, children of the rows that the prompts are about.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from string import Template
from typing import Any

from coloop.algorithms.batch import Prompt
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table, Tokens
from coloop.runtime.roles.generation.conversations import (
    ConversationResult,
    Conversations,
    tool_measures,
    turn_measures,
)
from coloop.runtime.roles.generation.policy_tool import (
    measures_beside,
    policies_of,
    rollout_measures,
    tables_beside,
)
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.scored import check_tokens
from coloop.runtime.roles.rows.texts import prompts_of, rollout_row, sampling_of, tools_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of, turns_of
from coloop.spec.rollout import OnSync, Rollout
from coloop.workers.messages import Begun, PromptRequest, Reply, TooLong


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPrompt:
    """A prompt, and the row that it is about."""

    row: Row
    """The parent of the completions."""
    prompt: Prompt
    number: int = 0
    """Number of this prompt among those about the row."""
    prompts: int = 1
    """Number of prompts about the row."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of each completion."""
    begun: Begun | None = None
    """A prefix to continue; None: completions begin after the prompt."""
    seeds: tuple[int, ...] = ()
    """Seeds of its completions, one for each; empty: derived from the step."""


Texts = list[tuple[Tokens, ConversationResult]] | TooLong
"""The completions of a prompt with the results of their conversations, or why it was refused."""
Take = Callable[[Sequence[tuple[int, Texts]]], None]
"""Called with completions, by index of their prompt, while others are still being generated."""


class Writer:
    """Generates texts for a node's rows and returns them as child rows."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.fits = prompts_of(node)

    def close(self) -> None:
        """End connections that the writer has opened."""

    def run(self, row_prompts: Sequence[RowPrompt], call: Call) -> Outcome:
        """The rollouts of these prompts, and their metrics. Completions of the first prompts that
        `begin` has generated are taken from the call."""
        if not row_prompts:
            beside = tables_beside((), {}, policies_of(call.callees))
            return Outcome(outputs={"rollouts": Table()}, beside=beside)
        greedy_extra = self._rollout(call.context).greedy_extra and not call.is_probe
        columns = {"greedy": False} if greedy_extra else {}
        families: dict[int, list[Row]] = {}
        told: dict[str, ConversationResult] = {}

        def make(replies: Iterable[tuple[int, Texts]]) -> list[Row]:
            """Rows for completions that have none yet. `replies`: by index of their prompt."""
            made: list[Row] = []
            for place, texts in replies:
                if not isinstance(texts, TooLong) and place not in families:
                    first = self._first_k(row_prompts[place], call, greedy_extra)
                    families[place] = [
                        self._child(row_prompts[place], k, tokens, result, columns)
                        for k, (tokens, result) in enumerate(texts, first)
                    ]
                    made += families[place]
                    for child, (_, result) in zip(families[place], texts, strict=True):
                        told[child.id] = result
            return made

        early: list[Texts] = [texts for part in call.begun for texts in part]

        def hand_on(replies: Sequence[tuple[int, Texts]], before: int = len(early)) -> None:
            made = make((before + place, texts) for place, texts in replies)
            if made and call.hand_on is not None:
                call.hand_on(Table(rows=tuple(made)))

        hand_on([*enumerate(early)], before=0)
        rest = row_prompts[len(early) :]
        replies = [*early, *self.write(rest, call, hand_on if call.hand_on else None)]
        make(enumerate(replies))
        if greedy_extra:
            told |= self._add_greedy(row_prompts, families, call)
        metrics, alerts = self.fits.count(replies, is_probe=call.is_probe)
        children = tuple(child for place in sorted(families) for child in families[place])
        texts = [child.tokens for child in children if child.tokens]
        drawn = ((child.id, child.tokens.log_probs) for child in children if child.tokens)
        check_tokens(self._node, "log-probs", drawn)
        beside = tables_beside(
            children,
            {name: one.asked for name, one in told.items()},
            policies_of(call.callees),
        )
        said = [told[child.id] for child in children]
        return Outcome(
            outputs={"rollouts": Table(rows=children)},
            samples=len(children),
            tokens=sum(len(text.token_ids) for text in texts),
            metrics={**metrics, **self._measured(texts, said, call.context)},
            member_metrics={**tool_measures(said), **measures_beside(beside)},
            beside=beside,
            alerts=alerts,
        )

    def write(
        self, row_prompts: Sequence[RowPrompt], call: Call, hand_on: Take | None = None
    ) -> list[Texts]:
        """The completions that the step needs for these prompts."""
        heat = 0.0 if call.greedy else call.temperature
        return self._draw(row_prompts, call, self._count(call), heat, hand_on)

    def write_on(
        self,
        row_prompts: Sequence[RowPrompt],
        call: Call,
        stop: Sequence[str] = (),
        temperature: float | None = None,
    ) -> list[Texts]:
        """A completion for each of the prompts' own seeds. `stop`: stop texts besides those of the
        node; `temperature`: instead of the node's."""
        return self._draw(row_prompts, call, 0, temperature, stop=stop)

    def _rollout(self, context: Context) -> Rollout:
        rollout = rollout_of(context.spec, self._node)
        assert rollout is not None
        return rollout

    def _count(self, call: Call) -> int:
        own = self._rollout(call.context).completions_per_prompt
        return 1 if call.greedy or call.is_line else (call.samples or own)

    def _first_k(self, row_prompt: RowPrompt, call: Call, greedy_extra: bool) -> int:
        """Index of a prompt's first completion among all children of the row. In each turn the
        children of all nodes begin at the same index, however many each generates, so that they can
        be joined."""
        each = self._count(call) + greedy_extra
        widest = max(_places_of_a_prompt(call.context.spec), call.samples or 0) * row_prompt.prompts
        return (call.turn - 1) * widest + row_prompt.number * each

    def _add_greedy(
        self, row_prompts: Sequence[RowPrompt], families: dict[int, list[Row]], call: Call
    ) -> dict[str, ConversationResult]:
        """Add a greedy completion of each prompt, without a group."""
        indices = sorted(families)
        told: dict[str, ConversationResult] = {}
        written = self._draw([row_prompts[index] for index in indices], call, 1, 0.0)
        for index, texts in zip(indices, written, strict=True):
            assert not isinstance(texts, TooLong)
            k = self._first_k(row_prompts[index], call, True) + self._count(call)
            for tokens, result in texts:
                child = self._child(row_prompts[index], k, tokens, result, {"greedy": True})
                families[index].append(replace(child, group=None))
                told[child.id] = result
        return told

    def _draw(
        self,
        row_prompts: Sequence[RowPrompt],
        call: Call,
        count: int,
        temperature: float | None,
        hand_on: Take | None = None,
        stop: Sequence[str] = (),
    ) -> list[Texts]:
        if not row_prompts:
            return []
        rollout, context = self._rollout(call.context), call.context
        requests = [self._request(row_prompt, call, count, rollout) for row_prompt in row_prompts]
        on_sync = self._on_sync(context)
        sampling = sampling_of(rollout, temperature=temperature, on_sync=on_sync, stop=stop)
        conversations = Conversations(
            self._node, call, row_prompts, [row_prompt.number * count for row_prompt in row_prompts]
        )

        def take(replies: Sequence[tuple[int, Reply]]) -> None:
            assert hand_on is not None
            hand_on([(place, _written(place, reply, conversations)) for place, reply in replies])

        with closing(conversations):
            replies = context.hosts.generate(
                context.groups[self._node],
                self._node,
                requests,
                conversations.sampling(sampling),
                take if hand_on is not None else None,
                conversations.answer if turns_of(context.spec, self._node) else None,
            )
            return [_written(place, reply, conversations) for place, reply in enumerate(replies)]

    def _request(
        self, row_prompt: RowPrompt, call: Call, count: int, rollout: Rollout
    ) -> PromptRequest:
        """A prompt with the seeds of its completions, and their scripts."""
        numbers = range(row_prompt.number * count, (row_prompt.number + 1) * count)
        seeds = row_prompt.seeds or self._seeds(row_prompt, numbers, call)
        return PromptRequest(
            id=row_prompt.row.id,
            prompt=row_prompt.prompt,
            tools=tools_of(row_prompt.row),
            seeds=seeds,
            scripts=scripts_of(rollout.script, row_prompt.row, seeds),
            begun=row_prompt.begun,
        )

    def _seeds(self, row_prompt: RowPrompt, numbers: Iterable[int], call: Call) -> tuple[int, ...]:
        """Seeds of the completions about a row with these numbers."""
        return tuple(
            derive_seed(call.context.seed, self._node, call.salt, call.step, row_prompt.row.id, k)
            for k in numbers
        )

    def _on_sync(self, context: Context) -> OnSync:
        """What happens to unfinished texts at a sync; a synchronous loop has none then."""
        is_ahead = context.spec.schedule.max_staleness > 0
        return self._rollout(context).on_sync if is_ahead else "finish"

    def _child(
        self,
        row_prompt: RowPrompt,
        k: int,
        tokens: Tokens,
        result: ConversationResult,
        extra: Mapping[str, object],
    ) -> Row:
        columns = {**result.columns, **row_prompt.columns, **extra}
        child = rollout_row(self._node, row_prompt.row, k, tokens, row_prompt.prompt, columns)
        return child.with_exact(result.earned) if result.earned else child

    def _measured(
        self, texts: Sequence[Tokens], told: Sequence[ConversationResult], context: Context
    ) -> dict[str, float]:
        if not texts:
            return {}
        measured = rollout_measures(texts)
        if self._on_sync(context) == "resume":
            measured["rollout/mixed"] = sum(bool(text.switches) for text in texts) / len(texts)
        if turns_of(context.spec, self._node) is not None:
            heard = sum(text.heard for text in texts)
            measured |= {"turns/tokens": heard / len(texts), **turn_measures(told)}
        return measured


def _places_of_a_prompt(spec: LoopSpec) -> int:
    """The most completions that any node generates for one prompt in one turn."""
    rollouts = (rollout_of(spec, node) for node in spec.nodes)
    return max(
        rollout.completions_per_prompt + rollout.greedy_extra
        for rollout in rollouts
        if rollout is not None
    )


def _written(place: int, reply: Reply, conversations: Conversations) -> Texts:
    """The completions of a prompt with the results of their conversations."""
    if isinstance(reply, TooLong):
        return reply
    return [(text, conversations.told(place, k)) for k, text in enumerate(reply)]


# Fixed completions in place of sampled ones: `rollout.script`, for rehearsals.


def scripts_of(lines: Sequence[str], row: Row, seeds: Sequence[int]) -> tuple[str | None, ...]:
    """The fixed text of each completion of a row, or None for a sampled one; empty without lines.
    The seed of a completion chooses. Lines with placeholders that the row cannot fill are left
    out."""
    if not lines:
        return ()
    scripts = [*(text for line in lines if (text := _filled(line, row)) is not None), None]
    return tuple(scripts[seed % len(scripts)] for seed in seeds)


def _filled(line: str, row: Row) -> str | None:
    known = {name: value for name, value in row.columns.items() if value is not None}
    try:
        return Template(line).substitute(known) or None
    except (KeyError, ValueError):
        return None
