"""Runs stages without weights on given tables, with the roles, calls and lineage of a run."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from coloop.data.arrays import Ids
from coloop.data.rewards.user_code import RowFailure
from coloop.data.tables import Table
from coloop.errors import ColoopError, UserCodeError
from coloop.models.build import build_outline, positions_of
from coloop.plan.types import Stage
from coloop.plan.unrolled import Unrolled as Steps
from coloop.runtime.roles import ROLES
from coloop.runtime.roles.protocol import Context, Outcome, Role
from coloop.runtime.schedule.calls import Calls, StepContext, Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of
from coloop.spec.lineage import Lineages
from coloop.spec.model import CopyModel, SharedModel, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.workers.encoder import Encoder


class NotHere(ColoopError):
    """Something that a preview does not do, and why."""

    code = "preview.not_here"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePreview:
    outcome: Outcome | None = None
    error: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    printed: str = ""
    is_left_out: bool = False
    """It was not run; its recorded result may be available."""

    @property
    def failures(self) -> Sequence[RowFailure]:
        return self.outcome.failures if self.outcome is not None else ()


class Tokenizers:
    """The tokenizer of each weights group, and the step separators of its texts."""

    def __init__(self, spec: LoopSpec, root: Path) -> None:
        self._spec = spec
        self._root = root
        self._known: dict[str, tuple[PreTrainedTokenizerFast, int | None]] = {}

    def of(self, node: str) -> PreTrainedTokenizerFast:
        return self._outline(node)[0]

    def positions(self, node: str) -> int | None:
        return self._outline(node)[1]

    def _outline(self, node: str) -> tuple[PreTrainedTokenizerFast, int | None]:
        owner = self._source(node)
        if owner not in self._known:
            section = model_of(self._spec.nodes[owner])
            assert section is not None
            loaded = build_outline(section, root=self._root)
            self._known[owner] = loaded.tokenizer, positions_of(loaded.model)
        return self._known[owner]

    def _source(self, node: str) -> str:
        """The node whose model section names the files."""
        seen: set[str] = set()
        while node not in seen and node in self._spec.nodes:
            seen.add(node)
            match model_of(self._spec.nodes[node]):
                case CopyModel(of=other) | SnapshotModel(of=other):
                    node = other
                case SharedModel(with_=other):
                    node = other
                case None:
                    break
                case _:
                    return node
        raise NotHere(f"{node} has no model whose tokenizer could be loaded")

    # The part of `WorkerGroup` that needs no weights.

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        encoder = Encoder(self.of(group), node=node)
        return [encoder.step_ends(ids, separator) for ids in token_ids]

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        encoder = Encoder(self.of(group), node=node)
        return [len(encoder.said(text)) for text in texts]


@dataclass(kw_only=True)
class Walk:
    spec: LoopSpec
    root: Path
    step: int = 0
    tables: Unrolled = field(default_factory=Unrolled)
    said: dict[str, StagePreview] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    """Nodes that were not run, and whose recorded results are used."""
    _roles: dict[str, Role] = field(default_factory=dict)

    @cached_property
    def tokenizers(self) -> Tokenizers:
        return Tokenizers(self.spec, self.root)

    @cached_property
    def context(self) -> Context:
        owners = {node: owner_of(self.spec, node) for node in self.spec.nodes}
        return Context(
            spec=self.spec,
            lineage=Lineages(self.spec).at({}),
            groups={node: owner for node, owner in owners.items() if owner is not None},
            hosts=self.tokenizers,  # type: ignore[arg-type]
            root=self.root,
            seed=self.spec.run.seed,
        )

    @cached_property
    def stages(self) -> Mapping[str, Stage]:
        """Every stage of the loop by name, in execution order."""
        stages: dict[str, Stage] = {}
        for phase in Steps(self.spec).phases:
            for stage in phase.step.stages:
                stages.setdefault(stage.name, stage)
        return stages

    def give(self, node: str, port: str, table: Table) -> None:
        self.tables.tables[node, port] = table

    def run(self, nodes: Iterable[str]) -> None:
        """Run each of these nodes once on the given rows; note why one cannot run."""
        wanted = set(nodes)
        try:
            for stage in self.stages.values():
                if stage.node in wanted and stage.verb in ("score", "prepare"):
                    self.said[stage.node] = self._do(stage)
        finally:
            for role in self._roles.values():
                close = getattr(role, "close", None)
                if close is not None:
                    close()

    def _do(self, stage: Stage) -> StagePreview:
        why = self._why_not(stage)
        if why is not None:
            return StagePreview(error=why, is_left_out=True)
        began, role = time.monotonic(), None
        try:
            role = self._role(stage.node)
            outcome = role.run(self._calls.of(stage, self._step_context, self.tables, _heard))
        except (ColoopError, TypeError, ValueError) as error:
            return StagePreview(
                error=str(error),
                traceback=error.traceback if isinstance(error, UserCodeError) else None,
                seconds=_since(began),
                printed="" if role is None else role.take_printed(),
            )
        self.tables.take(stage, outcome)
        return StagePreview(outcome=outcome, seconds=_since(began), printed=outcome.printed)

    def _why_not(self, stage: Stage) -> str | None:
        kind = self.spec.nodes[stage.node].kind
        if model_of(self.spec.nodes[stage.node]) is not None:
            return (
                "a model computes it: shown where a run, or a roll-out, recorded it for these rows"
            )
        if stage.calls:
            return (
                f"this {kind} calls {', '.join(stage.calls)} while it works, which only a run does"
            )
        missing = [
            edge.source.node
            for edge in (self._calls.edges[key] for key in stage.edges)
            if (edge.source.node, edge.source.port) not in self.tables.tables
        ]
        unsaid = [name for name in missing if name in self.said]
        if unsaid:
            return f"it reads what `{unsaid[0]}` says: {self.said[unsaid[0]].error}"
        if missing:
            return f"it reads what `{missing[0]}` gives, which exists only in a run"
        return None

    def _role(self, node: str) -> Role:
        if node not in self._roles:
            self._roles[node] = ROLES[self.spec.nodes[node].kind](node, self.context)
        return self._roles[node]

    @cached_property
    def _step_context(self) -> StepContext:
        return StepContext(step=self.step, phase=next(iter(self._phases), ""), context=self.context)

    @cached_property
    def _phases(self) -> list[str]:
        return [phase.name for phase in Steps(self.spec).phases]

    @cached_property
    def _calls(self) -> Calls:
        edges = {edge.key: edge for edge in self.spec.edges}
        return Calls(edges, self._roles, {}, lambda key, rows: None)

    def upstream(self, node: str, port: str) -> set[str]:
        """Nodes upstream of a port, up to those with given tables."""
        given = {name for name, _ in self.tables.tables}
        names: set[str] = set()
        waiting = [edge.source.node for edge in self.spec.graph.edges_into(node, port)]
        while waiting:
            name = waiting.pop()
            if name in names or name in given or name == node:
                continue
            names.add(name)
            waiting += [edge.source.node for edge in self.spec.graph.edges_into(name)]
        return names


def _heard(done: int = 0, total: int = 0) -> None:
    """Nothing to check: the process is ended from outside."""
    del done, total


def _since(began: float) -> float:
    return time.monotonic() - began


def as_json(value: Any) -> Any:
    """A value as JSON; what JSON lacks becomes text."""
    match value:
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case str() | bool() | int() | float() | None:
            return value
        case Mapping():
            return {str(name): as_json(item) for name, item in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
    return str(value)
