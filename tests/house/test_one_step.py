"""docs/one-step.md is a program: its blocks run in order and print what stands below each."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "one-step.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.\d+")


def test_the_page_prints_what_it_says() -> None:
    """Whole numbers and words to the letter; fractions as far as processors agree."""
    page = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}

    blocks = BLOCK.findall(page)

    assert len(blocks) == page.count("```python\n")
    for code, expected in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        text = printed.getvalue()
        assert NUMBER.sub("#", text) == NUMBER.sub("#", expected), text
        assert [float(found) for found in NUMBER.findall(text)] == pytest.approx(
            [float(found) for found in NUMBER.findall(expected)], abs=0.02
        )


def test_the_files_of_its_table_exist() -> None:
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]

    for row in rows:
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", row.rpartition("|")[0].rpartition("|")[2]):
            assert (PAGE.parents[1] / "engine" / "coloop" / name).exists(), name
