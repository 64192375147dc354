"""The writer of a node: it asks the host of the node's weights for texts and makes rows of them,
children of the rows that they were written about. Whatever kind of node writes, writes with it.

It does not know why a text is wanted, nor what anybody reads in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.batch import Prompt
from coloop.hosts.messages import HandOn, PromptRequest, Reply, Sampling, TooLong
from coloop.roles.fits import prompts_of
from coloop.roles.protocol import Call, Context, Outcome
from coloop.roles.scripts import scripts_of
from coloop.seeds import derive_seed
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.homes import rollout_of
from coloop.spec.rollout import OnSync, Rollout
from coloop.tables import Row, Table, Tokens
from coloop.tables.row import child_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A prompt, and the row about which it is asked."""

    row: Row
    """What is written are its children."""
    prompt: Prompt
    number: int = 0
    """Of this prompt among those about the row."""
    prompts: int = 1
    """Prompts about the row."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Of each child, beside those of every rollout."""


class Writer:
    """See the module."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._fits = prompts_of(node)

    def run(self, asks: Sequence[Ask], call: Call) -> Outcome:
        """Rollouts to these prompts, with the metrics of what was written; those to which the node
        has begun to write are taken from the call."""
        if not asks:
            return Outcome(outputs={"rollouts": Table()})
        greedy_extra = self._rollout(call.context).greedy_extra and not call.is_probe
        columns = {"greedy": False} if greedy_extra else {}
        families: dict[int, list[Row]] = {}

        def make(replies: Iterable[tuple[int, Reply]]) -> list[Row]:
            """Children for replies that have none yet, by the places of their prompts."""
            made: list[Row] = []
            for place, reply in replies:
                if not isinstance(reply, TooLong) and place not in families:
                    first = self._first_k(asks[place], call, greedy_extra)
                    families[place] = [
                        self._child(asks[place], k, written, columns)
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
        rest = asks[len(early) :]
        replies = [*early, *self.write(rest, call, hand_on if call.hand_on else None)]
        make(enumerate(replies))
        if greedy_extra:
            self._add_greedy(asks, families, call)
        refused = [reply for reply in replies if isinstance(reply, TooLong)]
        metrics, alerts = self._fits.count(refused, len(asks), is_probe=call.is_probe)
        children = tuple(child for place in sorted(families) for child in families[place])
        texts = [child.tokens for child in children if child.tokens]
        return Outcome(
            outputs={"rollouts": Table(rows=children)},
            samples=len(children),
            tokens=sum(len(text.token_ids) for text in texts),
            metrics={**metrics, **self._measured(texts, call.context)},
            alerts=alerts,
        )

    def write(self, asks: Sequence[Ask], call: Call, hand_on: HandOn | None = None) -> list[Reply]:
        """What the step asks for, for these prompts."""
        heat = 0.0 if call.greedy else call.temperature
        return self._draw(asks, call, self._count(call), heat, hand_on) if asks else []

    def _rollout(self, context: Context) -> Rollout:
        rollout = rollout_of(context.spec, self._node)
        assert rollout is not None
        return rollout

    def _count(self, call: Call) -> int:
        """Completions for a prompt."""
        own = self._rollout(call.context).completions_per_prompt
        return 1 if call.greedy or call.is_line else (call.samples or own)

    def _first_k(self, ask: Ask, call: Call, greedy_extra: bool) -> int:
        """Place of a prompt's first completion among all children of the row. In each turn siblings
        of all writers begin at the same place, however many each writes, so that they meet."""
        each = self._count(call) + greedy_extra
        widest = max(_places_of_a_prompt(call.context.spec), call.samples or 0) * ask.prompts
        return (call.turn - 1) * widest + ask.number * each

    def _add_greedy(self, asks: Sequence[Ask], families: dict[int, list[Row]], call: Call) -> None:
        """One more child each, of the likeliest tokens; it counts in no group."""
        places = sorted(families)
        if not places:
            return
        for place, reply in zip(
            places, self._draw([asks[place] for place in places], call, 1, 0.0), strict=True
        ):
            assert not isinstance(reply, TooLong)
            k = self._first_k(asks[place], call, True) + self._count(call)
            for written in reply:
                child = self._child(asks[place], k, written, {"greedy": True})
                families[place].append(replace(child, group=None))

    def _draw(
        self,
        asks: Sequence[Ask],
        call: Call,
        count: int,
        temperature: float | None,
        hand_on: HandOn | None = None,
    ) -> list[Reply]:
        rollout, context = self._rollout(call.context), call.context
        requests = [
            PromptRequest(
                id=ask.row.id,
                prompt=ask.prompt,
                seeds=tuple(
                    derive_seed(context.seed, self._node, call.salt, call.step, ask.row.id, k)
                    for k in range(ask.number * count, (ask.number + 1) * count)
                ),
                scripts=scripts_of(rollout.script, ask.row, count, place * count + call.step),
            )
            for place, ask in enumerate(asks)
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
        return self._rollout(context).on_sync if is_ahead else "finish"

    def _child(self, ask: Ask, k: int, written: Tokens, extra: Mapping[str, object]) -> Row:
        columns = {
            "completion": written.text,
            "length": len(written.token_ids),
            "finished": written.finished,
            **ask.columns,
            **extra,
        }
        return child_row(
            self._node,
            ask.row,
            k,
            columns,
            tokens=written,
            version=written.version,
            prompt=ask.prompt,
        )

    def _measured(self, texts: Sequence[Tokens], context: Context) -> dict[str, float]:
        """Of the texts that were written; of none nothing."""
        if not texts:
            return {}
        tokens = sum(len(text.token_ids) for text in texts)
        found = {
            "rollout/tokens": float(tokens),
            "rollout/length": tokens / len(texts),
            "rollout/finished": sum(text.finished for text in texts) / len(texts),
        }
        if self._on_sync(context) == "resume":
            found["rollout/mixed"] = sum(bool(text.switches) for text in texts) / len(texts)
        return found

    def state(self) -> dict[str, Any]:
        """What an exact resume needs."""
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """What `state` gave."""
        self._fits.load_state(state)


def _places_of_a_prompt(spec: LoopSpec) -> int:
    """The most completions that any writer writes for one prompt in one turn."""
    found = (rollout_of(spec, node) for node in spec.nodes)
    return max(one.completions_per_prompt + one.greedy_extra for one in found if one is not None)
