"""Every code that coloop can report has a page of help, and every page is of such a code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from coloop.explain.codes import all_codes, explain
from coloop.runtime.health.symptoms import BY_CODE
from coloop.spec.diagnostics import CODES

ENGINE = Path(__file__).resolve().parents[2] / "engine" / "coloop"
CODE = re.compile(r"^[a-z_]+\.[a-z_]+$")
NO_CODES = {"error", "control.jsonl", "events.jsonl", "plan.json", "run.lock"}
OF_ALERTS = {"events", "checkpoint", "cluster", "credit", "edit", "evaluation", "plan", "reward"}
OF_ALERTS |= {"rows", "run", "search", "buffer", "control"}
IN_OUTCOMES = {"data", "filter", "learn", "prompts", "verifier"}
"""Families of alerts that roles put into their outcomes as (code, message)."""


def reported() -> set[str]:
    """Codes of errors, of alerts, and of what is made where it happens."""
    found = set(CODES) | set(BY_CODE)
    for path in sorted(ENGINE.rglob("*.py")):
        if path.parent.name not in ("spec", "validate", "explain"):
            found.update(_codes_in(ast.parse(path.read_text("utf-8"))))
    return found - NO_CODES


def _codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                is_error = name == "code"
                is_alert = name.isupper() and text.partition(".")[0] in OF_ALERTS | IN_OUTCOMES
                if CODE.match(text) and (is_error or is_alert):
                    yield text
            case ast.Call(
                func=ast.Attribute(attr="alert"), args=[_, ast.Constant(value=str(text)), *_]
            ):
                yield text
            case (
                ast.Tuple(elts=[ast.Constant(value=str(text)), _])
                | ast.Tuple(elts=[_, ast.Constant(value=str(text)), _])
                | ast.Call(func=ast.Name(id="Fits"), args=[_, ast.Constant(value=str(text)), *_])
            ) if CODE.match(text) and text.partition(".")[0] in IN_OUTCOMES:
                yield text
            case ast.keyword(arg="code", value=ast.Constant(value=str(text))) if CODE.match(text):
                yield text


def said() -> set[str]:
    """Every text of the engine that could be a code."""
    texts = (path.read_text("utf-8") for path in sorted(ENGINE.rglob("*.py")))
    named = {found for text in texts for found in re.findall(r"\"([a-z_]+\.[a-z_]+)\"", text)}
    return named | set(CODES) | set(BY_CODE)


def test_every_code_that_is_reported_has_a_page() -> None:
    assert sorted(reported() - set(all_codes())) == []


def test_every_page_is_of_a_code_that_the_engine_knows() -> None:
    kinds = {code for code in CODES if code.startswith(("structure.", "numbers."))}

    assert sorted(set(all_codes()) - said() - kinds) == []


def test_a_page_says_all_that_it_should() -> None:
    for code in all_codes():
        page = explain(code)
        assert page is not None
        for text in (page.title, page.means, page.matters):
            assert text.endswith((".", "?", "!")), (code, text)
            assert len(text) > 12, (code, text)
        assert page.fix, code


def test_a_code_stands_in_one_file() -> None:
    assert len(set(all_codes())) == len(all_codes())
