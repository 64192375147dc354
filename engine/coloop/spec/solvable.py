"""Settings that only say how work is carried out, which fitting into memory may set.

Fields say it themselves (`setting(solver=True)`); nothing else lists them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from coloop.spec.graph import LoopSpec
from coloop.spec.rollout import Rollout
from coloop.spec.training import Training

SECTIONS: dict[str, type[BaseModel]] = {"training": Training, "rollout": Rollout}
"""Sections of a node that have such fields."""


def is_solvable(path: str) -> bool:
    """Whether fitting may set what a path names: `nodes.actor.training.micro_batch`."""
    head, _, rest = path.partition(".")
    section, _, name = rest.partition(".")[2].partition(".")
    return head == "nodes" and name in SOLVABLE.get(section, ())


def solvable_values(spec: LoopSpec) -> dict[str, Any]:
    """By path, what a loop says of such settings; what it leaves open is not in it."""
    found: dict[str, Any] = {}
    for node, data in spec.nodes.items():
        for section, names in SOLVABLE.items():
            said = getattr(data, section, None)
            for name in names:
                if said is not None and getattr(said, name, None) is not None:
                    found[f"nodes.{node}.{section}.{name}"] = getattr(said, name)
    return found


def _names(section: type[Any]) -> tuple[str, ...]:
    return tuple(
        name
        for name, field in section.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("x-solver")
    )


SOLVABLE: dict[str, tuple[str, ...]] = {name: _names(one) for name, one in SECTIONS.items()}
"""Section of a node to the fields of it that fitting may set."""


LOCKS = "$locks"
"""What a layout keeps them under; no node can have this name."""


def locks_of(spec: LoopSpec) -> tuple[str, ...]:
    """Paths that a person locked in the editor: fitting leaves them as they are."""
    said = spec.layout.get(LOCKS)
    return tuple(one for one in said if isinstance(one, str)) if isinstance(said, list) else ()
