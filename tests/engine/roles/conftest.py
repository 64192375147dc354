"""Roles over tables: loops written as data, run stage by stage, with writers of a script."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers, numbers_of
from coloop.data.distributions import Distribution, Teacher, Words
from coloop.data.tables import Row, Table, Tokens
from coloop.plan.compile import compile_plan
from coloop.plan.stages import Step, Unrolling
from coloop.runtime.checkpoints.side_files import SideFiles
from coloop.runtime.evaluations import Probes
from coloop.runtime.roles import build_group_roles, build_roles
from coloop.runtime.roles.protocol import Context, Outcome
from coloop.runtime.schedule.calls import Calls, StepContext, Unrolled
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.scheduler import Lanes, Scheduler, T
from coloop.runtime.schedule.window import Window
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import Reading
from coloop.spec.io import from_dict
from coloop.spec.lineage import compute_lineage
from coloop.workers.messages import (
    Answer,
    HandOn,
    LearnReply,
    LearnRequest,
    PromptRequest,
    Reply,
    Sampling,
)

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
ACTOR = {"kind": "actor", "model": MODEL, "rollout": {"completions_per_prompt": 2}}


class InlineLanes:
    """One stage after another in the caller's own thread, in the order in which they are given."""

    def room(self, lane: str | None) -> int:
        del lane
        return 1

    def submit(self, lane: str | None, work: Callable[[], T]) -> Future[T]:
        del lane
        future: Future[T] = Future()
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception | SystemExit):
                raise
        return future

    def wait(
        self, works: Collection["Future[T]"], seconds: float, /
    ) -> tuple[set[Future[T]], set[Future[T]]]:
        del seconds
        return set(works), set()

    def close(self) -> None: ...


VOCABULARY = 128


class ScriptedHosts:
    """Stands where the weights would be: texts by a script, log-probs by a rule."""

    def __init__(self) -> None:
        self.write: Callable[[str, int], str] = lambda prompt, k: f"{prompt}{'abcdefgh'[k]}"
        self.writer = ""
        self.is_finished: Callable[[int], bool] = lambda k: True
        self.choose: Callable[[TokenSequence], list[float]] = lambda text: [0.0, 0.0]
        self.orders: list[LearnRequest] = []
        self.samplings: list[Sampling] = []
        self.seeds: list[tuple[int, ...]] = []

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Answer | None = None,
    ) -> list[Reply]:
        self.samplings.append(sampling)
        self.seeds += [request.seeds for request in requests]
        version = self.version(group)
        replies: list[Reply] = []
        for place, request in enumerate(requests):
            written = (
                self._written(str(request.prompt), k, sampling) for k in range(len(request.seeds))
            )
            replies.append([replace(one, version=version) for one in written])
            if hand_on is not None:
                hand_on([(place, replies[-1])])
        return replies

    def version(self, group: str) -> int:
        """Updates of a group so far."""
        return sum(order.group == group for order in self.orders)

    def _written(self, prompt: str, k: int, sampling: Sampling) -> Tokens:
        text = self.write(prompt, k)
        return Tokens(
            prompt_ids=[ord(sign) for sign in prompt],
            token_ids=[ord(sign) for sign in text],
            loss_mask=[True] * len(text),
            log_probs=[-0.5] * len(text),
            temperature=sampling.temperature or 1.0,
            writer=self.writer,
            text=text,
            finished=self.is_finished(k),
        )

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers]:
        if reading == "choices":
            return [numbers_of(self.choose(one)) for one in texts]
        if reading == "scores":
            return [numbers_of([0.1 * len(one.token_ids)]) for one in texts]
        return [np.full(len(one.token_ids) - one.prompt_length, -0.25) for one in texts]

    def distributions(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        words: Words,
    ) -> list[Teacher]:
        """The same words, equally likely, at each trained token."""
        told = []
        for text in texts:
            size, k = int(text.loss_mask.sum()), words.k or VOCABULARY
            ids = None if words.k is None else np.tile(np.arange(k, dtype=np.int32), (size, 1))
            log_probs = np.full((size, k), -np.log(k), np.float32)
            own = np.full(size, -0.25, np.float32)
            distribution = Distribution(log_probs=log_probs, ids=ids)
            told.append(Teacher(node=node, weight=1.0, log_probs=own, words=distribution))
        return told

    def score_pairs(self, group: str, node: str, pairs: Sequence[Pair]) -> list[dict[str, Numbers]]:
        sides = {"chosen": numbers_of([-0.1]), "rejected": numbers_of([-0.2])}
        return [sides for _ in pairs]

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        return [self._ends("".join(map(chr, ids)), separator) for ids in token_ids]

    def _ends(self, text: str, separator: str) -> list[int]:
        places = [place for place, sign in enumerate(text) if sign == separator]
        return [*places, len(text) - 1]

    def learn(self, order: LearnRequest) -> LearnReply:
        self.orders.append(order)
        return self._reply(order)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        return self._reply(order)

    def sync(self, group: str) -> Mapping[str, float]:
        return {}

    def with_tick(self, tick: Callable[[Any], bool]) -> "ScriptedHosts":
        return self

    def _reply(self, order: LearnRequest) -> LearnReply:
        items = sum(map(len, order.items.values()))
        metrics = {node: {"loss": float(len(own))} for (node, _), own in order.items.items()}
        version = self.version(order.group)
        return LearnReply(metrics=metrics, version=version, before=version, samples=items, tokens=0)


