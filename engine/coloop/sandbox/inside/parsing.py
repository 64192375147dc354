"""The user's Python as a syntax tree; nothing is run. Standard library alone."""

import ast
from contextlib import suppress
from typing import Final

ATTEMPTS: Final = 3


def parse_code(code: str, *, is_compiled: bool = False) -> ast.Module:
    """The syntax tree of a piece of Python.

    While another thread parses, CPython 3.11 sometimes raises SystemError for valid code
    (python/cpython#106905), so it is tried again.

    Args:
        is_compiled: compile it as well, which finds errors such as a `return` outside a function.

    Raises:
        SyntaxError: it is not valid Python, is nested too deeply, or is not text in UTF-8.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(SystemError):
            return _parsed(code, is_compiled)
    return _parsed(code, is_compiled)


def _parsed(code: str, is_compiled: bool) -> ast.Module:
    try:
        tree = ast.parse(code)
        if is_compiled:
            compile(tree, "<loop>", "exec")
    except (RecursionError, MemoryError):
        raise SyntaxError("it is nested too deeply") from None
    except ValueError as error:
        raise SyntaxError(f"it cannot be read: {error}") from None
    return tree
