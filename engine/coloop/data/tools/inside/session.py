"""A Python session: each piece of code sees the variables of those before it.

If the last statement is an expression, its value is shown after the output, as in a console. If
the code fails, the error is shown with the line at which it occurred.
"""

import ast

# Modules that code is likely to name: where no file can be read later, they are read now.
import bisect  # noqa: F401
import calendar  # noqa: F401
import cmath  # noqa: F401
import collections  # noqa: F401
import datetime  # noqa: F401
import decimal  # noqa: F401
import fractions  # noqa: F401
import functools  # noqa: F401
import heapq  # noqa: F401
import itertools  # noqa: F401
import json  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import random  # noqa: F401
import re  # noqa: F401
import statistics  # noqa: F401
import string  # noqa: F401
import time  # noqa: F401
from typing import Any

NAME = "<code>"
LONGEST = 64 * 1024
"""Maximum characters shown of a value."""

_space: dict[str, Any] = {"__name__": "__main__"}


def run(code: str) -> dict[str, Any]:
    """Run code: `shown`, the value or the error as text, and `failed`."""
    try:
        tree = ast.parse(code, NAME)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, NAME, "exec"), _space)
        if last is None:
            return {"shown": "", "failed": False}
        assert isinstance(last, ast.Expr)
        value = eval(compile(ast.Expression(last.value), NAME, "eval"), _space)
        return {"shown": "" if value is None else _writable(repr(value)), "failed": False}
    except SystemExit:
        return {"shown": "", "failed": False}
    except BaseException as error:
        return {"shown": _writable(_told(error)), "failed": True}


def _told(error: BaseException) -> str:
    """The error and the line of the code that raised it."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    here = error.__traceback__
    while here is not None:
        if here.tb_frame.f_code.co_filename == NAME:
            line = here.tb_lineno
        here = here.tb_next
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    where = f" (line {line})" if line is not None else ""
    return f"{type(error).__name__}: {reason}{where}" if reason else type(error).__name__ + where


def _writable(text: str) -> str:
    return text[:LONGEST].encode("utf-8", "replace").decode("utf-8")
