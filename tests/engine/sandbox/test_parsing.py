"""The user's Python is parsed by one function, which raises SyntaxError for whatever is wrong."""

import ast
from typing import Any

import pytest

from coloop.sandbox.code_files import needed_by
from coloop.sandbox.inside import parsing
from coloop.sandbox.inside.parsing import ATTEMPTS, parse_code
from coloop.spec.names import returned_keys
from coloop.validate.texts import names_in_function

NESTED = {
    "operators": "+".join(["x"] * 100_000),
    "signs": "-" * 100_000 + "1",
    "attributes": "x" + ".y" * 100_000,
    "branches": "if x: pass\n" + "elif x: pass\n" * 20_000,
}


@pytest.mark.parametrize("code", NESTED.values(), ids=NESTED)
def test_code_that_is_nested_too_deeply_is_a_syntax_error(code: str) -> None:
    with pytest.raises(SyntaxError, match="nested too deeply"):
        parse_code(code)

    assert needed_by(code) == []
    assert returned_keys(code) is None
    found = names_in_function(code, "write")
    assert (found.problem, found.is_syntax) == ("it is nested too deeply", True)


@pytest.mark.parametrize("code", ["x = '\ud800'", "x = 1\0"], ids=["half a character", "null"])
def test_code_that_is_no_text_is_a_syntax_error(code: str) -> None:
    with pytest.raises(SyntaxError):
        parse_code(code)


def test_what_parses_and_does_not_compile_is_told_with_its_line() -> None:
    assert len(parse_code("x = 1\nreturn x").body) == 2

    with pytest.raises(SyntaxError) as caught:
        parse_code("x = 1\nreturn x", is_compiled=True)
    assert (caught.value.lineno, caught.value.msg) == (2, "'return' outside function")


@pytest.mark.parametrize("failures", [1, ATTEMPTS - 1])
def test_a_fault_of_python_while_another_thread_parses_is_tried_again(
    failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, left = ast.parse, [failures]

    def faulty(code: str) -> Any:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=74, after=63)")
        return parse(code)

    monkeypatch.setattr(parsing.ast, "parse", faulty)

    assert len(parse_code("x = 1").body) == 1
    assert left == [0]


def test_a_fault_of_python_that_stays_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(code: str) -> Any:
        raise SystemError("AST constructor recursion depth mismatch (before=74, after=63)")

    monkeypatch.setattr(parsing.ast, "parse", faulty)

    with pytest.raises(SystemError):
        parse_code("x = 1")
