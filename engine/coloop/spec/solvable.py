"""Settings that only say how work is carried out, which fitting into memory may set.

Fields say it themselves (`setting(solver=True)`); nothing else lists them.
"""

from typing import Any

from coloop.spec.base import Section, marks_of
from coloop.spec.graph import LoopSpec
from coloop.spec.rollout import Rollout
from coloop.spec.training import Training

SECTIONS: dict[str, type[Section]] = {"training": Training, "rollout": Rollout}


def is_solvable(path: str) -> bool:
    """Whether fitting may set what a path names: `nodes.actor.training.micro_batch`."""
    head, _, rest = path.partition(".")
    section, _, name = rest.partition(".")[2].partition(".")
    return head == "nodes" and name in SOLVABLE.get(section, ())


def solvable_values(spec: LoopSpec) -> dict[str, Any]:
    """By path, the values of such settings that the loop sets."""
    values: dict[str, Any] = {}
    for name, node in spec.nodes.items():
        for section, fields in SOLVABLE.items():
            settings = getattr(node, section, None)
            for field in fields:
                if (value := getattr(settings, field, None)) is not None:
                    values[f"nodes.{name}.{section}.{field}"] = value
    return values


SOLVABLE: dict[str, tuple[str, ...]] = {
    name: tuple(field for field, (_, marks) in marks_of(section).items() if "x-solver" in marks)
    for name, section in SECTIONS.items()
}

LOCKS = "$locks"
"""Key of the locks in a layout; no node can have this name."""


def locks_of(spec: LoopSpec) -> tuple[str, ...]:
    """Paths that a person locked in the editor: fitting leaves them as they are."""
    locks = spec.layout.get(LOCKS)
    return tuple(path for path in locks if isinstance(path, str)) if isinstance(locks, list) else ()
