"""Loops to rehearse: the examples of the language where present, and the presets."""

from pathlib import Path

from coloop.cli.rehearse import rehearse
from coloop.explain.rehearsal import RehearsalResult, rehearsed
from coloop.spec import presets
from coloop.spec.io import load

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT.parent / "shared" / "language" / "examples"
PRESETS = presets.presets_root() / "loops"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def told_of(path: Path, steps: int = 2) -> RehearsalResult:
    """What the rehearsal of a loop's file came to; raises `PlanRefused`."""
    spec, root = load(path), path.parent
    return rehearse(spec, rehearsed(spec, steps=steps, root=root), root=root)
