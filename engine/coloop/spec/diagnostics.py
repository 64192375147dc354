"""Findings about a loop: what was found, what is expected, where, and how to fix it.

A diagnostic with a `node` has its `field` inside that node; without a node `field` is a full path
such as `edges.3` or `schedule.phases.1.steps`. Lines and columns count from 1.
"""

import difflib
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from coloop.spec.base import FrozenRecord, load_yaml

Op = Literal["set", "remove", "insert", "rename", "add_edge", "remove_edge"]


class Severity(StrEnum):
    """How serious a finding is."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Change(FrozenRecord, extra="forbid"):
    """One edit of a loop document, by path."""

    op: Op
    """`set` or `remove` a value, `insert` before a list position, `rename` a key, or add or remove
    an edge."""
    path: str
    """Path of what is changed, e.g. `nodes.actor.training.optimizer.lr` or `edges.3`."""
    value: Any = None
    """The new value (`rename`: the new key; `add_edge`: the edge as text or mapping)."""


class Fix(FrozenRecord, extra="forbid"):
    """A suggested fix that an editor can apply."""

    title: str
    """Short title, e.g. for a button."""
    changes: tuple[Change, ...]
    """The edits, applied in this order."""

    @classmethod
    def set(cls, title: str, path: str, value: Any) -> "Fix":
        return cls(title=title, changes=(Change(op="set", path=path, value=value),))

    @classmethod
    def remove(cls, title: str, path: str) -> "Fix":
        return cls(title=title, changes=(Change(op="remove", path=path),))


class Diagnostic(FrozenRecord, extra="forbid"):
    """A finding of the checks of a loop."""

    code: str
    """Stable code, e.g. `learning.no_goal`; the catalog has all codes with their meaning."""
    severity: Severity = Severity.ERROR
    """Errors prevent a run; warnings deserve attention; hints can be ignored."""
    message: str
    """What was found and what is expected."""
    hint: str | None = None
    """What to change; null if there is no advice."""
    node: str | None = None
    """Node that it is about; null if it is about no single node."""
    field: str | None = None
    """Path inside the node, e.g. `rollout.top_p`; the full path, e.g. `edges.3`, if `node` is
    null."""
    line: int | None = None
    """Line of the YAML text, from 1; null if not known."""
    column: int | None = None
    """Column of the YAML text, from 1; null if not known."""
    text_line: int | None = None
    """Line within a text in the field, such as code or a template, from 1; otherwise null."""
    fixes: tuple[Fix, ...] = ()
    """Suggested fixes; one of them is enough."""

    @field_validator("code")
    @classmethod
    def _is_listed(cls, code: str) -> str:
        if code not in CODES:
            raise ValueError(f"diagnostic code {code!r} is not listed in CODES")
        return code

    @property
    def path(self) -> str | None:
        """The full path that it is about, e.g. `nodes.actor.rollout.top_p`."""
        if self.node is None:
            return self.field
        return f"nodes.{self.node}" + (f".{self.field}" if self.field else "")

    @property
    def is_error(self) -> bool:
        """Whether it prevents a run from starting."""
        return self.severity is Severity.ERROR

    def describe(self) -> str:
        """One line for a terminal: place, severity, message, hint, code."""
        position = f"{self.line}:{self.column}: " if self.line is not None else ""
        where = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{position}{self.severity.value}: {where}{self.message}{hint} [{self.code}]"


class Report(FrozenRecord, extra="forbid"):
    """All findings about one spec."""

    diagnostics: tuple[Diagnostic, ...] = ()
    """In the order of the checks."""

    @property
    def ok(self) -> bool:
        """Whether there is no error (warnings are allowed)."""
        return not any(item.is_error for item in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.severity is Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        """The shape of `coloop validate --json`."""
        return {
            "ok": self.ok,
            "diagnostics": [item.model_dump(mode="json") for item in self.diagnostics],
        }


def error(
    code: str,
    at: str | None,
    message: str,
    hint: str | None = None,
    *fixes: Fix,
    severity: Severity = Severity.ERROR,
    text_line: int | None = None,
) -> Diagnostic:
    """One finding.

    Args:
        at: the full path that it is about, e.g. `nodes.actor.rollout.top_p` or `edges.3`.
    """
    node, field = None, at
    if at is not None and at.startswith("nodes."):
        _, node, *rest = at.split(".", 2)
        field = rest[0] if rest else None
    return Diagnostic(
        code=code,
        severity=severity,
        message=message,
        hint=hint,
        node=node,
        field=field,
        text_line=text_line,
        fixes=fixes,
    )


def at(
    path: tuple[str | int, ...],
    code: str,
    message: str,
    hint: str | None = None,
    *,
    place: tuple[int, int] | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Diagnostic:
    """An error at a full path, split into node and field under `nodes`. `place`: line, column."""
    is_node = len(path) >= 2 and path[0] == "nodes"
    return Diagnostic(
        code=code,
        message=message,
        hint=hint,
        node=str(path[1]) if is_node else None,
        field=".".join(map(str, path[2:] if is_node else path)) or None,
        line=None if place is None else place[0],
        column=None if place is None else place[1],
        fixes=fixes,
    )


warning = partial(error, severity=Severity.WARNING)
notice = partial(error, severity=Severity.HINT)


def likeness(word: str, option: str) -> float:
    """How similar two words are, from 0 to 1, ignoring case."""
    return difflib.SequenceMatcher(None, word[:80].lower(), option.lower()).ratio()


def closest(word: str, options: Iterable[str], limit: int = 3) -> list[str]:
    """The options that are most similar to `word`, best first."""
    names = [str(option) for option in options]
    lowered = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(str(word)[:80].lower(), list(lowered), n=limit, cutoff=0.55)
    return [lowered[name] for name in near]


def did_you_mean(word: str, options: Iterable[str]) -> str | None:
    """`did you mean \\`x\\`?`, or the short list of what is known, or nothing."""
    names = [str(option) for option in options]
    near = closest(word, names)
    if near:
        least = likeness(str(word), near[0]) - 0.08
        likely = [name for name in near[:2] if likeness(str(word), name) >= least]
        return "did you mean " + " or ".join(f"`{name}`" for name in likely) + "?"
    if 0 < len(names) <= 24:
        return "known: " + ", ".join(names)
    return None


CODES: dict[str, str] = load_yaml(Path(__file__).with_name("codes.yaml"))
"""Codes of findings and what they mean."""

UNFINISHED: frozenset[str] = frozenset(
    {
        *("structure.missing_edge", "structure.output_without_input", "structure.unused_node"),
        *("learning.no_algorithm", "learning.algorithm_unused", "learning.missing_reference"),
        *("learning.missing_values", "learning.missing_prior", "learning.adapter_idle"),
        *("learning.nothing_to_train", "learning.frozen_scratch", "learning.no_goal"),
    }
)
"""Codes of what is missing only because a loop is not finished yet. They keep their severity, but
are shown as next steps rather than as mistakes."""
