"""What no tracked file may hold: names without meaning, unfinished places, paths of one machine."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EMPTY_NAMES = {"utils", "helpers", "common", "misc", "manager", "util", "helper"}
OPTION = re.compile(r"""[\s`'"](--[a-z][a-z-]+)""")
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
CLEANED = ("cli",)
"""Rooms of the engine whose locals are named by the thing; the set grows."""
CLEANED_PAGES = (
    "*.md",
    "presets/*.yaml",
    "engine/coloop/explain/pages/*.yaml",
    ":!docs/glossary.md",
)
RETIRED_WORDS = re.compile(
    r"\b(?:un)?mend(?:s|ed|ing)?\b|\bforetold\b|[Bb]ehind (?:the|no|a) wall\b|\bwhat hands on\b"
    r"|\bSee the module\.|\bat the size of a desk\b|\bgo(?:es)? on from\b"
)
RETIRED_ON_THE_PAGE = re.compile(
    r"\b(?:un)?mend(?:s|ed|ing)?\b|\bdo(?:es)? not read\b|\bbehind (?:the|no|a) wall\b"
    r"|\bwalled in\b|\bno (?:stronger )?wall\b|\bgo(?:es)? on\b|\bwould notice\b"
    r"|\bstumbled\b|\blast readable state\b|\bfor good\b|\bat work on it\b|\bis no (?:text|whole)\b"
    r"|\bthere is no such (?:loop|run)\b|\bpaid (?:most|least)\b|\ball the same\b",
    re.IGNORECASE,
)
TYPESCRIPT_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)
RETIRED_LOCALS = {"one", "told", "said"}
UNFINISHED = re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError|except Exception: *pass")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_no_module_has_an_empty_name() -> None:
    sources = tracked("engine/*.py", "backend/*.py", "frontend/src/*.ts", "frontend/src/*.tsx")

    assert not [str(path) for path in sources if path.stem in EMPTY_NAMES]


def test_nothing_is_left_unfinished() -> None:
    sources = tracked("engine/*.py", "backend/*.py", "frontend/src/*.ts", "frontend/src/*.tsx")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]

    assert not found


def test_no_finding_names_an_option_of_the_command_line() -> None:
    told = ("estimate", "plan", "validate")
    sources = tracked(*(f"engine/coloop/{name}" for name in told))
    found = [
        f"{path.relative_to(ROOT)}: {option}"
        for path in sources
        if path.suffix == ".py"
        for option in OPTION.findall(path.read_text(encoding="utf-8"))
    ]

    assert sources
    assert not found


def test_the_lock_names_no_local_versions_and_no_hosts() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    assert "+cpu" not in lock
    assert "://" not in lock


def test_no_retired_word_comes_back() -> None:
    """`docs/glossary.md` has them in its last column: classes by their names, modules by files."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    retired = {word for *_, last in rows[2:] for word in re.findall(r"`([^`]+)`", last)}
    sources = tracked("engine/*.py", "backend/*.py")
    files = {path.name for path in sources}
    classes = {name for path in sources for name in CLASS.findall(path.read_text(encoding="utf-8"))}

    assert retired
    assert classes
    assert not retired & (files | classes)


def texts_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and value of each string of a module, docstrings and parts of f-strings included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each variable that is assigned and of each parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def test_no_retired_word_comes_back_to_what_users_read() -> None:
    """The words of `docs/glossary.md` under "Words for users"."""
    sources = tracked("engine/coloop/*.py", "backend/*.py")
    lines = [
        (path, number, text)
        for path in sources
        for number, text in texts_of(ast.parse(path.read_text(encoding="utf-8")))
    ]
    pages = tracked(*CLEANED_PAGES)
    lines += [
        (path, number, line)
        for path in pages
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path, number, text in lines
        for match in RETIRED_WORDS.finditer(text)
    ]

    assert sources
    assert pages
    assert not found


def test_no_retired_word_comes_back_to_the_page() -> None:
    """Strings and JSX text of the page: its source without comments, generated files left out."""
    sources = [
        path
        for path in tracked("frontend/src/*.ts", "frontend/src/*.tsx")
        if not path.name.endswith(".gen.ts")
    ]
    found = []
    for path in sources:
        text = path.read_text(encoding="utf-8")
        code = TYPESCRIPT_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
        found += [
            f"{path.relative_to(ROOT)}:{code.count(chr(10), 0, match.start()) + 1}: {match[0]}"
            for match in RETIRED_ON_THE_PAGE.finditer(code)
        ]

    assert sources
    assert not found


@pytest.mark.parametrize("room", CLEANED)
def test_locals_are_named_by_the_thing(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in tracked(f"engine/coloop/{room}/*.py")
        for number, name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if name in RETIRED_LOCALS
    ]

    assert not found
