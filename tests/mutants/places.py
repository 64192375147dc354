"""The rooms that mutants are drawn from, how many of each, and the tests that answer for them."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEED = 26
ENGINE = "engine/coloop"


@dataclass(frozen=True)
class Room:
    """Sources of one subject.

    Attributes:
        count: mutants drawn from it.
        sources: globs from the root of the checkout.
        near: tests of the room itself; of these the mutant's own package is asked first.
        far: tests that use the room.
    """

    count: int
    sources: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...] = ()


def _of(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{ENGINE}/{folder}/{name}.py" for name in names)


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/{name}" for name in names)


ROOMS = {
    "credit": Room(
        count=35,
        sources=(
            *_of("algorithms", "advantages", "shapes", "masks"),
            *_of(
                "algorithms/recipes",
                "credit",
                "combine",
                "estimators",
                "balance",
                "rounds",
                "several",
            ),
            *_of("algorithms/recipes", "drawn", "kl_control", "rows"),
            *_of("runtime/roles/credit", "credit", "credit_*"),
        ),
        near=_tests("algos", "recipes", "roles", "explain"),
        far=_tests("runs", "cases", "training", "hosts"),
    ),
    "losses": Room(
        count=35,
        sources=(
            *_of("algorithms", "losses", "preference", "kl", "value", "correction", "aggregation"),
            *_of("algorithms", "labels"),
            *_of(
                "algorithms/recipes",
                "policy",
                "preference",
                "imitation",
                "implicit",
                "labels",
                "scores",
            ),
            *_of("algorithms/recipes", "value", "class_weights", "choices"),
        ),
        near=_tests("algos", "recipes", "training", "explain"),
        far=_tests("roles", "runs", "cases", "hosts"),
    ),
    "scheduler": Room(
        count=30,
        sources=_of("runtime/**", "scheduler", "steps", "arrivals", "window", "takes", "slices")
        + _of("runtime/**", "rounds", "regions", "lanes", "units", "actions", "triggers", "flights")
        + _of("runtime/**", "early", "control", "recovery", "checkpoint", "session", "pick_up"),
        near=_tests("runtime"),
        far=_tests("roles", "runs", "cases"),
    ),
    "checks": Room(
        count=35,
        sources=_of("validate", "*") + _of("plan", "*"),
        near=_tests("validate", "plan"),
        far=(*_tests("estimate", "sizing", "spec", "cli", "runs", "roles"), "tests/presets"),
    ),
    "sandbox": Room(
        count=20,
        sources=_of("sandbox", "*") + _of("sandbox/inside", "*"),
        near=("tests/engine/sandbox", "tests/attack/test_sandbox.py"),
        far=(*_tests("rewards", "tools", "cases", "validate", "runs"), "tests/attack"),
    ),
    "service": Room(
        count=25,
        sources=("backend/coloop_server/**/*.py",),
        near=("tests/backend",),
        far=("tests/attack", "tests/e2e"),
    ),
    "page commands": Room(
        count=20,
        sources=("frontend/src/state/commands/*.ts",),
        near=(),
    ),
}
LEFT_OUT = ("/migrations/", "schemas.py", "__main__.py", "/__init__.py")
"""Sources of a room without decisions of their own: tables, shapes of bodies, entry points."""


def sources(room: Room, root: Path = ROOT) -> list[Path]:
    """Source files of a room, in a fixed order; those that were moved away are missing."""
    found = {path for glob in room.sources for path in root.glob(glob)}
    return sorted(path for path in found if not any(part in str(path) for part in LEFT_OUT))
