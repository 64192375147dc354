"""Where a single driver ends: whole runs on a simulated cluster whose hosts only sleep.

The driver is the real one: folder, events, scheduler, tables, lineage, credit, orders, calls to all
ranks of a pool. The ranks are simulated: a call is packed once, its bytes are copied as an object
store does, every rank answers with its part, and the driver unpacks what it hears. What a host
would do is a sleep of the seconds that the estimate prices it at, shortened alike for all, so that
stages overlap and poll as they would. Seconds are those of the processor: all of the driver's
process, less what the simulation spends on the hosts' behalf.
"""

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from tests.bench.carriage import carried
from tests.bench.results import Goal, Result, Table

from coloop.data.arrays import Numbers
from coloop.data.tables import Tokens
from coloop.plan.cost import estimate
from coloop.plan.types import Plan
from coloop.runtime import start
from coloop.spec.io import dump, from_dict
from coloop.workers.cluster.ranks import Cluster, Deadlines
from coloop.workers.generators import own_requests
from coloop.workers.messages import DRIVERS_WORD, LearnReply, LearnRequest, Poll, Sight
from coloop.workers.packing import Packed, pack, unpack
from coloop.workers.sync import WeightChecksum, WeightTransfer
from coloop.workers.training import Ranks
from coloop.workers.worker_api import is_heard

