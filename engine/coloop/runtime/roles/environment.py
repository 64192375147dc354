"""Episodes in an environment: policies act in turns, and every turn becomes a row of the policy
that wrote it.

    reset ──► prompt of the player ──► its policy writes ──► step ──► the next player's prompt ...
                                                              └─ rewards, end

All episodes of a step go on together: each wave has one call of every policy whose turn it is, and
one step of every episode. A row keeps the tokens as they were sampled. Its score is what its player
earned from there to the end, discounted by its own turns.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from coloop.algorithms.batch import Prompt
from coloop.data.chats import chat_problem, joined_parts
from coloop.data.prompting import PromptProgram
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table, Tokens
from coloop.data.template import TemplateRow
from coloop.data.tools.instances import Reset, Step, UserEnvironment
from coloop.data.tools.protocol import ToolFailure
from coloop.data.tools.turns import Turn, opening_of, turn_of
from coloop.errors import UserCodeError
from coloop.runtime.roles.actor import ActorRole
from coloop.runtime.roles.generation.conversations import PLAIN, SILENT
from coloop.runtime.roles.generation.policy_tool import rollout_measures
from coloop.runtime.roles.generation.writer import RowPrompt
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import joined_rows
from coloop.runtime.roles.rows.outside import environment_of
from coloop.runtime.roles.rows.scored import check_tokens, scored_outcome
from coloop.runtime.roles.rows.texts import rollout_row
from coloop.spec.nodes import EnvironmentNode
from coloop.spec.reading import PromptTemplate
from coloop.workers.messages import TooLong

MOST_CHILDREN: Final = 2**20
"""Most turns of a row in one run of the stage; those of the next begin after them."""


@dataclass(slots=True, kw_only=True)
class Written:
    """A turn that a policy has written."""

    seat: int
    policy: str
    prompt: Prompt
    tokens: Tokens
    turn: Turn
    """What the player saw."""
    action: str
    is_invalid: bool = False
    earned: dict[str, float] = field(default_factory=dict)
    """What the player earned from here to its next turn."""


@dataclass(slots=True, kw_only=True, eq=False)
class Episode:
    name: str
    row: Row
    number: int
    policies: Sequence[str]
    """By seat."""
    now: Turn | None = None
    written: list[Written] = field(default_factory=list)
    is_over: bool = False
    was_cut: bool = False
    failure: str | None = None
    reason: str = ""

    def note(self, turn: Turn) -> None:
        """Take over a state, and what the players earned by it."""
        for seat, numbers in turn.rewards.items():
            last = next((one for one in reversed(self.written) if one.seat == seat), None)
            if last is not None:
                for name, number in numbers.items():
                    last.earned[name] = last.earned.get(name, 0.0) + number
        self.now, self.is_over, self.reason = turn, turn.is_done, turn.reason

    def fail(self, reason: str) -> None:
        self.failure, self.is_over = reason, True

    def returns(self, reward: str, discount: float) -> list[float]:
        """For each turn, the discounted sum of what its player earned from there on."""
        later: dict[int, float] = defaultdict(float)
        found: list[float] = []
        for one in reversed(self.written):
            later[one.seat] = one.earned.get(reward, 0.0) + discount * later[one.seat]
            found.append(later[one.seat])
        return found[::-1]

    def total(self, policy: str, reward: str) -> float:
        return sum(one.earned.get(reward, 0.0) for one in self.written if one.policy == policy)


class EnvironmentRole(NodeRole[EnvironmentNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        section = self._section(context)
        self._policies = [
            edge.source.node for edge in context.spec.graph.edges_into(node, "policy")
        ]
        self._players = section.players or len(self._policies)
        self._environment: UserEnvironment = environment_of(
            node, section.source, self._players, context
        )
        self._environment.check()
        action = None if section.action is None else PromptTemplate(text=section.action)
        self._program, self._action_program = (
            None
            if template is None
            else PromptProgram.from_template(template, node=node, text_field=field_name)
            for field_name, template in (
                ("template.text", section.template),
                ("action", action),
            )
        )
        self._count = 0
        """Episodes so far, whose numbers are the names of instances."""

    def run(self, call: Call) -> Outcome:
        section = self._section(call.context)
        rows = joined_rows(self._node, call.context, call.delivered("rows"))
        each = 1 if call.greedy or call.is_line else call.samples or section.episodes
        episodes = [self._begun(row, k, section) for row in rows for k in range(each)]
        too_long: list[TooLong] = []
        try:
            self._reset(episodes, call)
            while active := [one for one in episodes if not one.is_over]:
                call.tick(len(episodes) - len(active), len(episodes))
                self._wave(active, section, call, too_long)
        finally:
            for episode in episodes:
                self._environment.forget(episode.name)
        self._check_failures(episodes, section)
        return self._outcome(rows, episodes, section, call, too_long)

    def take_printed(self) -> str:
        return self._environment.take_printed()

    def close(self) -> None:
        self._environment.close()
        super().close()

    def _begun(self, row: Row, number: int, section: EnvironmentNode) -> Episode:
        self._count += 1
        shift = number if section.seats == "in_turn" else 0
        count = len(self._policies)
        policies = [self._policies[(seat + shift) % count] for seat in range(self._players)]
        return Episode(name=f"{self._count}", row=row, number=number, policies=policies)

    def _seed(self, episode: Episode, call: Call, *names: Any) -> int:
        context = call.context
        own = (context.seed, self._node, call.salt, call.step, episode.row.id)
        return derive_seed(*own, *names)

    def _reset(self, episodes: Sequence[Episode], call: Call) -> None:
        """Begin the episodes, all of a row with the same seed."""
        asked = [
            Reset(name=one.name, row=_plain(one.row), seed=self._seed(one, call))
            for one in episodes
        ]
        results = self._environment.reset_many(asked, call.tick)
        for episode, result in zip(episodes, results, strict=True):
            try:
                if isinstance(result, ToolFailure):
                    raise result
                self._note(episode, opening_of(result))
            except ToolFailure as failure:
                episode.fail(f"`reset` of row {episode.row.id}: {failure}")

    def _note(self, episode: Episode, turn: Turn) -> None:
        """Raises ToolFailure for a seat that nobody has."""
        if turn.seat >= len(episode.policies) and not turn.is_done:
            raise ToolFailure(
                f"it is the turn of the player at seat {turn.seat}, but there are "
                f"{len(episode.policies)} players: set `players`"
            )
        episode.note(turn)

    def _wave(
        self,
        active: Sequence[Episode],
        section: EnvironmentNode,
        call: Call,
        too_long: list[TooLong],
    ) -> None:
        """One turn of every active episode."""
        by_policy: dict[str, list[Episode]] = {}
        for episode in active:
            assert episode.now is not None
            by_policy.setdefault(episode.policies[episode.now.seat], []).append(episode)
        acted: list[Episode] = []
        for policy in self._policies:
            acted += self._write(policy, by_policy.pop(policy, []), call, too_long)
        asked = [
            Step(
                name=one.name,
                text=one.written[-1].action,
                seed=self._seed(one, call, one.number, len(one.written)),
            )
            for one in acted
        ]
        results = self._environment.step_many(asked, call.tick)
        for episode, result in zip(acted, results, strict=True):
            last = episode.written[-1]
            try:
                if isinstance(result, ToolFailure):
                    raise result
                turn = turn_of(result, last.seat)
                last.is_invalid = turn.is_invalid
                self._note(episode, turn)
            except ToolFailure as failure:
                number = len(episode.written)
                episode.fail(f"`step` {number} from row {episode.row.id}: {failure}")
            if len(episode.written) >= section.max_turns and not episode.is_over:
                episode.is_over = episode.was_cut = True

    def _write(
        self,
        policy: str,
        episodes: Sequence[Episode],
        call: Call,
        too_long: list[TooLong],
    ) -> list[Episode]:
        """Let a policy write its turns; returns the episodes in which it did."""
        if not episodes:
            return []
        writer = call.callees[policy]
        assert isinstance(writer, ActorRole)
        prompts = [self._prompt(episode) for episode in episodes]
        row_prompts = [
            RowPrompt(
                row=_with_tools(episode),
                prompt=prompt,
                seeds=(self._seed(episode, call, "text", episode.number, len(episode.written)),),
            )
            for episode, prompt in zip(episodes, prompts, strict=True)
        ]
        heat = 0.0 if call.greedy else call.temperature
        texts = writer.writer.write_on(row_prompts, call, temperature=heat)
        acted = []
        for episode, prompt, reply in zip(episodes, prompts, texts, strict=True):
            if isinstance(reply, TooLong):
                too_long.append(reply)
                episode.is_over = episode.was_cut = True
                continue
            [(tokens, _)] = reply
            assert episode.now is not None
            action = self._action(episode, tokens.text)
            episode.written.append(
                Written(
                    seat=episode.now.seat,
                    policy=policy,
                    prompt=prompt,
                    tokens=tokens,
                    turn=episode.now,
                    action=action,
                )
            )
            acted.append(episode)
        return acted

    def _prompt(self, episode: Episode) -> Prompt:
        assert episode.now is not None
        if self._program is not None:
            return self._program.prompt([_shown(episode)], 0, columns=_names(episode))
        prompt: Prompt = joined_parts(episode.now.observation)
        wrong = None if isinstance(prompt, str) else chat_problem(prompt)
        if wrong is not None:
            at = f"{self._node}: the observation of row {episode.row.id}"
            raise UserCodeError(f"{at} {wrong}, found {prompt!r:.80}", self._node)
        return prompt

    def _action(self, episode: Episode, text: str) -> str:
        if self._action_program is None:
            return text
        names = {**_names(episode), "completion": text}
        return str(self._action_program.prompt([_shown(episode)], 0, columns=names))

    def _check_failures(self, episodes: Sequence[Episode], section: EnvironmentNode) -> None:
        """Raises `UserCodeError` if the environment failed and that stops the run."""
        failed = [one for one in episodes if one.failure is not None]
        if failed and (section.on_error == "stop" or len(failed) == len(episodes)):
            more = f" ({len(failed)} of {len(episodes)} episodes failed)" if len(failed) > 1 else ""
            raise UserCodeError(f"{self._node}: {failed[0].failure}{more}", self._node)

    def _outcome(
        self,
        rows: Sequence[Row],
        episodes: Sequence[Episode],
        section: EnvironmentNode,
        call: Call,
        too_long: Sequence[TooLong],
    ) -> Outcome:
        by_row: dict[str, int] = defaultdict(lambda: (call.turn - 1) * MOST_CHILDREN)
        turns: list[Row] = []
        scores: list[float] = []
        whole = [one for one in episodes if one.failure is None]
        for episode in whole:
            returns = episode.returns(section.reward, section.discount)
            for number, (one, earned) in enumerate(zip(episode.written, returns, strict=True)):
                k = by_row[episode.row.id]
                by_row[episode.row.id] += 1
                turns.append(self._turn_row(episode, number, one, k))
                scores.append(earned)
        drawn = ((row.id, row.tokens.log_probs) for row in turns if row.tokens)
        check_tokens(self._node, "log-probs", drawn)
        scored = scored_outcome(self._node, turns, scores)
        metrics, alerts = self._too_long(too_long, len(turns), call)
        texts = {
            policy: [row.tokens for row in turns if row.writer == policy and row.tokens]
            for policy in self._policies
        }
        return Outcome(
            outputs={
                "scores": scored.outputs["scores"],
                "rollouts": Table(rows=scored.outputs["scores"].rows),
            },
            samples=len(turns),
            tokens=sum(len(row.tokens.token_ids) for row in turns if row.tokens),
            metrics={**metrics, **self._measures(episodes, whole, section)},
            member_metrics={name: rollout_measures(own) for name, own in texts.items() if own},
            alerts=[*alerts, *self._alerts(episodes)],
            printed=self.take_printed(),
        )

    def _turn_row(self, episode: Episode, number: int, one: Written, k: int) -> Row:
        columns = {
            **SILENT.columns,
            "prompt": one.prompt,
            "seat": one.seat,
            "turn": number,
            "episode": episode.number,
            "observation": one.turn.observation,
            "action": one.action,
            "invalid": one.is_invalid,
            "reason": episode.reason,
        }
        row = rollout_row(self._node, episode.row, k, one.tokens, one.prompt, columns)
        return replace(row.with_exact(self._exact(one)), writer=one.policy)

    def _exact(self, one: Written) -> dict[str, Any]:
        shown = {f"{self._node}.{name}": value for name, value in one.turn.shown.items()}
        earned = {f"{self._node}.{name}": number for name, number in one.earned.items()}
        return {**shown, **earned}

    def _too_long(
        self, too_long: Sequence[TooLong], turns: int, call: Call
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        if not too_long:
            return {}, []
        writer = call.callees[self._policies[0]]
        assert isinstance(writer, ActorRole)
        rows = turns + len(too_long)
        return writer.writer.fits.count(too_long, rows, is_probe=call.is_probe)

    def _measures(
        self, episodes: Sequence[Episode], whole: Sequence[Episode], section: EnvironmentNode
    ) -> dict[str, float]:
        if not episodes:
            return {}
        measures = {"episode/failed": (len(episodes) - len(whole)) / len(episodes)}
        if not whole:
            return measures
        written = [one for episode in whole for one in episode.written]
        measures["episode/turns"] = len(written) / len(whole)
        measures["episode/cut"] = fmean(one.was_cut for one in whole)
        if written:
            measures["episode/invalid"] = fmean(one.is_invalid for one in written)
        for policy in dict.fromkeys(self._policies):
            own = [one.total(policy, section.reward) for one in whole if policy in one.policies]
            if own:
                measures[f"episode/reward/{policy}"] = fmean(own)
        return measures

    def _alerts(self, episodes: Sequence[Episode]) -> list[tuple[str, str]]:
        failed = [one.failure for one in episodes if one.failure is not None]
        if not failed:
            return []
        message = f"{self._node}: {len(failed)} of {len(episodes)} episodes failed: {failed[0]}"
        return [("environment.failed", message)]


def _plain(row: Row) -> Mapping[str, Any]:
    return {name: value for name, value in row.columns.items() if isinstance(value, PLAIN)}


def _shown(episode: Episode) -> TemplateRow:
    return TemplateRow(columns=episode.row.columns, scoped=episode.row.scoped)


def _names(episode: Episode) -> dict[str, Any]:
    """What a template can show of a turn, besides the columns of the row."""
    turn = episode.now
    assert turn is not None
    return {
        **turn.shown,
        "observation": turn.observation,
        "seat": turn.seat,
        "turn": len(episode.written),
    }


def _with_tools(episode: Episode) -> Row:
    """The row with the functions that the environment offers, if it does."""
    turn = episode.now
    assert turn is not None
    return (
        episode.row
        if not turn.tools
        else replace(episode.row, columns={**episode.row.columns, "tools": turn.tools})
    )
