"""What is read of a file when a loop is planned."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coloop.plan.settings.rows import SAMPLE_BYTES, SAMPLE_ROWS, Sample, sample_file
from coloop.spec.data import FileSource

TWO = [{"prompt": "ab", "answer": "xyz"}, {"prompt": "abcd", "answer": "x"}]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sample(
    root: Path | None, name: str, columns: dict[str, str] | None = None, **more: Any
) -> Sample | None:
    return sample_file(FileSource(type="file", path=name, **more), columns or {}, root)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", lines(TWO)),
        ("rows.ndjson", "\ufeff" + lines(TWO).replace("\n", "\r\n\r\n")),
        ("rows.csv", "prompt,answer\nab,xyz\nabcd,x\n"),
        ("rows.jsonl", lines(TWO).rstrip("\n")),
    ],
)
def test_lengths_and_rows_of_a_small_file_are_counted(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")

    assert sample(tmp_path, name) == Sample(prompts=(2, 4), answers=(3, 1), rows=2)


def test_columns_have_the_names_of_the_loop_and_a_chat_counts_its_messages(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "four"}, {"role": "user", "content": "seven.."}]
    rows = [{"q": chat, "gold": "yes", "answer": None}]
    (tmp_path / "rows.jsonl").write_text(lines(rows), encoding="utf-8")

    found = sample(tmp_path, "rows.jsonl", {"prompt": "q", "target": "gold"})

    assert found == Sample(prompts=(11,), answers=(3,), rows=1)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_of_a_large_file_the_beginning_is_read_and_its_rows_are_guessed(
    name: str, tmp_path: Path
) -> None:
    count = SAMPLE_BYTES // 8
    rows = [{"prompt": f"{n:05d}", "answer": "9"} for n in range(count)]
    text = (
        lines(rows)
        if name.endswith("l")
        else "prompt,answer\n" + "".join(f"{row['prompt']},{row['answer']}\n" for row in rows)
    )
    (tmp_path / name).write_text(text, encoding="utf-8")

    found = sample(tmp_path, name)

    assert found is not None
    assert found.prompts == (5,) * SAMPLE_ROWS
    assert found.rows == pytest.approx(count, rel=0.01)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(TWO), encoding="utf-8")
    assert sample(tmp_path, path.name) == sample(tmp_path, path.name)

    path.write_text(lines([*TWO, *TWO]), encoding="utf-8")

    found = sample(tmp_path, path.name)
    assert found is not None
    assert found.rows == 4


@pytest.mark.parametrize(
    "text", ["", "\n\n", "{", "[1]\n", '{"other": "ab"}\n', '{"prompt": "a"}\nno\n', "[" * 9000]
)
def test_what_shows_nothing_is_no_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")

    assert sample(tmp_path, "rows.jsonl") is None


def test_nothing_is_opened_that_is_no_plain_file_or_has_no_root(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "rows.jsonl").write_text(lines(TWO), encoding="utf-8")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")

    assert sample(tmp_path, "pipe.jsonl") is None
    assert sample(tmp_path, "missing.jsonl") is None
    assert sample(tmp_path, ".", format="jsonl") is None
    assert sample(tmp_path, "rows.parquet") is None
    assert sample(tmp_path, "rows.jsonl\0", format="jsonl") is None
    assert sample(None, "rows.jsonl") is None
