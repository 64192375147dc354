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
    "roles/__init__.py": (
        ("from coloop.roles.template", "from coloop.roles.take import TakeRole\n"),
        ('    "template": ', '    "take": TakeRole,\n'),
    ),
}
"""By file, what is added before a line."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the engine that has the kind."""
    root = tmp_path_factory.mktemp("with_take")
    target = root / "engine" / "coloop"
    shutil.copytree(ENGINE, target, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "presets").symlink_to(ROOT / "presets")
    shutil.copy(TOY / "take.py", target / "spec" / "nodes" / "take.py")
    shutil.copy(TOY / "take_role.py", target / "roles" / "take.py")
    for name, additions in LINES.items():
        text = (target / name).read_text("utf-8")
        for before, line in additions:
            assert text.count(before) == 1
            text = text.replace(before, line + before)
        (target / name).write_text(text, "utf-8")
    return target.parent


def coloop(engine: Path, *arguments: str) -> str:
    """What a command of the copy prints."""
    done = subprocess.run(
        [sys.executable, "-m", "coloop", *arguments],
        env={**os.environ, "PYTHONPATH": str(engine)},
        cwd=engine.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def read(engine: Path, *arguments: str) -> Any:
    return json.loads(coloop(engine, *arguments, str(TOY / "loop.yaml"), "--json"))


def test_it_is_valid_and_runs(engine: Path) -> None:
    report = read(engine, "validate")

    assert report["ok"]
    assert report["runs"]
    assert not report["diagnostics"]


def test_it_is_planned_with_its_rows(engine: Path) -> None:
    phase = read(engine, "plan")["phases"][0]

    assert "few.prepare" in [stage["name"] for stage in phase["stages"]]
    rows = {row["stage"]: row["rows"]["text"] for row in phase["rows"]}
    assert rows["few.prepare"] == "3"
    assert rows["actor.generate"] == "6"


def test_it_is_estimated(engine: Path) -> None:
    stages = {stage["stage"] for stage in read(engine, "estimate")["stages"]}

    assert "few.prepare" in stages


def test_a_loop_with_it_runs(engine: Path, tmp_path: Path) -> None:
    arguments = ("--local", "--json", "--run-id", "toy", "--runs-dir", str(tmp_path))
    printed = coloop(engine, "run", str(TOY / "loop.yaml"), *arguments)

    events = [json.loads(line) for line in printed.splitlines()]
    assert events[-1]["state"] == "finished"
    sampled = [len(event["rows"]) for event in events if event["type"] == "sample"]
    assert sampled
    assert max(sampled) <= 6


def test_palette_and_forms_have_it(engine: Path) -> None:
    code = "import json; from coloop.spec.catalog import catalog; "
    code += "print(json.dumps(catalog().model_dump(mode='json')['kinds']['take']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(engine)},
        capture_output=True,
        text=True,
        check=True,
    )
    kind = json.loads(done.stdout)

    assert kind["title"] == "Take"
    assert kind["runnable"]
    assert "most" in kind["schema"]["properties"]
