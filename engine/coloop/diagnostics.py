"""Findings about a loop: what was found, what is expected, where, and how to mend it.

A `Diagnostic` has a stable `code` out of `CODES`; a code that is not listed there is refused when
the diagnostic is made. This module knows nothing of the spec: places are paths in words of the
YAML.

Invariants: a diagnostic with a `node` has its `field` inside that node; without a node `field` is
a full path such as `edges.3` or `schedule.phases.1.steps`. Lines and columns count from 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator


class Severity(StrEnum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Change(BaseModel):
    """One edit of a loop document, in words of its paths."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    op: Literal["set", "remove", "insert", "rename", "add_edge", "remove_edge"]
    """`set`, `remove` a value; `insert` before a list position; `rename` a key; edges by text."""
    path: str
    """What is changed, e.g. `nodes.actor.training.optimizer.lr`, `edges.3`."""
    value: Any = None
    """The new value (`rename`: the new key; `add_edge`: the edge as text or mapping)."""


class Fix(BaseModel):
    """A repair that one click applies."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    title: str
    """What the button says."""
    changes: tuple[Change, ...]
    """The edits, applied in this order."""


class Diagnostic(BaseModel):
    """One finding about a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    code: str
    """A key of `CODES`."""
    severity: Severity = Severity.ERROR
    """Errors stop a run; warnings want a look; hints cost nothing to ignore."""
    message: str
    """What was found and what is expected."""
    hint: str | None = None
    """What to change."""
    node: str | None = None
    """The node it is about."""
    field: str | None = None
    """The path inside the node, or the full path where there is no node."""
    line: int | None = None
    """Line of the YAML text, from 1."""
    column: int | None = None
    """Column of the YAML text, from 1."""
    fixes: tuple[Fix, ...] = ()
    """Repairs that one click applies."""

    @field_validator("code")
    @classmethod
    def _is_listed(cls, code: str) -> str:
        if code not in CODES:
            raise ValueError(f"diagnostic code {code!r} is not listed in CODES")
        return code

    @property
    def path(self) -> str | None:
        """The full path of the place, e.g. `nodes.actor.rollout.top_p`."""
        if self.node is None:
            return self.field
        return f"nodes.{self.node}" + (f".{self.field}" if self.field else "")

    @property
    def is_error(self) -> bool:
        """Whether a run must not start with it."""
        return self.severity is Severity.ERROR

    def describe(self) -> str:
        """One line for a terminal: place, severity, message, hint, code."""
        place = f"{self.line}:{self.column}: " if self.line is not None else ""
        where = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity.value}: {where}{self.message}{hint} [{self.code}]"


class Report(BaseModel):
    """All findings about one spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    diagnostics: tuple[Diagnostic, ...] = ()
    """In the order of the checks."""

    @property
    def ok(self) -> bool:
        """Whether there is no error (warnings are allowed)."""
        return not any(found.is_error for found in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop a run."""
        return tuple(found for found in self.diagnostics if found.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that want a look."""
        return tuple(found for found in self.diagnostics if found.severity is Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        """The shape of `coloop validate --json`."""
        return {
            "ok": self.ok,
            "diagnostics": [found.model_dump(mode="json") for found in self.diagnostics],
        }


def closest(word: str, options: Iterable[str], limit: int = 3) -> list[str]:
    """The options that look like `word`, best first."""
    names = [str(option) for option in options]
    lowered = {name.lower(): name for name in reversed(names)}
    found = difflib.get_close_matches(str(word)[:80].lower(), list(lowered), n=limit, cutoff=0.55)
    return [lowered[name] for name in found]


def did_you_mean(word: str, options: Iterable[str]) -> str | None:
    """`did you mean \\`x\\`?`, or the short list of what is known, or nothing."""
    names = [str(option) for option in options]
    near = closest(word, names)
    if near:
        return "did you mean " + " or ".join(f"`{name}`" for name in near[:2]) + "?"
    if 0 < len(names) <= 24:
        return "known: " + ", ".join(names)
    return None


CODES: dict[str, str] = {
    # The text itself.
    "yaml.syntax": "The text is no YAML; the message says where reading stopped.",
    "yaml.empty": "The text holds no document.",
    "yaml.not_a_mapping": "The document is a list or a single value; a loop is a mapping.",
    "yaml.too_large": "The text is longer than a loop can be.",
    "yaml.too_deep": "Values are nested deeper than a loop can be.",
    "yaml.too_many_values": "The text, aliases written out, holds more values than a loop can.",
    "yaml.duplicate_key": "A key stands twice in one mapping.",
    "yaml.key": "A key is no plain text.",
    "yaml.tab": "A tab stands where YAML wants spaces.",
    "yaml.tag": "A YAML tag (`!name`) is used; the loop language has none.",
    "yaml.alias": "An alias (`*name`) has no anchor before it, or stands inside its own anchor.",
    "yaml.merge_key": "A merge key (`<<`) is used, which YAML 1.2 does not have.",
    "yaml.several_documents": "The text holds more than one document.",
    "yaml.not_finite": "A number is not finite (NaN or infinity) or too large.",
    # The version of the language.
    "version.missing": "The key `coloop`, the version of the language, is missing.",
    "version.newer": "The file is of a newer version of the language than this program.",
    "version.unknown": "The version of the language is no number that was ever given out.",
    # Fields and values.
    "structure.unknown_field": "A key that this part of the language does not have.",
    "structure.missing_field": "A key that must be there is missing.",
    "structure.wrong_type": "A value of the wrong type, e.g. text where a number is expected.",
    "structure.unknown_kind": "A node kind that does not exist.",
    "structure.unknown_value": "A word that is not among the allowed ones.",
    "structure.bad_value": "A value of the right type that cannot be meant.",
    "structure.bad_name": "A node, phase or pool name that is not allowed.",
    "structure.bad_edge": "An edge that is not written as `node.port -> node.port`.",
    "structure.conflict": "Two fields that exclude each other, or one that does not belong here.",
    "structure.unknown_path": "A path that names no value of the loop.",
    "structure.not_hot": "A path in `set`, `anneal`, a trigger or an edit that is fixed in a run.",
    "numbers.out_of_range": "A number outside of its bounds.",
    # Lineage: which rows descend from which.
    "lineage.missing_aggregate": "A score has to rise to an ancestor, or cross to another branch, without `aggregate`.",
    "lineage.no_common_ancestor": "Rows are to be joined or scored that descend from nothing in common.",
    "lineage.aggregate_without_rows": "A score is to be aggregated where no rows receive it.",
    "lineage.gather_without_ancestor": "Rows are to be gathered by a node from whose rows they do not descend.",
    # What the compiler and a run say.
    "run.not_yet_runnable": "The loop is valid, but a part of it is drawn and checked only; this version cannot run it.",
}
