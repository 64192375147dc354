"""Runs a program of a policy with one test, in a sandbox, and returns what came out. Expected
results are not sent here, so that the program cannot read them.
"""

# Modules that programs are likely to name: where no file can be read later, they are read now.
import bisect  # noqa: F401
import cmath  # noqa: F401
import collections  # noqa: F401
import copy  # noqa: F401
import datetime  # noqa: F401
import decimal  # noqa: F401
import fractions  # noqa: F401
import functools  # noqa: F401
import heapq  # noqa: F401
import io
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import random  # noqa: F401
import re  # noqa: F401
import statistics  # noqa: F401
import string  # noqa: F401
import sys
import typing  # noqa: F401
from contextlib import redirect_stdout
from typing import Any

LONGEST = 100_000
"""Maximum characters of output."""


def judge(code: str, kind: str, test: str) -> dict[str, Any]:
    """`out` of one test: for `call` the value as Python source, for `statement` "True", for `input`
    the output; or `failed`: the error."""
    try:
        if kind == "input":
            return {"out": _printed(code, test)}
        space: dict[str, Any] = {"__name__": "program"}
        exec(compile(code, "<program>", "exec"), space)
        if kind == "statement":
            exec(compile(test, "<test>", "exec"), space)
            return {"out": "True"}
        return {"out": repr(_plain(eval(compile(test, "<test>", "eval"), space)))[:LONGEST]}
    except (Exception, SystemExit) as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}


def _printed(code: str, given: str) -> str:
    printed, before = io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    try:
        with redirect_stdout(printed):
            exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    finally:
        sys.stdin = before
    return printed.getvalue()[:LONGEST]


def _plain(value: Any) -> Any:
    """A value of built-in types, so that its repr can be parsed; arrays become lists."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    for single in (bool, int, float, str):
        if isinstance(value, single):
            return single(value)
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(_plain, value))
    return set(value) if isinstance(value, frozenset) else value
