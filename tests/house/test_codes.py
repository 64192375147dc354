"""Diagnostic codes: each documented once, used by the program, and triggered by a test."""

import ast
import re
from pathlib import Path

from coloop.spec import diagnostics
from coloop.spec.diagnostics import CODES

ROOT = Path(__file__).resolve().parents[2]
DEFINED_IN = Path(diagnostics.__file__).resolve()
CODE = re.compile(r"^[a-z]+\.[a-z_]+$")


def _texts(folder: str, *suffixes: str) -> dict[Path, str]:
    return {
        path: path.read_text("utf-8")
        for suffix in suffixes
        for path in sorted((ROOT / folder).rglob(f"*{suffix}"))
        if path.resolve() not in (DEFINED_IN, Path(__file__).resolve())
    }


def _mentioned(texts: dict[Path, str]) -> set[str]:
    """Dotted words in quotes, or standing alone in a YAML list."""
    word = re.compile(r"[\"'\[ ]([a-z]+\.[a-z_]+)(?=[\"'\],]|$)", re.M)
    return {match for text in texts.values() for match in word.findall(text)}


def test_no_code_is_given_out_twice() -> None:
    table = DEFINED_IN.with_name("codes.yaml").read_text("utf-8")
    keys = re.findall(r"^([^\s#][^:]*):", table, re.M)

    assert len(keys) == len(CODES)
    assert sorted(keys) == sorted(set(keys))


def test_every_code_is_documented_in_a_sentence() -> None:
    for code, text in CODES.items():
        assert CODE.match(code), code
        assert text.endswith("."), code
        assert len(text) > 20, code


def test_no_two_codes_mean_the_same() -> None:
    assert len(set(CODES.values())) == len(CODES)


def test_every_code_is_used_by_the_program() -> None:
    used = _mentioned(_texts("engine", ".py") | _texts("backend", ".py"))
    kinds = {f"{family}.{kind}" for family in ("structure", "numbers") for kind in _problem_kinds()}

    assert sorted(set(CODES) - used - kinds) == []


def test_every_code_is_triggered_by_a_test() -> None:
    named = _mentioned(_texts("tests", ".py", ".yaml"))

    assert sorted(set(CODES) - named) == []


def _problem_kinds() -> set[str]:
    """First arguments of `problem(...)`: errors of single fields are made from these."""
    kinds: set[str] = set()
    for text in _texts("engine/coloop/spec", ".py").values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "problem":
                kinds |= {
                    part.value
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    return kinds
