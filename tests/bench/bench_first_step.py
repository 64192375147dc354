"""From Run to the first step of the quick start, on the server's own Ray: with everything loaded
ahead, with Run pressed as soon as the loop is looked at, and with nothing begun before; quiet, and
beside four programs that never rest."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
from tests.bench.results import Goal, Result, Table
from tests.bench.server import BEARER, serve

from coloop.spec import presets

LOOP = "grpo-arithmetic"
SHORT = (("steps: 2000", "steps: 40"), ("steps: 400", "steps: 20"))
"""So that a run ends: the phases' own length is of no matter here."""
BUSY = 4
QUIET_SECONDS = 8.0
LONGEST_SECONDS = 600.0
ARMS = {
    "preloaded": {"COLOOP_WARM_RAY": "true"},
    "at once": {"COLOOP_WARM_RAY": "true"},
    "nothing before": {"COLOOP_WARM_RAY": "false"},
}


def run() -> Result:
    found = {(arm, busy): once(arm, busy) for busy in (0, BUSY) for arm in ARMS}
    quiet = found["preloaded", 0][0]
    ended = [state for _, _, state in found.values()]
    return Result(
        title="Time to the first step",
        tables=(
            Table(
                title=f"`{LOOP}` on {os.cpu_count()} cores, its phases cut to 40 and 20 steps.",
                head=("started before Run", "busy programs", "first step", "whole run", "ended"),
                rows=tuple(
                    (arm, str(busy), f"{first:.1f} s", f"{whole:.1f} s", state)
                    for (arm, busy), (first, whole, state) in found.items()
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"a first step within {QUIET_SECONDS:g} s if preloaded",
                found=f"{quiet:.1f} s",
                is_reached=quiet <= QUIET_SECONDS,
            ),
            Goal(
                wanted="every run finishes, also on a busy machine",
                found=", ".join(sorted(set(ended))),
                is_reached=set(ended) == {"finished"},
            ),
        ),
        data=[[arm, busy, *told] for (arm, busy), told in found.items()],
    )


def once(arm: str, busy: int) -> tuple[float, float, str]:
    """Seconds from Run to the first step and to the end, and how it ended."""
    yaml = presets.load_loop_text(LOOP)
    for long, short in SHORT:
        yaml = yaml.replace(long, short)
    told = ARMS[arm] | {"COLOOP_LAUNCHER": "ray_job"}
    with _busy(busy), serve(**told) as url:
        http = httpx.Client(base_url=f"{url}/api", headers=BEARER, trust_env=False, timeout=120)
        http.post("/check", json={"yaml": yaml}).raise_for_status()
        if arm == "preloaded":
            _wait(_has_loaded)
        began = time.monotonic()
        run_id = http.post("/runs", json={"yaml": yaml}).raise_for_status().json()["id"]
        path = f"/runs/{run_id}"
        ended = ("finished", "failed", "stopped")

        def told_of() -> Any:
            return http.get(path).raise_for_status().json()

        _wait(lambda: (one := told_of())["step"] or one["state"] in ended)
        first = time.monotonic() - began
        _wait(lambda: told_of()["state"] in ended)
        return first, time.monotonic() - began, str(told_of()["state"])


def _has_loaded() -> bool:
    """Whether spare hosts are there, and rest."""
    hosts = [one for one in psutil.process_iter() if "RayWorker" in "".join(_words(one))]
    return len(hosts) > 1 and all(one.cpu_percent(1.0) < 10.0 for one in hosts)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _wait(is_there: Callable[[], Any]) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LONGEST_SECONDS:.0f} s")
        time.sleep(0.05)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """So many programs that never rest."""
    code = "while True: pass"
    programs = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
