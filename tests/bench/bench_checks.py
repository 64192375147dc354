"""What the page waits for at each edit: checks, estimate and plan of a loop of a hundred nodes.

In one process on a loop that was just read, and over HTTP on loopback from a server of its own.
Besides, the processor time of commands that look at one loop.
"""

import itertools
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from tests.bench.results import Goal, Result, Table
from tests.bench.server import BEARER, serve

from coloop.plan.compile import compile_plan
from coloop.plan.cost import estimate
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict
from coloop.spec.presets import load_loop_text
from coloop.spec.text.emit import to_yaml
from coloop.validate import validate

LEARNERS = 24
ROUNDS = 30
MOST_CHECK_MILLISECONDS = 50
MOST_ROUTE_MILLISECONDS = 100
MOST_COMMAND_MILLISECONDS = 600
PRESET = "grpo-qwen2.5-7b-8xH100"
COMMANDS = ("validate", "estimate", "fit", "place", "plan")
COMMAND_ROUNDS = 5


def hundred_nodes() -> dict[str, Any]:
    """Learners beside each other on shared data, each with its reward, reference and probe."""
    task = {"type": "task", "task": "arithmetic"}
    nodes: dict[str, Any] = {
        name: {"kind": "dataset", "source": {**task, "split": split}, "rows_per_step": 32}
        for name, split in (
            ("problems", "train"),
            ("gold", "train"),
            ("held_out", "test"),
            ("harder", "test"),
        )
    }
    edges: list[str] = []
    for number in range(LEARNERS):
        actor, exact, start, probe = (
            f"{kind}_{number}" for kind in ("actor", "exact", "start", "probe")
        )
        nodes[actor] = {
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"completions_per_prompt": 8, "max_new_tokens": 8},
            "algorithm": {
                "rewards": {"name": "grpo", "kl": {"coefficient": 0.001}},
                "demonstrations": {"name": "sft"},
            },
        }
        nodes[exact] = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
        nodes[start] = {"kind": "reference", "model": {"type": "snapshot", "of": actor}}
        nodes[probe] = {
            "kind": "evaluate",
            "instead_of": "problems",
            "every": 20,
            "metrics": ["accuracy"],
        }
        edges += [
            f"problems.rows -> {actor}.prompts",
            f"gold.rows -> {actor}.demonstrations",
            f"{actor}.rollouts -> {exact}.rollouts",
            f"{actor}.rollouts -> {start}.rollouts",
            f"{exact}.scores -> {actor}.rewards",
            f"{start}.log_probs -> {actor}.reference",
            f"{'held_out' if number % 2 else 'harder'}.rows -> {probe}.rows",
            f"{exact}.scores -> {probe}.scores",
        ]
    learn = [f"actor_{number}" for number in range(LEARNERS)]
    phases = [
        {"name": "warm-up", "steps": 100, "learn": [f"{actor}.demonstrations" for actor in learn]},
        {"name": "rl", "steps": 300, "learn": [f"{actor}.rewards" for actor in learn]},
    ]
    return {
        "coloop": 1,
        "name": "hundred-nodes",
        "nodes": nodes,
        "edges": edges,
        "schedule": {"phases": phases},
        "hardware": {"preset": "cpu"},
    }


AS_THE_PAGE_ASKS = "YAML from /spec/patch"
"""The page has each edit written into the text first; the text is known when it is checked."""


