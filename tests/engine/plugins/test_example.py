"""The package of `examples/coloop-example-plugin`, installed into a folder: its four things are in
the language, in help, checks and runs, as those of coloop are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "coloop-example-plugin"
LOOP = EXAMPLE / "loop.yaml"

LANGUAGE = f"""
import json, sys
from coloop.explain.algorithm import explain_algorithm
from coloop.cli.doctor import examine
from coloop.spec.catalog import catalog
from coloop.spec.io import parse
from coloop.spec.catalog import json_schema
from coloop.validate import validate

told, schema = catalog(), json.dumps(json_schema())
parsed = parse(open({str(LOOP)!r}, encoding="utf-8").read())
help = explain_algorithm({{"name": "median_baseline"}})
print(json.dumps({{
    "rewards": [one.name for one in told.rewards],
    "tasks": [one.name for one in told.tasks],
    "algorithms": [one.name for one in told.algorithms["rewards"] if one.runnable],
    "schema": [name for name in ("LetterShare", "BackwardsTask", "median_baseline", "reverser")
               if name in schema],
    "title": help.title,
    "formula": help.formulas[0].text,
    "problems": [one.code for one in (*parsed.diagnostics, *validate(parsed.spec).diagnostics)],
    "doctor": [one["found"] for one in examine()["checks"] if one["name"].startswith("plugin ")],
    "heavy": [name for name in ("torch", "numpy", "coloop_example.tools") if name in sys.modules],
}}))
"""

AT_WORK = """
import json, sys
import torch
from coloop.cli.app import main
from coloop.data.tasks import check_row, task_rows
from coloop.algorithms.recipes.estimators import ESTIMATORS, GroupedRewards
from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.scoring import ScoringRow
from coloop.spec.builtins import BUILTINS
from coloop.spec.installed import load
from coloop.spec.nodes import ToolNode
from coloop.spec.tools import PLUGINS
from coloop.data.tools.calls import call_in
from coloop.data.tools.protocol import Caller

given = GroupedRewards(
    values=torch.tensor([0.0, 1.0, 9.0, 5.0], dtype=torch.float64),
    groups=torch.tensor([0, 0, 0, 1]),
    rows=torch.arange(4),
    lengths=torch.ones(4),
)
options = BUILTINS["letter_share"].model_validate({"type": "builtin", "name": "letter_share"})
[row] = task_rows("backwards", size=1)
section = ToolNode.model_validate({"kind": "tool", "type": "reverser"})
tool = load(PLUGINS["reverser"].tool, "reverser")(section)
call = call_in("say <reverse>abc</reverse>", "reverser", section)
session = tool.open(Caller(columns={}, seed=0, shared_seed=0))
print(json.dumps({
    "advantages": ESTIMATORS["group_median"](given).tolist(),
    "score": score_builtin(options, [ScoringRow(columns={"completion": "abba"})], node="x").scores,
    "grades": [check_row(row, row["answer"]), check_row(row, "?")],
    "is_backwards": row["prompt"] == row["answer"][::-1] + ":",
    "answer": session.answer(call.arguments, lambda: None).value,
}))
sys.argv[1:] = ["run", sys.argv[1], "--local", "--json"]
main()
"""
"""What each of the four does, in a line, then the events of a run."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--no-index", "--target", str(target), str(EXAMPLE)],
        check=True,
        capture_output=True,
        cwd=target,
    )
    return target


def python(site: Path | None, *words: str, folder: Path | None = None) -> str:
    paths = [str(ROOT / "engine"), *([] if site is None else [str(site)])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLOOP_PLUGINS": ""}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=env, cwd=folder
    )
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    return done.stdout


def test_what_it_adds_is_in_the_language_and_loads_nothing_heavy(site: Path) -> None:
    told: dict[str, Any] = json.loads(python(site, "-c", LANGUAGE))

    assert told["rewards"][-1] == "letter_share"
    assert told["tasks"][-1] == "backwards"
    assert told["algorithms"][-1] == "median_baseline"
    assert told["schema"] == ["LetterShare", "BackwardsTask", "median_baseline", "reverser"]
    assert told["title"] == "Median baseline"
    assert told["formula"] == "A_t = r_i − median(group)"
    assert told["problems"] == []
    assert len(told["doctor"]) == 4
    assert all("coloop-example-plugin 0.1.0" in found for found in told["doctor"])
    assert told["heavy"] == []


@pytest.fixture(scope="module")
def told(site: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("at_work")
    printed = python(site, "-c", AT_WORK, str(LOOP), folder=folder)
    return [json.loads(line) for line in printed.splitlines()]


def test_what_it_adds_does_its_work(told: list[dict[str, Any]]) -> None:
    assert told[0] == {
        "advantages": [-1.0, 0.0, 8.0, 0.0],
        "score": [0.5],
        "grades": [1.0, 0.0],
        "is_backwards": True,
        "answer": "cba",
    }


def test_its_loop_runs(told: list[dict[str, Any]]) -> None:
    metrics = [one["metrics"] for one in told[1:] if one["type"] == "metrics"]
    assert told[-1]["state"] == "finished"
    assert [one["reward/mean"] > 0 for one in metrics if "reward/mean" in one] == [True] * 3
    assert any(one.get("tool/calls") is not None for one in metrics)
