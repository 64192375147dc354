"""Whether models are built without what only forms and documentation show.

A description of every field, read from the source, and validators of all 150 models cost most of
the start of a process. A command that checks one loop and ends calls `build_lean` before it imports
any model: descriptions are left out, and a model is built when it is first used. All other
processes, such as the service and runs, build everything at once.
"""

import ast
import inspect
import os
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

_state = {"is_lean": False}


def build_lean() -> None:
    """Applies to models and records that are defined from now on. Plugins of pydantic, which watch
    services, are not looked for."""
    _state["is_lean"] = "coloop.spec.base" not in sys.modules
    if is_lean():
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def is_lean() -> bool:
    return _state["is_lean"]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(section: type[T]) -> type[T]:
    """A frozen dataclass with slots and keywords only. Half of what makes one guards its fields and
    prints it; lean, both are left out."""
    if is_lean():
        return dataclass(slots=True, kw_only=True, unsafe_hash=True, repr=False)(section)
    return dataclass(frozen=True, slots=True, kw_only=True)(section)


@lru_cache(maxsize=64)
def docstrings_of(section: type) -> dict[str, str]:
    """The texts below the fields of a class, with those of its bases; for messages of errors."""
    texts: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        if not owner.__module__.startswith("coloop."):
            continue
        body = ast.parse(dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)
        for line, below in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                texts[line.target.id] = inspect.cleandoc(below.value.value)
    return texts