def run() -> Result:
    document = hundred_nodes()
    in_process = _measure_checks(document)
    over_http = _measure_route(document)
    commands = _measure_commands()
    slowest = max(min(times) for times in commands.values())
    together = statistics.median(in_process["all three"])
    route = statistics.median(over_http[AS_THE_PAGE_ASKS])
    return Result(
        title="Checks of a hundred nodes",
        tables=(
            _table(f"In one process, {ROUNDS} loops parsed anew.", in_process),
            _table(f"`POST /api/check` on loopback, {ROUNDS} requests.", over_http),
            _table(f"Processor time of a command, {COMMAND_ROUNDS} processes.", commands),
        ),
        goals=(
            Goal(
                wanted=f"validate + estimate + plan below {MOST_CHECK_MILLISECONDS} ms",
                found=f"{together:.1f} ms",
                is_reached=together < MOST_CHECK_MILLISECONDS,
            ),
            Goal(
                wanted=f"POST /check, {AS_THE_PAGE_ASKS}, below {MOST_ROUTE_MILLISECONDS} ms",
                found=f"{route:.1f} ms",
                is_reached=route < MOST_ROUTE_MILLISECONDS,
            ),
            Goal(
                wanted=f"a command below {MOST_COMMAND_MILLISECONDS} ms of processor",
                found=f"{slowest:.0f} ms",
                is_reached=slowest < MOST_COMMAND_MILLISECONDS,
            ),
        ),
        data={"in_process": in_process, "over_http": over_http, "commands": commands},
    )


def _measure_checks(document: Mapping[str, Any]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"estimate": [], "validate": [], "plan": [], "all three": []}
    for turn in range(ROUNDS + 3):
        spec = _read(document)
        began = time.perf_counter()
        unrolled = Unrolled(spec)
        cost = estimate(spec, unrolled)
        estimated = time.perf_counter()
        report = validate(spec, estimate=cost, unrolled=unrolled)
        validated = time.perf_counter()
        plan = compile_plan(spec, unrolled)
        planned = time.perf_counter()
        assert report.ok, report.diagnostics[0].describe()
        assert len(plan.phases) == 2
        if turn >= 3:  # the first ones warm up
            times["estimate"].append(1000 * (estimated - began))
            times["validate"].append(1000 * (validated - estimated))
            times["plan"].append(1000 * (planned - validated))
            times["all three"].append(1000 * (planned - began))
    return times


def _measure_commands() -> dict[str, list[float]]:
    """Milliseconds of processor, user and system."""
    asked = [*((name, PRESET) for name in COMMANDS), ("presets",), ("--help",)]
    return {
        " ".join(("coloop", *words)): [_processor_of(words) for _ in range(COMMAND_ROUNDS)]
        for words in asked
    }


def _processor_of(words: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "coloop", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _read(document: Mapping[str, Any]) -> LoopSpec:
    spec = from_dict(dict(document)).spec
    assert spec is not None
    assert len(spec.nodes) == 100
    return spec


def _measure_route(document: dict[str, Any]) -> dict[str, list[float]]:
    text, small = to_yaml(document), load_loop_text("grpo-arithmetic")
    fresh = (f"\n# {number}\n" for number in itertools.count())
    with (
        serve() as url,
        httpx.Client(base_url=url, timeout=30, trust_env=False, headers=BEARER) as client,
    ):

        def ask(body: dict[str, Any]) -> None:
            answer = client.post("/api/check", json=body)
            answer.raise_for_status()
            told = answer.json()
            assert told["report"]["ok"]
            assert told["plan"]

        return {
            "loop as JSON": _timed(lambda: ask({"spec": document})),
            AS_THE_PAGE_ASKS: _timed(lambda: ask({"yaml": text})),
            "new YAML": _timed(lambda: ask({"yaml": text + next(fresh)})),
            "the quick start, new": _timed(lambda: ask({"yaml": small + next(fresh)})),
        }


def _timed(work: Callable[[], None]) -> list[float]:
    times = []
    for turn in range(ROUNDS + 3):
        began = time.perf_counter()
        work()
        if turn >= 3:
            times.append(1000 * (time.perf_counter() - began))
    return times


def _table(title: str, times: Mapping[str, list[float]]) -> Table:
    return Table(
        title=title,
        head=("what", "best", "median", "slowest"),
        rows=tuple(
            (name, *(f"{value:.1f} ms" for value in (min(t), statistics.median(t), max(t))))
            for name, t in times.items()
        ),
    )
