"""`python -m tests.bench`: run the benches one after the other, print what they find.

    --only NAME    this bench alone; may be repeated
    --share PART   of its usual size, for a bench that has one, e.g. 0.1 for a look
    --list         names and what they measure
    --write-notes  put all kept figures into tests/bench/README.md

Each bench keeps its figures as JSON under .coloop/bench; the page is made of those that are there.
"""

import argparse
import importlib
import inspect
import sys
import time
from collections.abc import Callable
from types import ModuleType

from tests.bench.machine import ROOT, describe_machine
from tests.bench.results import Result, keep, show, write_notes

BENCHES = {
    "rollout": "bench_scripts.rollout",
    "training": "bench_scripts.training",
    "checks": "bench_checks.run",
    "foresight": "bench_foresight.run",
    "service": "bench_service.run",
    "templates": "bench_templates.run",
    "overhead": "bench_overhead.run",
    "models": "bench_models.run",
    "overlap": "bench_overlap.run",
    "grpo": "bench_grpo.run",
    "accuracy": "bench_accuracy.run",
    "arrays": "bench_arrays.run",
    "scale": "bench_scale.run",
    "front-end": "bench_scripts.front_end",
    "canvas": "bench_canvas.run",
    "text": "bench_text.run",
    "live": "bench_live.run",
    "long": "bench_long.run",
    "first-step": "bench_first_step.run",
    "quick-start": "bench_quick_start.run",
    "spin": "bench_spin.run",
    "two-halves": "bench_two_halves.run",
    "predicted": "bench_predicted.run",
    "presets": "bench_presets.run",
    "chaos": "bench_chaos.run",
}
"""In the order in which they run: short ones first."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", action="append", choices=tuple(BENCHES))
    arguments.add_argument("--share", type=float, default=1.0)
    arguments.add_argument("--list", action="store_true")
    arguments.add_argument("--write-notes", action="store_true")
    given = arguments.parse_args()
    if given.list:
        for name, place in BENCHES.items():
            told = _bench(place).__doc__ or _module(place).__doc__ or ""
            print(f"{name:<12} {told.splitlines()[0]}")
        return 0
    missed = [name for name in given.only or BENCHES if not _is_reached(name, given.share)]
    if given.write_notes:
        write_notes(tuple(BENCHES))
    if missed:
        print(f"goals missed in: {', '.join(missed)}")
    return 1 if missed else 0


def _is_reached(name: str, share: float) -> bool:
    """Run one bench, print and keep its figures; whether all its goals were reached."""
    machine = describe_machine()
    print(f"\n{name}: {machine.describe()}\n", flush=True)
    began = time.monotonic()
    bench = _bench(BENCHES[name])
    is_sized = "share" in inspect.signature(bench).parameters
    result = bench(share=share) if is_sized else bench()
    keep(name, result, machine.as_dict(), machine.describe())
    print(show(result), flush=True)
    print(f"\n{name} took {time.monotonic() - began:.0f} s", flush=True)
    return all(goal.is_reached for goal in result.goals)


def _bench(place: str) -> Callable[..., Result]:
    bench: Callable[..., Result] = getattr(_module(place), place.partition(".")[2])
    return bench


def _module(place: str) -> ModuleType:
    return importlib.import_module(f"tests.bench.{place.partition('.')[0]}")


if __name__ == "__main__":
    for folder in ("engine", "backend"):
        sys.path.insert(0, str(ROOT / folder))
    sys.exit(main())
