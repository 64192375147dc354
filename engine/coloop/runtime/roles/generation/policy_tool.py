"""A policy as a tool: another policy calls it while it generates.

    call ──► wrapped tool ──► parts of its answer ──pack──► chunks ──template──► prompts
    answer ◄── the policy's completions, in order

The completions are rows of the policy, children of the row that called. Of several completions of a
prompt the first is the answer; all of them are rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from coloop.algorithms.batch import Prompt
from coloop.data.prompting import PromptProgram
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table, Tokens
from coloop.data.template import TemplateRow
from coloop.data.tools.calls import worded
from coloop.data.tools.protocol import Answered, Session, Tick, ToolFailure
from coloop.errors import UserCodeError
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.rows.texts import rollout_row, sampling_of
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import ToolNode
from coloop.workers.messages import PromptRequest, TooLong

PORT: Final = "rollouts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt to a policy, and its completions."""

    tool: str
    policy: str
    prompt: Prompt
    texts: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTool:
    node: str
    section: ToolNode
    policy: str
    program: PromptProgram


@dataclass(eq=False)
class PolicySession:
    """The calls of a policy by one text."""

    tool: PolicyTool
    wrapped: tuple[ToolNode, Session] | None
    """The tool whose answers go into the prompts; None: only the arguments of the call."""
    call: Call
    name: str
    """Name of the calling text; part of the seeds."""
    asked: list[Asked] = field(default_factory=list, init=False)

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        chunks = [""]
        if self.wrapped is not None:
            section, session = self.wrapped
            answered = session.answer(arguments, tick)
            parts = answered.parts or (answered.value,)
            chunks = self._packed([worded(part, arguments, section) for part in parts])
        prompts = [self._prompt(chunk, arguments) for chunk in chunks]
        return Answered(value="\n".join(self._written(prompts)))

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        if self.wrapped is not None:
            self.wrapped[1].close()

    def _prompt(self, chunk: str, arguments: Mapping[str, str]) -> Prompt:
        row = TemplateRow(columns={**arguments, "value": chunk})
        try:
            return self.tool.program.prompt([row], 0)
        except UserCodeError as error:
            raise ToolFailure(str(error)) from None

    def _packed(self, texts: Sequence[str]) -> list[str]:
        """Texts joined into chunks of at most `pack.tokens`, or without `pack` into one."""
        pack, call = self.tool.section.pack, self.call
        if pack is None:
            return ["\n".join(texts)]
        policy = self.tool.policy
        group = call.context.groups[policy]
        sizes = call.context.hosts.lengths(group, policy, list(texts))
        bins = first_fit_decreasing(sizes, pack.tokens)
        return ["\n".join(texts[index] for index in own) for own in bins]

    def _written(self, prompts: Sequence[Prompt]) -> list[str]:
        """The policy's first completion of each prompt. Raises `ToolFailure` if a prompt is too
        long."""
        call, policy = self.call, self.tool.policy
        rollout = rollout_of(call.context.spec, policy)
        assert rollout is not None
        before = len(self.asked)
        names = (call.context.seed, policy, call.salt, call.step, self.tool.node, self.name)
        requests = [
            PromptRequest(
                id=f"{self.name}, call {number} of {self.tool.node}",
                prompt=prompt,
                seeds=tuple(
                    derive_seed(*names, number, k) for k in range(rollout.completions_per_prompt)
                ),
            )
            for number, prompt in enumerate(prompts, before)
        ]
        group = call.context.groups[policy]
        sampling = replace(sampling_of(rollout), is_beside=True)
        replies = call.context.hosts.generate(group, policy, requests, sampling)
        for prompt, reply in zip(prompts, replies, strict=True):
            if isinstance(reply, TooLong):
                told = (
                    f"{policy} would read {reply.tokens} tokens, but its context has {reply.limit}"
                )
                raise ToolFailure(told)
            self.asked.append(
                Asked(tool=self.tool.node, policy=policy, prompt=prompt, texts=tuple(reply))
            )
        return [answer.texts[0].text for answer in self.asked[before:]]


def first_fit_decreasing(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Indices of items in bins of size `room`: the largest first, each in the first bin with room.
    An item that is too large gets a bin of its own. Bins and their items are in order."""
    bins: list[list[int]] = []
    left: list[int] = []
    for index in sorted(range(len(sizes)), key=lambda item: (-sizes[item], item)):
        free = next((at for at, rest in enumerate(left) if sizes[index] <= rest), None)
        if free is None:
            bins.append([index])
            left.append(room - sizes[index])
        else:
            bins[free].append(index)
            left[free] -= sizes[index]
    return sorted(sorted(own) for own in bins)


def policies_of(callees: Mapping[str, object]) -> list[PolicyTool]:
    tools = (getattr(role, "tool", None) for role in callees.values())
    return [tool for tool in tools if isinstance(tool, PolicyTool)]


def tables_beside(
    rows: Sequence[Row], asked: Mapping[str, Sequence[Asked]], tools: Sequence[PolicyTool]
) -> dict[tuple[str, str], Table]:
    """Rows of the completions of called policies, by the ports of the policies and of their tools.
    `asked`: by id of the calling row, their parent. `tools`: all that may be called."""
    rows_of: dict[tuple[str, str], list[Row]] = {}
    for tool in tools:
        rows_of[tool.policy, PORT], rows_of[tool.node, PORT] = [], []
    for row in rows:
        places: Counter[str] = Counter()
        for answer in asked.get(row.id, ()):
            for text in answer.texts:
                child = _child(answer, text, row, places[answer.policy])
                places[answer.policy] += 1
                rows_of[answer.policy, PORT].append(child)
                rows_of[answer.tool, PORT].append(child)
    return {key: Table(rows=tuple(own)) for key, own in rows_of.items()}


def _child(asked: Asked, text: Tokens, parent: Row, k: int) -> Row:
    """A completion as a row; it is greedy, without a group, if its parent is."""
    columns: dict[str, Any] = {"turns": 1, "tool_calls": [], "tool_outputs": []}
    if parent.is_greedy:
        columns["greedy"] = True
    row = rollout_row(asked.policy, parent, k, text, asked.prompt, columns)
    return replace(row, group=None) if parent.is_greedy else row


def measures_beside(tables: Mapping[tuple[str, str], Table]) -> dict[str, dict[str, float]]:
    measures: dict[str, dict[str, float]] = {}
    for (node, _), table in tables.items():
        texts = [row.tokens for row in table.rows if row.writer == node and row.tokens]
        if texts:
            measures[node] = rollout_measures(texts)
    return measures


def rollout_measures(texts: Sequence[Tokens]) -> dict[str, float]:
    """Metrics of at least one text: generated tokens, mean length, and the share that finished."""
    tokens = sum(len(text.token_ids) - text.heard for text in texts)
    return {
        "rollout/tokens": float(tokens),
        "rollout/length": tokens / len(texts),
        "rollout/finished": sum(text.finished for text in texts) / len(texts),
    }
