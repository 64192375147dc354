"""Benches that are scripts of their own: the rollout engine, the training update, the page's size.

Their output is shown as it is; a goal that they print as missed counts as missed here.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.machine import ROOT
from tests.bench.results import Goal, Result

SCRIPT_BUDGET = re.compile(r"^(.+?) +([\d.]+) kB JavaScript.*\(budget (\d+) kB\)", re.MULTILINE)
LONGEST_SECONDS = 1200


def rollout() -> Result:
    """The rollout engine against transformers' generate()."""
    said = _said([sys.executable, "tests/bench/bench_rollout.py"])
    ratios = [float(found) for found in re.findall(r"ratio ([\d.]+) of medians[^\n]*goal", said)]
    goal = Goal(
        wanted="speed-up over generate() of 3 or more for rows of different lengths",
        found=", ".join(f"{ratio:.2f}" for ratio in ratios),
        is_reached=bool(ratios) and all(ratio >= 3 for ratio in ratios),
    )
    return Result(title="Rollout engine", text=said, goals=(goal,))


def training() -> Result:
    """The update of the single backend."""
    said = _said([sys.executable, "tests/bench/bench_training.py"])
    verdict = re.search(r"goal: (.*): (reached|missed)", said)
    assert verdict is not None, said
    goal = Goal(wanted=verdict[1], found=verdict[2], is_reached=verdict[2] == "reached")
    return Result(title="Training update", text=said, goals=(goal,))


def front_end() -> Result:
    """What a first visit loads, what a run does, and all that there is."""
    if not (ROOT / "backend" / "coloop_server" / "_static").exists():
        return Result(title="Front end", text="the page is not built; `make web` builds it")
    said = _said(["npm", "run", "--silent", "size"], folder=ROOT / "frontend")
    goals = tuple(
        Goal(
            wanted=f"{what} within {budget} kB of gzipped JavaScript",
            found=f"{kilobytes} kB",
            is_reached=float(kilobytes) <= float(budget),
        )
        for what, kilobytes, budget in SCRIPT_BUDGET.findall(said)
    )
    return Result(title="Front end", text=said, goals=goals)


def _said(command: Sequence[str], folder: Path = ROOT) -> str:
    paths = [str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout
