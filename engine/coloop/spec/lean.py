"""Whether models are built without what only forms and documentation show.

A description of every field, read from the source, and validators of all 150 models cost most of
the start of a process. A command that checks one loop and ends calls `build_lean` before it imports
any model: descriptions are left out, and a model is built when it is first used. All other
processes, such as the service and runs, build everything at once.
"""

import ast
import inspect
import sys
from functools import lru_cache
from textwrap import dedent

_state = {"is_lean": False}


def build_lean() -> None:
    """Applies to models that are defined from now on."""
    _state["is_lean"] = "coloop.spec.base" not in sys.modules


def is_lean() -> bool:
    return _state["is_lean"]


@lru_cache(maxsize=64)
def docstrings_of(section: type) -> dict[str, str]:
    """The texts below the fields of a class, with those of its bases; for messages of errors."""
    texts: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        if not owner.__module__.startswith("coloop."):
            continue
        body = ast.parse(dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                texts[field.target.id] = inspect.cleandoc(below.value.value)
    return texts
