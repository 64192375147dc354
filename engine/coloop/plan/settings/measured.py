"""Measured over predicted stage times and text lengths of earlier runs, by which later predictions
are corrected.

    COLOOP_MEASURED   JSON file with the ratios, or `off`; else coloop/measured.json below
                      XDG_CACHE_HOME or ~/.cache

A run adds the ratios of its stages when it ends, `coloop calibrate` those of a small loop. A ratio
belongs to a machine (hardware and versions), a kind of stage (`generate`, `learn`, `python` ...)
and a subject: the model, or the code. A prediction is multiplied by the median of the last ratios
of its subject; without any, of all subjects of the kind, unless they have nothing in common, as
Python code.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from statistics import median

from coloop.spec.lean import record

PLACE = "COLOOP_MEASURED"
OFF = "off"
KEPT = 8
"""Ratios kept of each subject, the last ones."""
BOUNDS = (0.1, 10.0)
"""Ratios outside say that the prediction, or the measurement, is of something else."""

Ratios = Mapping[str, Mapping[str, Mapping[str, list[float]]]]
"""By machine, kind and subject."""


@record
class Timed:
    """What a stage's time depends on."""

    machine: str
    kind: str
    subject: str
    is_alike: bool = True
    """Whether ratios of other subjects of the kind say something about this one."""


@record
class Correction:
    factor: float = 1.0
    """Measured over predicted seconds."""
    runs: int = 0
    """Ratios that the factor is the median of."""
    is_exact: bool = False
    """Whether these are of the same subject."""


UNCORRECTED = Correction()


def lengths_as(loop: str, node: str, most: int) -> Timed:
    """What the mean length of completions depends on: measured over assumed tokens of a node, in
    all runs of a loop, on any machine."""
    subject = f"{loop}, {node}, at most {most} tokens"
    return Timed(machine="any", kind="length", subject=subject, is_alike=False)


@record
class Measured:
    """The file as it was at one moment."""

    path: Path
    changed: int
    """Its modification time in ns; 0 if it is not there."""

    def knows(self, machine: str) -> bool:
        return machine in _ratios(self.path, self.changed)

    def correction(self, timed: Timed) -> Correction:
        subjects = _ratios(self.path, self.changed).get(timed.machine, {}).get(timed.kind, {})
        own = subjects.get(timed.subject)
        if own:
            return Correction(factor=median(own), runs=len(own), is_exact=True)
        others = [ratio for some in subjects.values() for ratio in some] if timed.is_alike else []
        return Correction(factor=median(others), runs=len(others)) if others else UNCORRECTED


def measured_here() -> Measured | None:
    """None if switched off, or if there is no folder for it."""
    named = os.environ.get(PLACE)
    if named == OFF:
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(named) if named else Path(home) / "coloop" / "measured.json"
    if not path.is_absolute():
        return None
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return Measured(path=path, changed=changed)


def add_measured(measured: Measured, found: Iterable[tuple[Timed, float]]) -> None:
    """Add ratios. A file that cannot be written is left as it is: predictions stay uncorrected."""
    kept = [(timed, ratio) for timed, ratio in found if BOUNDS[0] <= ratio <= BOUNDS[1]]
    if not kept:
        return
    path = measured.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ratios = json.loads(json.dumps(_read(path)))
            for timed, ratio in kept:
                kinds = ratios.setdefault(timed.machine, {}).setdefault(timed.kind, {})
                kinds[timed.subject] = [*kinds.get(timed.subject, ()), round(ratio, 4)][-KEPT:]
            aside = path.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(ratios, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            aside.replace(path)
    except OSError:
        pass


@lru_cache(maxsize=4)
def _ratios(path: Path, changed: int) -> Ratios:
    return _read(path) if changed else {}


def _read(path: Path) -> Ratios:
    """Nothing where the file is missing or was not written here."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(machine): {
                str(kind): {
                    str(subject): [float(ratio) for ratio in ratios]
                    for subject, ratios in subjects.items()
                }
                for kind, subjects in kinds.items()
            }
            for machine, kinds in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
