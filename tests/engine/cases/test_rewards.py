"""Rewards that people brought, run as they are typed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from typer.testing import CliRunner

from coloop.cli.app import app

CASES = Path(__file__).resolve().parents[3].parent / "shared/cases/2026-11"
SECONDS = 300

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases are not here")

PROCESSES = "this code runs in a limited process with no other processes"
THREADS = "use a loop, or threads (`concurrent.futures.ThreadPoolExecutor`)"
PROGRAMS = "this code runs in a limited process with no other programs"
TESTS = "to run programs against tests use the built-in reward `code_tests`"


def run(loop: str, folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and events of a run, in a process of its own."""
    command = ("-m", "coloop", "run", str(CASES / loop), "--local", "--json")
    done = forked.run(*command, "--runs-dir", str(folder), timeout=SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines


@pytest.mark.slow
def test_a_dataclass_in_a_reward_finds_its_namespace(tmp_path: Path) -> None:
    code, events = run("01-reward-dataclass/loop.yaml", tmp_path)

    assert code == 0, events[-1]
    means = [
        one["metrics"]["score/mean"]
        for one in events
        if one["type"] == "metrics" and "score/mean" in one["metrics"]
    ]
    assert set(means) == {1.0}


@pytest.mark.slow
def test_torch_is_imported_in_a_reward(tmp_path: Path) -> None:
    code, events = run("03-reward-wall-messages/torch.yaml", tmp_path)

    assert code == 0, events[-1]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("loop", "call", "told", "instead"),
    [
        ("pool", "multiprocessing.Pool", PROCESSES, THREADS),
        ("subprocess", "subprocess.run", PROGRAMS, TESTS),
    ],
)
def test_what_the_wall_refuses_is_told_in_the_same_words_before_a_run_and_in_it(
    loop: str, call: str, told: str, instead: str, tmp_path: Path
) -> None:
    file = f"03-reward-wall-messages/{loop}.yaml"

    checked = CliRunner().invoke(app, ["validate", str(CASES / file), "--json"])
    code, events = run(file, tmp_path)

    [found] = json.loads(checked.stdout)["diagnostics"]
    assert checked.exit_code == 0
    assert (found["code"], found["severity"], found["node"]) == ("text.code_closed", "warning", "r")
    assert f"`{call}`" in found["message"]
    assert told in found["message"]
    assert instead in found["hint"]
    assert code == 3
    [failed] = [one for one in events if one["type"] == "run.state" and one["state"] == "failed"]
    assert told in json.dumps(failed, ensure_ascii=False)
    assert instead in json.dumps(failed, ensure_ascii=False)


def test_a_reward_that_asks_for_nothing_that_is_closed_has_no_finding() -> None:
    for file in ("01-reward-dataclass/loop.yaml", "03-reward-wall-messages/torch.yaml"):
        checked = CliRunner().invoke(app, ["validate", str(CASES / file), "--json"])

        assert json.loads(checked.stdout)["diagnostics"] == []
