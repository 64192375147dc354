"""Every preset and every written loop compiles; the plans of presets and of loops that run are as
reviewed.

`--update-golden` writes the files anew; what changed is then reviewed as a diff.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.explain import probe_line, update_line
from coloop.plan.refusals import cause_of
from coloop.plan.run_check import check_runs
from coloop.plan.types import Plan
from coloop.spec.io import parse

ROOT = Path(__file__).resolve().parents[3]
PRESETS = sorted((ROOT / "presets" / "loops").glob("*.yaml"))
EXAMPLES = sorted((ROOT.parent / "shared" / "language" / "examples").glob("*.yaml"))
GOLDEN = ROOT / "tests" / "presets" / "golden"


def outline(plan: Plan) -> dict[str, Any]:
    """What a plan says, without hashes and values that are as written."""
    return {
        "pools": [pool.model_dump(exclude_none=True) for pool in plan.pools],
        "weights": [weights.model_dump(exclude_none=True) for weights in plan.weights],
        "phases": [
            {
                "name": phase.name,
                "ends": phase.ends,
                "rounds": phase.rounds,
                "learn": phase.learn,
                "fill": phase.fill,
                "stages": [stage.name for stage in phase.stages],
                "refills": [refill.model_dump() for refill in phase.refills],
                "regions": [region.model_dump() for region in phase.regions],
                "calls": {stage.name: stage.calls for stage in phase.stages if stage.calls},
                "rows": {one.stage: one.rows.text for one in phase.rows},
                "updates": [update_line(update) for update in phase.updates],
                "dead_edges": phase.dead_edges,
            }
            for phase in plan.phases
        ],
        "probes": [
            {
                **probe.model_dump(include={"node", "every", "instead_of", "of", "writers"}),
                "sources": [stage.name for stage in probe.sources],
                "stages": [stage.name for stage in probe.stages],
                "of_stages": [stage.name for stage in probe.of_stages],
                "reads": probe_line(probe),
                "rows": {one.stage: one.rows.text for one in probe.rows},
            }
            for probe in plan.probes
        ],
        "decisions": {decision.path: decision.value for decision in plan.decisions},
    }


def compare(path: Path, golden: Path, update: bool) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None
    text = json.dumps(outline(compile_plan(spec)), indent=1) + "\n"
    if update:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.exists(), f"{golden.name} is missing; write it with --update-golden"
    assert json.loads(text) == json.loads(golden.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_the_plan_of_a_preset_is_as_reviewed(path: Path, update_golden: bool) -> None:
    compare(path, GOLDEN / f"{path.stem}.json", update_golden)


def test_no_golden_plan_is_left_over() -> None:
    names = {path.stem for path in PRESETS}

    assert {path.stem for path in GOLDEN.glob("*.json")} == names


@pytest.mark.sample(25)
@pytest.mark.skipif(
    not EXAMPLES, reason="the written loops of the language are not beside the repo"
)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_written_loop_is_planned(path: Path, update_golden: bool) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None
    refusals = check_runs(spec)
    assert {one.code for one in refusals} <= {"run.not_yet_runnable"}
    assert all(cause_of(one.message) != one.message for one in refusals)

    plan = compile_plan(spec)

    assert all(phase.stages for phase in plan.phases)
    if not refusals:
        golden = Path(__file__).parent / "written" / path.with_suffix(".json").name
        compare(path, golden, update_golden)
