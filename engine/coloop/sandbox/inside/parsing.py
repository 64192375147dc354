"""Parses the user's Python; nothing is run."""

import ast
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

ATTEMPTS: Final = 3


def parse_code(code: str, *, is_compiled: bool = False) -> ast.Module:
    """The syntax tree of Python source.

    While another thread parses, CPython 3.11 sometimes raises SystemError for valid code
    (python/cpython#106905), so it is tried again.

    Args:
        is_compiled: also compile it, which finds errors such as a `return` outside a function.

    Raises:
        SyntaxError: it is invalid, nested too deeply, or has characters that cannot be read.
    """

    def parse() -> ast.Module:
        tree = ast.parse(code)
        if is_compiled:
            compile(tree, "<loop>", "exec")
        return tree

    return _guarded(parse)


def parse_expression(code: str) -> ast.Expression:
    """As `parse_code`, for a single expression."""
    return _guarded(lambda: ast.parse(code, mode="eval"))


def _guarded(parse: Callable[[], T]) -> T:
    attempt = 1
    while True:
        try:
            return parse()
        except SystemError:
            if attempt == ATTEMPTS:
                raise
            attempt += 1
        except (RecursionError, MemoryError):
            raise SyntaxError("it is nested too deeply") from None
        except ValueError as error:
            raise SyntaxError(f"it cannot be read: {error}") from None
