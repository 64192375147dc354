"""A node kind is added in four places: its file in `spec/nodes`, its role, and a line that names
each of them.

The engine is copied, a kind that hands on the first rows is added to the copy, and a loop that has
it is validated, planned, estimated and run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "engine" / "coloop"
TOY = Path(__file__).parent / "toy"
LINES = {
    "spec/nodes/__init__.py": (
        ("from coloop.spec.nodes.template", "from coloop.spec.nodes.take import TakeNode\n"),
        ("    | ToolNode\n", "    | TakeNode\n"),
    ),
    "runtime/roles/__init__.py": (
        ("from coloop.runtime.roles.template", "from coloop.runtime.roles.take import TakeRole\n"),
        ('    "template": ', '    "take": TakeRole,\n'),
    ),
}
"""By file, what is added before a line."""

LOOK = """
import json, sys
from coloop.cli.check import check
from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_runs
from coloop.spec.catalog import catalog

checked = check(sys.argv[1])
phase = compile_plan(checked.spec).phases[0]
found = {
    "diagnostics": [one.code for one in checked.report.diagnostics],
    "refusals": [one.message for one in check_runs(checked.spec)],
    "rows": {one.stage: one.rows.text for one in phase.rows},
    "estimated": [one.stage for one in checked.explanation.stages_in["rl"]],
    "kind": catalog().model_dump(mode="json")["kinds"]["take"],
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the engine that has the kind."""
    root = tmp_path_factory.mktemp("with_take")
    target = root / "engine" / "coloop"
    shutil.copytree(ENGINE, target)
    (root / "presets").symlink_to(ROOT / "presets")
    shutil.copy(TOY / "take.py", target / "spec" / "nodes" / "take.py")
    shutil.copy(TOY / "take_role.py", target / "runtime" / "roles" / "take.py")
    for name, additions in LINES.items():
        text = (target / name).read_text("utf-8")
        for before, line in additions:
            assert text.count(before) == 1
            text = text.replace(before, line + before)
        (target / name).write_text(text, "utf-8")
    return target.parent


def output_of(engine: Path, *arguments: str) -> str:
    """What Python prints with the copy."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(engine), "OMP_NUM_THREADS": "1"},
        cwd=engine.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def found(engine: Path) -> Any:
    """What the light packages say of the loop and of the kind."""
    return json.loads(output_of(engine, "-c", LOOK, str(TOY / "loop.yaml")))


def test_it_is_valid_and_runs(found: Any) -> None:
    assert found["diagnostics"] == []
    assert found["refusals"] == []


def test_it_is_planned_with_its_rows(found: Any) -> None:
    assert found["rows"]["few.prepare"] == "3"
    assert found["rows"]["actor.generate"] == "6"


def test_it_is_estimated(found: Any) -> None:
    assert "few.prepare" in found["estimated"]


def test_palette_and_forms_have_it(found: Any) -> None:
    assert found["kind"]["title"] == "Take"
    assert found["kind"]["runnable"]
    assert "most" in found["kind"]["schema"]["properties"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_loop_with_it_runs(engine: Path, tmp_path: Path) -> None:
    command = ("-m", "coloop", "run", str(TOY / "loop.yaml"), "--local", "--json")
    printed = output_of(engine, *command, "--run-id", "toy", "--runs-dir", str(tmp_path))

    events = [json.loads(line) for line in printed.splitlines()]
    assert events[-1]["state"] == "finished"
    sampled = [len(event["rows"]) for event in events if event["type"] == "sample"]
    assert sampled
    assert max(sampled) <= 6