PROMPT_TOKENS = 256
POOLS = TRAIN, WRITE = "train", "write"
STEPS, WARM = 5, 2
SLEEP_MOST = 4.0
"""Seconds for which the longest stage sleeps; all are shortened by the same factor."""
MOST_SHARE = 0.03
MOST_BYTES = 4 * 2**30
POINTS = ((512, 2048, 8), (1024, 2048, 16), (2048, 2048, 32), (4096, 2048, 64), (8192, 2048, 64))
"""Rows of a step, tokens of each, ranks over both pools."""
ASKED = (4096, 2048, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One run."""

    driver_seconds: float
    """Of the processor, in one step."""
    step_seconds: float
    """Of the estimated step."""
    peak_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """For an answer that comes later."""

    ends: float
    packed: Packed | None


def wait(tickets: Sequence[Ticket], seconds: float) -> tuple[Sequence[Ticket], Sequence[Ticket]]:
    """Sleeps; all tickets of a call end at once."""
    left = tickets[0].ends - time.monotonic()
    time.sleep(min(max(left, 0.0), seconds))
    return ((), tickets) if left > seconds else (tickets, ())


class SleepingCrew:
    """Implements `Crew`: ranks that answer with numbers of the right shape, after a sleep."""

    def __init__(self, ranks: int, simulation: "Simulation") -> None:
        self._ranks = [Ranks(rank=rank, size=ranks) for rank in range(ranks)]
        self._simulation = simulation

    @property
    def size(self) -> int:
        return len(self._ranks)

    def address(self) -> str:
        return "127.0.0.1"

    def begin(self, method: str, arguments: tuple[Any, ...]) -> list[Ticket]:
        packed = pack(arguments)
        if method == "learn":
            self._simulation.note_order()
        ends = time.monotonic() + self._simulation.seconds.get(method, 0.0)
        with self._simulation.away():
            asked = unpack(carried(packed))
            return [
                Ticket(ends, carried(pack(self._simulation.answer(method, ranks, asked))))
                if is_heard(method, ranks.rank)
                else Ticket(ends, None)
                for ranks in self._ranks
            ]

    def answer(self, ticket: Ticket) -> Any:
        return None if ticket.packed is None else unpack(ticket.packed)

    def polls(self) -> list[Poll | None]:
        return [Poll(done=0, total=1, unit="rows", pid=1, rss_bytes=0) for _ in self._ranks]

    def interrupt(self) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


class Simulation:
    """What all hosts answer, and what that costs this process."""

    def __init__(self, seconds: dict[str, float], tokens: int) -> None:
        """
        Args:
            seconds: that a call of a method takes.
            tokens: of each text.
        """
        self.seconds = seconds
        self.spent: list[float] = []
        """The driver's seconds of the processor when each update was ordered."""
        self._tokens = tokens
        self._draw = np.random.default_rng(0)
        self._lock = threading.Lock()
        self._version = 0
        self._away_seconds = 0.0

    @contextmanager
    def away(self) -> Iterator[None]:
        """Around work of the hosts."""
        began = time.thread_time()
        yield
        with self._lock:
            self._away_seconds += time.thread_time() - began

    def note_order(self) -> None:
        """An update is ordered."""
        self.spent.append(time.process_time() - self._away_seconds)

    def answer(self, method: str, ranks: Ranks, asked: tuple[Any, ...]) -> Any:
        """What a rank answers."""
        match method:
            case "generate":
                _, _, requests, sampling = asked
                own = own_requests(requests, sampling.max_new_tokens, ranks)
                return [
                    [self._text() for _ in own[place].seeds] if place in own else []
                    for place in range(len(requests))
                ]
            case "score":
                return [self._numbers(len(one.token_ids) - one.prompt_length) for one in asked[2]]
            case "learn":
                return self._learned(asked[0])
            case "send" | "invite":
                transfer = WeightTransfer(
                    channel="local", version=self._version, place=[], size_bytes=0
                )
                return transfer, self._checksum()
            case "receive":
                return self._checksum()
            case "version":
                return self._version
            case "save":
                return {}
            case "see":
                return _seen(asked[0])
            case _:
                return method in ("can_use", "has_changed") or None

    def _text(self) -> Tokens:
        return Tokens(
            prompt_ids=np.arange(PROMPT_TOKENS, dtype=np.int32),
            token_ids=self._draw.integers(0, 150_000, self._tokens, dtype=np.int32),
            loss_mask=np.ones(self._tokens, dtype=np.bool_),
            log_probs=self._numbers(self._tokens),
            text="four" * self._draw.integers(1, self._tokens),
            version=self._version,
        )

    def _numbers(self, count: int) -> Numbers:
        return self._draw.standard_normal(count, dtype=np.float32)

    def _learned(self, order: LearnRequest) -> LearnReply:
        self._version += 1
        items = sum(map(len, order.items.values()))
        return LearnReply(
            metrics={node: {"loss": 0.1, "grad_norm": 1.0} for node, _ in order.items},
            version=self._version,
            before=self._version - 1,
            samples=items,
            tokens=items * self._tokens,
        )

    def _checksum(self) -> WeightChecksum:
        """What both ends of a sync say: weights that moved since the last one."""
        scores = np.full((4, 16), -1.0 - self._version)
        return WeightChecksum(version=self._version, fingerprint=self._version, scores=scores)


class SleepingCluster(Cluster):
    """Pools of ranks that sleep."""

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        super().__init__((pool.name for pool in plan.pools), Deadlines(), wait)
        self._plan = plan
        self._simulation = simulation

    def start(self) -> None:
        for pool in self._plan.pools:
            self._add(pool.name, SleepingCrew(pool.workers, self._simulation))
            self._open(pool.name)

    def restart(self, pool: str) -> None:
        raise NotImplementedError(pool)


def run() -> Result:
    found = {point: _measured(*point) for point in POINTS}
    asked = found[ASKED]
    share = asked.driver_seconds / asked.step_seconds
    return Result(
        title="Limits of a single driver",
        tables=(
            Table(
                title=f"GRPO with a KL reference, one step ahead, mean of {STEPS - WARM} steps.",
                head=(
                    *("rows", "tokens a row", "ranks", "driver's CPU seconds a step"),
                    *("estimated step", "share", "peak memory"),
                ),
                rows=tuple(
                    (
                        *(f"{value:,}" for value in point),
                        f"{one.driver_seconds:.2f} s",
                        f"{one.step_seconds:.0f} s",
                        f"{100 * one.driver_seconds / one.step_seconds:.2f} %",
                        f"{one.peak_bytes / 2**30:.2f} GiB",
                    )
                    for point, one in found.items()
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"driver's share of a step of {ASKED[0]:,} rows x {ASKED[1]:,} tokens on "
                f"{ASKED[2]} ranks below {MOST_SHARE:.0%}",
                found=f"{100 * share:.2f} %",
                is_reached=share < MOST_SHARE,
            ),
            Goal(
                wanted=f"its memory below {MOST_BYTES // 2**30} GiB",
                found=f"{asked.peak_bytes / 2**30:.2f} GiB",
                is_reached=asked.peak_bytes < MOST_BYTES,
            ),
        ),
    )


def _measured(rows: int, tokens: int, ranks: int) -> Found:
    """One run in a process of its own, whose peak of memory is nobody else's."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bench_scale", str(rows), str(tokens), str(ranks)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def _run(rows: int, tokens: int, ranks: int) -> Found:
    spec, text = _loop(rows, tokens, ranks)
    stages = {one.stage: one.seconds for one in estimate(spec).stages}
    shorter = SLEEP_MOST / max(stages.values())
    seconds = {
        method: stages[stage] * min(shorter, 1.0)
        for method, stage in (
            ("generate", "actor.generate"),
            ("score", "start.score"),
            ("learn", "actor.learn"),
            ("receive", "actor.sync"),
        )
    }
    simulation = Simulation(seconds, tokens)

    def cluster(request: object, plan: Plan, folder: Path) -> SleepingCluster:
        del request, folder
        return SleepingCluster(plan, simulation)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(start, "_cluster", cluster):
        request = start.RunRequest(
            spec=spec, text=text, root=Path(folder), runs_dir=Path(folder), cluster="local"
        )
        result = start.run(request)
    if result.error is not None:
        raise RuntimeError(result.error.traceback)
    spent = simulation.spent
    return Found(
        driver_seconds=(spent[-1] - spent[WARM - 1]) / (len(spent) - WARM),
        step_seconds=estimate(spec).step_seconds,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _loop(rows: int, tokens: int, ranks: int) -> tuple[Any, str]:
    prompts, half = rows // 8, ranks // 2
    document = {
        "coloop": 1,
        "name": "scale",
        "nodes": {
            "questions": {
                "kind": "dataset",
                "source": {
                    "type": "inline",
                    "rows": [{"prompt": f"question {place}"} for place in range(prompts)],
                },
                "rows_per_step": prompts,
            },
            "actor": {
                "kind": "actor",
                "pool": TRAIN,
                "model": {"type": "scratch", "architecture": "qwen2.5-7b"},
                "rollout": {
                    "pool": WRITE,
                    "engine": "vllm",
                    "completions_per_prompt": 8,
                    "max_new_tokens": tokens,
                },
                "algorithm": {"name": "grpo", "kl": {"coefficient": 0.001, "estimator": "k3"}},
                "training": {"backend": "fsdp2", "gradient_checkpointing": True},
            },
            "start": {
                "kind": "reference",
                "pool": TRAIN,
                "model": {"type": "snapshot", "of": "actor"},
            },
            "short": {
                "kind": "reward",
                "source": {"type": "builtin", "name": "length", "max": tokens},
            },
        },
        "edges": [
            "questions.rows -> actor.prompts",
            "actor.rollouts -> start.rollouts",
            "actor.rollouts -> short.rollouts",
            "short.scores -> actor.rewards",
            "start.log_probs -> actor.reference",
        ],
        "schedule": {"steps": STEPS, "max_staleness": 1},
        "hardware": {
            "nodes": max(ranks // 8, 1),
            "gpus_per_node": 8,
            "gpu": "H100-80GB",
            "pools": {pool: {"gpus": half} for pool in POOLS},
        },
    }
    parsed = from_dict(document)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return parsed.spec, dump(parsed.spec)


def _seen(folder: Path) -> Sight:
    """What a host sees in which the driver has left its word; it leaves it for every pool."""
    word = (folder / DRIVERS_WORD).read_text(encoding="utf-8")
    for pool in POOLS:
        (folder / pool).write_text(word, encoding="utf-8")
    return Sight(machine="simulated", word=word)


if __name__ == "__main__":
    print(json.dumps(asdict(_run(*map(int, sys.argv[1:])))))
