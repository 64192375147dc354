"""No loop that validates has a table that is always empty: what the plan counts for every stage and
edge, against one step of every phase with writers of a script."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.matrix import halved

from coloop.errors import DataError
from coloop.plan.run_check import check_drawn
from coloop.plan.stages import Step
from coloop.plan.types import PhasePlan
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.schedule.calls import StepContext
from coloop.runtime.schedule.in_flight import Work
from coloop.spec.io import from_dict
from coloop.spec.paths import apply_overrides
from coloop.validate import validate

Bench = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT.parent / "shared" / "language" / "examples"
WRITTEN = [
    *sorted((ROOT / "presets" / "loops").glob("*.yaml")),
    *sorted((ROOT / "tests" / "engine" / "runs" / "loops").glob("*.yaml")),
    *sorted(EXAMPLES.glob("*.yaml")),
]
PRODUCED = ("load", "read", "generate", "score", "prepare")
MARK = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 8}}
LEARNER = {"algorithm": {"rewards": {"name": "reinforce"}, "demonstrations": {"name": "sft"}}}


class Counted:
    """What one step of a phase gave and brought."""

    def __init__(self, loop: Any, phase: PhasePlan) -> None:
        self.passes: defaultdict[str, list[int]] = defaultdict(list)
        self.edges: defaultdict[str, list[int]] = defaultdict(list)
        loop.stage_finished = self._finished
        loop.delivered = lambda key, rows: self.edges[key].append(rows)
        loop.stand(spec=apply_overrides(loop.spec, phase.overrides))
        live = frozenset(tuple(port.split(".")) for port in phase.learn)
        step_context = StepContext(step=1, phase=phase.name, context=loop.context, live=live)
        loop.scheduler.run(Step.of(phase), step_context)

    def _finished(self, work: Work, outcome: Outcome) -> None:
        counts = [len(table.rows) for table in outcome.outputs.values()]
        self.passes[work.stage.name].append(max(counts, default=0))


def check(loop: Any) -> None:
    """Rows of every stage and edge lie where the plan says, and what is sure to come comes."""
    for phase in loop.plan.phases:
        seen = Counted(loop, phase)
        filled = {refill.stages[-1] for refill in phase.refills}  # cut once all passes are over
        for said in phase.rows:
            passes = seen.passes[said.stage]
            if said.stage.rpartition(".")[2] in PRODUCED:
                assert 1 <= len(passes) <= said.passes, said
                assert sum(passes) >= said.rows.least, said
                if said.rows.most is not None and said.stage not in filled:
                    assert max(passes) <= said.rows.most, (said, passes)
            for key, rows in said.edges.items():
                came = seen.edges[key] or [0]
                assert came[0] >= (rows.least or 0), (said.stage, key, came)
                if rows.most is not None:
                    assert max(came) <= rows.most, (said.stage, key, came)


def small(value: dict[str, Any]) -> dict[str, Any]:
    """The same loop over few rows."""
    for node in value["nodes"].values():
        if node["kind"] == "dataset":
            node["rows_per_step"] = 4
        if node["kind"] == "filter" and isinstance((node.get("fill") or {}).get("groups"), int):
            node["fill"]["groups"] = 4
        rollout = node.get("rollout") or {}
        if rollout.get("completions_per_prompt", 0) > 4:
            rollout["completions_per_prompt"] = 4
    return value


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", halved(WRITTEN, first=1), ids=lambda path: path.stem)
def test_a_written_loop_brings_the_rows_that_its_plan_counts(path: Path, bench: Bench) -> None:
    value = small(YAML(typ="safe").load(path.read_text(encoding="utf-8")))
    for node in value["nodes"].values():
        source = node.get("source")
        if isinstance(source, dict) and source.get("type") == "file":
            source["path"] = str(path.parent / source["path"])
    parsed = from_dict(value)
    assert parsed.spec is not None
    if (refused := check_drawn(parsed.spec)) and path.parent == EXAMPLES:
        pytest.skip(refused[0].message)
    assert not refused
    try:
        loop = bench(value["nodes"], value["edges"], value["schedule"])
    except DataError as problem:
        pytest.skip(f"its data is not here: {problem}")
    loop.hosts.write = lambda prompt, k: str(k % 10)

    check(loop)


def base(rows_of: Any, actor: Any) -> tuple[dict[str, Any], list[Any]]:
    nodes = {
        "sums": rows_of(*({"prompt": sign, "target": sign} for sign in "abcdefghijkl")),
        "actor": actor(**LEARNER),
        "mark": MARK,
        "keep": {
            "kind": "filter",
            "keep": [{"rule": "score", "min": 0.0}],
            "fill": {"groups": 3, "max_rounds": 3},
        },
    }
    nodes["sums"]["rows_per_step"] = 2
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> keep.scores",
        "keep.scores -> actor.rewards",
    ]
    return nodes, edges


def readers(rows_of: Any, actor: Any) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """What else may read the rows of a slice."""
    more = rows_of(*({"prompt": sign} for sign in "uvwxyz"))
    more["rows_per_step"] = 2
    start = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
    kl = {"rewards": {"name": "reinforce", "kl": {"coefficient": 0.1}}}
    return {
        "reference": (
            {"start": start, "actor": actor(algorithm=kl)},
            ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"],
        ),
        "second reward": (
            {"again": MARK},
            ["actor.rollouts -> again.rollouts", "again.scores -> actor.rewards"],
        ),
        "second learner": (
            {"other": actor(**LEARNER), "of_other": MARK},
            [
                "sums.rows -> other.prompts",
                "other.rollouts -> of_other.rollouts",
                "of_other.scores -> other.rewards",
            ],
        ),
        "second fill": (
            {
                "third": actor(**LEARNER),
                "of_third": MARK,
                "keep_third": {"kind": "filter", "keep": [], "fill": {"groups": 3}},
            },
            [
                "sums.rows -> third.prompts",
                "third.rollouts -> of_third.rollouts",
                "of_third.scores -> keep_third.scores",
                "keep_third.scores -> third.rewards",
            ],
        ),
        "two sources": ({"more": more}, ["more.rows -> actor.prompts"]),
        "probe": (
            {
                "held_out": more,
                "probe": {"kind": "evaluate", "instead_of": "sums", "metrics": ["score"]},
            },
            ["held_out.rows -> probe.rows", "mark.scores -> probe.scores"],
        ),
    }


NAMES = ("reference", "second reward", "second learner", "second fill", "two sources", "probe")


def mixes() -> Iterator[tuple[str, ...]]:
    for count in range(len(NAMES) + 1):
        yield from itertools.combinations(NAMES, count)


@pytest.mark.sample(2)
@pytest.mark.parametrize("which", list(mixes()), ids=" and ".join)
def test_whatever_reads_the_rows_of_a_fill_gets_them(
    which: tuple[str, ...], bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = base(rows_of, actor)
    known = readers(rows_of, actor)
    for name in which:
        more_nodes, more_edges = known[name]
        nodes |= more_nodes
        edges = [*edges, *more_edges]
    loop = bench(nodes, edges)

    assert [one.describe() for one in validate(loop.spec).diagnostics if one.is_error] == []
    check(loop)
    learned = {node: len(items) for (node, _), items in loop.hosts.orders[-1].items.items()}
    assert all(learned.values())
    if "probe" in which:
        readings = loop.probe("probe")
        assert readings
