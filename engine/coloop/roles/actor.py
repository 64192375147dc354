"""Any policy that writes. `generate` asks the host of its weights for completions and makes rows of
them; `credit` turns the scores at `rewards` into what its algorithm learns from, and trains
nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coloop.hosts.messages import PromptRequest, Sampling, TooLong
from coloop.roles.credit import credit_rewards
from coloop.roles.fits import prompts_of
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.texts import prompt_of
from coloop.seeds import derive_seed
from coloop.spec.base import as_tuple
from coloop.spec.nodes import ActorNode
from coloop.tables import Row, Table, Tokens, concat_rows
from coloop.tables.row import child_row


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
        count = 1 if call.greedy else (call.samples or rollout.completions_per_prompt)
        heat = 0.0 if call.greedy else call.temperature
        replies, version = self._draw(rows, call, count, heat)
        refused = [reply for reply in replies if isinstance(reply, TooLong)]
        metrics, alerts = self._fits.count(refused, len(rows), is_probe=call.is_probe)
        rows = tuple(
            row for row, reply in zip(rows, replies, strict=True) if not isinstance(reply, TooLong)
        )
        if not rows:
            return Outcome(outputs={"rollouts": Table()}, metrics=metrics, alerts=alerts)
        drawn = _written(replies)
        best = _written(self._draw(rows, call, 1, 0.0)[0]) if greedy_extra else [[] for _ in rows]
        first = (call.turn - 1) * (count + greedy_extra)
        children: list[Row] = []
        for row, texts, extra in zip(rows, drawn, best, strict=True):
            for k, written in enumerate(texts, first):
                columns = {"greedy": False} if greedy_extra else {}
                children.append(self._child(row, k, written, version, columns))
            for written in extra:
                child = self._child(row, first + count, written, version, {"greedy": True})
                children.append(replace(child, group=None))
        tokens = sum(len(child.tokens.token_ids) for child in children if child.tokens)
        finished = sum(bool(child.columns["finished"]) for child in children)
        return Outcome(
            outputs={"rollouts": Table(rows=tuple(children))},
            samples=len(children),
            tokens=tokens,
            metrics={
                **metrics,
                "rollout/tokens": tokens,
                "rollout/length": tokens / len(children),
                "rollout/finished": finished / len(children),
            },
            alerts=alerts,
        )

    def _draw(
        self, rows: tuple[Row, ...], call: Call, count: int, temperature: float | None
    ) -> tuple[list[list[Tokens] | TooLong], int]:
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
        )
        return context.hosts.generate(context.groups[self._node], self._node, requests, sampling)

    def _child(
        self, row: Row, k: int, written: Tokens, version: int, extra: Mapping[str, object]
    ) -> Row:
        columns = {
            "completion": written.text,
            "length": len(written.token_ids),
            "finished": written.finished,
            **extra,
        }
        child = child_row(self._node, row, k, columns, tokens=written, version=version)
        prompt = f"{self._node}.prompt"
        return replace(child, scoped={**child.scoped, prompt: row.columns["prompt"]})

    def state(self) -> dict[str, Any]:
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fits.load_state(state)


def _written(replies: Sequence[list[Tokens] | TooLong]) -> list[list[Tokens]]:
    """What was written to the prompts that fit."""
    return [reply for reply in replies if not isinstance(reply, TooLong)]