@pytest.fixture
def through_files(tmp_path: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A role's state as a resumed run reads it."""

    def write_and_read(state: Mapping[str, Any]) -> dict[str, Any]:
        plain, files = SideFiles().put(state, tmp_path, 1)
        manifest = {
            "state": plain,
            "files": {name: mark.size for name, mark in files.items()},
            "hashes": {name: mark.sha256 for name, mark in files.items()},
        }
        read: dict[str, Any] = SideFiles().take(json.loads(json.dumps(manifest)), tmp_path)["state"]
        return read

    return write_and_read


class Bench:
    """One loop whose stages are run by hand."""

    def __init__(self, spec: LoopSpec, root: Path, lanes: Lanes | None = None) -> None:
        self.spec = spec
        self.lineage = compute_lineage(spec)[0]
        self.plan = compile_plan(spec)
        self.hosts = ScriptedHosts()
        self.context = Context(
            spec=spec,
            lineage=self.lineage,
            groups={node: group.name for group in self.plan.weights for node in group.members},
            hosts=self.hosts,
            root=root,
            seed=spec.run.seed,
        )
        self.roles = build_roles(self.context)
        self.groups = build_group_roles(self.context, self.plan)
        self.outcomes: dict[str, Outcome] = {}
        self.alerts: list[tuple[str, str]] = []
        edges = {edge.key: edge for edge in spec.edges}
        calls = Calls(edges, self.roles, self.groups, lambda key, rows: self.delivered(key, rows))
        self.scheduler = Scheduler(calls, lanes or InlineLanes(), self, Window())

    def stand(self, **changes: Any) -> None:
        """The loop as it is from now on: another spec, other hosts."""
        self.context = replace(self.context, **changes)

    stop_is_wanted = False

    def stage_started(self, work: Work) -> None: ...

    def stage_finished(self, work: Work, outcome: Outcome) -> None:
        self.outcomes[work.stage.name] = outcome
        self.alerts += list(outcome.alerts)

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        assert isinstance(error, Exception)
        return error

    def ticked(self, at_work: Sequence[Work]) -> None: ...

    def delivered(self, edge: str, rows: int) -> None: ...

    def noticed(self, flight: StepInFlight, node: str, code: str, message: str) -> None:
        self.alerts.append((code, message))

    def step(self, number: int = 1, phase: str | None = None, **options: Any) -> Unrolled:
        """One step of a phase: the first, or the one named."""
        planned = self.plan.phases[0] if phase is None else self.plan.phase(phase)
        live = frozenset(tuple(port.split(".")) for port in planned.learn)
        step_context = StepContext(
            step=number, phase=planned.name, context=self.context, live=live, **options
        )
        return self.scheduler.run(Step.of(planned), step_context)

    def give(self, port: str, number: int = 1, **options: Any) -> Table:
        """What one output port gives, with all that it needs."""
        node, _, name = port.partition(".")
        unrolling = Unrolling(
            self.spec,
            self.lineage,
            serves=lambda node, port: frozenset(),
            pool_of=lambda node, verb: None,
            groups=self.context.groups,
        )
        stages = unrolling.sources_of([(node, name)])
        step_context = StepContext(step=number, phase="test", context=self.context, **options)
        return self.scheduler.run(Step(stages=stages), step_context).tables[node, name]

    def probe(self, name: str, number: int = 0) -> dict[str, float]:
        """One reading of an evaluation with rows of its own."""
        probes = Probes(self.plan, {name: self.roles[name]})  # type: ignore[dict-item]
        [plan] = [one for one in self.plan.probes if one.node == name]
        step_context = StepContext(step=number, phase="test", context=self.context)
        return probes.read(plan, self.scheduler, step_context, lambda edge, rows: None)

    def items(self, port: str = "rewards") -> tuple[Any, ...]:
        """What the last update brought at a teaching port."""
        [items] = [own for (_, at), own in self.hosts.orders[-1].items.items() if at == port]
        return items

    def close(self) -> None:
        for role in self.roles.values():
            close = getattr(role, "close", None)
            if close is not None:
                close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """A loop of nodes and edges; what it started is ended with the test."""
    benches: list[Bench] = []

    def build(
        nodes: Mapping[str, Any],
        edges: Sequence[Any],
        schedule: Mapping[str, Any] | None = None,
        lanes: Lanes | None = None,
    ) -> Bench:
        parsed = from_dict(
            {
                "coloop": 1,
                "name": "small",
                "nodes": dict(nodes),
                "edges": list(edges),
                "schedule": schedule or {"steps": 9},
                "hardware": {"preset": "cpu"},
            }
        )
        assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
        benches.append(Bench(parsed.spec, tmp_path, lanes))
        return benches[-1]

    yield build
    for one in benches:
        one.close()


@pytest.fixture
def rows_of() -> Callable[..., dict[str, Any]]:
    """A dataset of given rows in their order."""

    def make(*rows: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        source = {"type": "inline", "rows": [dict(row) for row in rows]}
        return {"kind": "dataset", "source": source, "shuffle": False, **fields}

    return make


@pytest.fixture
def actor() -> Callable[..., dict[str, Any]]:
    """A writer of two completions a prompt."""
    return lambda **fields: {**ACTOR, **fields}


@pytest.fixture
def column() -> Callable[..., list[Any]]:
    """One column of a table's rows."""

    def values(rows: Table | Sequence[Row], name: str) -> list[Any]:
        return [row.column(name) for row in (rows.rows if isinstance(rows, Table) else rows)]

    return values


@pytest.fixture
def scores() -> Callable[[Table], list[Any]]:
    """Scores of a table in the order of its rows."""
    return lambda table: [(table.scores or {}).get(row.id, "absent") for row in table.rows]
