"""Any policy that writes. `generate` asks the host of its weights for completions and makes rows of
them; `credit` turns the scores at `rewards` into what its algorithm learns from, and trains
nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coloop.hosts.messages import HandOn, PromptRequest, Reply, Sampling, TooLong
from coloop.roles.credit import credit_rewards
from coloop.roles.fits import prompts_of
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.texts import prompt_of
from coloop.seeds import derive_seed
from coloop.spec.base import as_tuple
from coloop.spec.nodes import ActorNode
from coloop.spec.rollout import OnSync
from coloop.tables import Row, Table, Tokens, concat_rows
from coloop.tables.row import child_row

ROUNDING = 1e-9
"""So that 0.29 of 100 prompts are 29."""


class ActorRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._fits = prompts_of(node)

    def _section(self, context: Context) -> ActorNode:
        section = context.spec.nodes[self._node]
        assert isinstance(section, ActorNode)
        return section

    def run(self, call: Call) -> Outcome:
        match call.verb:
            case "generate":
                return self._generate(call)
            case "credit":
                return credit_rewards(self._node, call.context, call)
        raise AssertionError(call.verb)

    def _generate(self, call: Call) -> Outcome:
        rows = concat_rows(call.tables("prompts"))
        if not rows:
            return Outcome(outputs={"rollouts": Table()})
        rollout = self._section(call.context).rollout
        greedy_extra = rollout.greedy_extra and not call.is_probe
        count = self._count(call)
        first = (call.turn - 1) * (count + greedy_extra)
        columns = {"greedy": False} if greedy_extra else {}
        families: dict[int, list[Row]] = {}

        def make(replies: Iterable[tuple[int, Reply]]) -> list[Row]:
            """Children for replies that have none yet, by the places of their prompts."""
            made: list[Row] = []
            for place, reply in replies:
                if not isinstance(reply, TooLong) and place not in families:
                    families[place] = [
                        self._child(rows[place], k, written, columns)
                        for k, written in enumerate(reply, first)
                    ]
                    made += families[place]
            return made

        early: list[Reply] = [reply for part in call.begun for reply in part]

        def hand_on(replies: Sequence[tuple[int, Reply]], before: int = len(early)) -> None:
            made = make((before + place, reply) for place, reply in replies)
            if made and call.hand_on is not None:
                call.hand_on(Table(rows=tuple(made)))

        hand_on([*enumerate(early)], before=0)
        rest = rows[len(early) :]
        replies = [*early, *self._write(rest, call, hand_on if call.hand_on else None)]
        make(enumerate(replies))
        refused = [reply for reply in replies if isinstance(reply, TooLong)]
        metrics, alerts = self._fits.count(refused, len(rows), is_probe=call.is_probe)
        if not families:
            return Outcome(outputs={"rollouts": Table()}, metrics=metrics, alerts=alerts)
        if greedy_extra:
            self._add_greedy(rows, families, call, first + count)
        children = tuple(child for place in sorted(families) for child in families[place])
        texts = [child.tokens for child in children if child.tokens]
        tokens = sum(len(text.token_ids) for text in texts)
        metrics = {
            **metrics,
            "rollout/tokens": tokens,
            "rollout/length": tokens / len(children),
            "rollout/finished": sum(text.finished for text in texts) / len(children),
        }
        if self._on_sync(call.context) == "resume":
            metrics["rollout/mixed"] = sum(bool(text.switches) for text in texts) / len(children)
        return Outcome(
            outputs={"rollouts": Table(rows=children)},
            samples=len(children),
            tokens=tokens,
            metrics=metrics,
            alerts=alerts,
        )

    def begin(self, call: Call) -> list[Reply]:
        """Write for the first prompts; `run` writes for the others."""
        rows = concat_rows(call.tables("prompts"))
        return self._write(rows[: math.floor(call.share * len(rows) + ROUNDING)], call)

    def _count(self, call: Call) -> int:
        """Completions for a prompt."""
        own = self._section(call.context).rollout.completions_per_prompt
        return 1 if call.greedy else (call.samples or own)

    def _write(self, rows: Sequence[Row], call: Call, hand_on: HandOn | None = None) -> list[Reply]:
        """What the step asks for, for these prompts."""
        heat = 0.0 if call.greedy else call.temperature
        return self._draw(rows, call, self._count(call), heat, hand_on) if rows else []

    def _add_greedy(
        self, rows: Sequence[Row], families: dict[int, list[Row]], call: Call, k: int
    ) -> None:
        """One more child each, of the likeliest tokens; it counts in no group."""
        places = sorted(families)
        for place, reply in zip(
            places, self._draw([rows[place] for place in places], call, 1, 0.0), strict=True
        ):
            assert not isinstance(reply, TooLong)
            for written in reply:
                child = self._child(rows[place], k, written, {"greedy": True})
                families[place].append(replace(child, group=None))

    def _draw(
        self,
        rows: Sequence[Row],
        call: Call,
        count: int,
        temperature: float | None,
        hand_on: HandOn | None = None,
    ) -> list[Reply]:
        rollout, context = self._section(call.context).rollout, call.context
        requests = [
            PromptRequest(
                id=row.id,
                prompt=prompt_of(row, self._node),
                seeds=tuple(
                    derive_seed(context.seed, self._node, call.salt, call.step, row.id, k)
                    for k in range(count)
                ),
            )
            for row in rows
        ]
        sampling = Sampling(
            max_new_tokens=rollout.max_new_tokens,
            temperature=rollout.temperature if temperature is None else temperature,
            top_p=rollout.top_p,
            top_k=rollout.top_k,
            stop=as_tuple(rollout.stop),
            on_sync=self._on_sync(context),
        )
        group = context.groups[self._node]
        return context.hosts.generate(group, self._node, requests, sampling, hand_on)

    def _on_sync(self, context: Context) -> OnSync:
        """What becomes of unfinished texts; in a synchronous loop no weights come meanwhile."""
        is_ahead = context.spec.schedule.max_staleness > 0
        return self._section(context).rollout.on_sync if is_ahead else "finish"

    def _child(self, row: Row, k: int, written: Tokens, extra: Mapping[str, object]) -> Row:
        columns = {
            "completion": written.text,
            "length": len(written.token_ids),
            "finished": written.finished,
            **extra,
        }
        return child_row(
            self._node,
            row,
            k,
            columns,
            tokens=written,
            version=written.version,
            prompt=row.columns["prompt"],
        )

    def state(self) -> dict[str, Any]:
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fits.load_state(state)
