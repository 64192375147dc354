"""What is read of a file when a loop is planned."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coloop.data.tasks import task_rows
from coloop.plan.settings.rows import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    TASK_ROWS,
    Sample,
    lengths_of,
    sample_file,
    sample_task,
)
from coloop.spec.data import FileSource
from coloop.spec.nodes import DatasetNode
from coloop.spec.tasks import TASK_COLUMNS

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

    found = Sample(prompts=(2, 4), answers=(3, 1), rows=2, columns=(("answer", 2.0, 3),))
    assert sample(tmp_path, name) == found


def test_columns_have_the_names_of_the_loop_and_a_chat_counts_its_messages(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "four"}, {"role": "user", "content": "seven.."}]
    rows = [{"q": chat, "gold": "yes", "answer": None}]
    (tmp_path / "rows.jsonl").write_text(lines(rows), encoding="utf-8")

    found = sample(tmp_path, "rows.jsonl", {"prompt": "q", "target": "gold"})

    columns = (("gold", 3.0, 3), ("answer", 0.0, 0), ("target", 3.0, 3))
    assert found == Sample(prompts=(11,), answers=(3,), rows=1, columns=columns)


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
    "text", ["", "\n\n", "{", "[1]\n", "{}\n", '{"prompt": "a"}\nno\n', "[" * 9000]
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


def test_a_row_without_a_prompt_is_as_long_as_its_longest_column(tmp_path: Path) -> None:
    """Means of 2 and 5 characters; the answer is no prompt."""
    rows = [{"name": "ab", "question": "abcde", "answer": "abcdefgh"}] * 3
    (tmp_path / "rows.jsonl").write_text(lines(rows), encoding="utf-8")
    dataset = DatasetNode.model_validate(
        {"kind": "dataset", "source": {"type": "file", "path": "rows.jsonl"}}
    )

    texts = lengths_of(dataset, tmp_path, is_characters=True).texts

    assert (texts.prompt, texts.prompt_max, texts.written) == (5, 5, 8)
    assert ("name", 2, 2) in texts.columns


# Tasks: rows are made and measured.


@pytest.mark.parametrize(
    ("task", "part"), [table for table in TASK_COLUMNS if table[0] != "reasoning_gym"]
)
def test_lengths_of_a_task_are_those_of_its_first_rows(task: str, part: str | None) -> None:
    more = {"seed": 4} if part is None else {"seed": 4, "part": part}
    source = {"type": "task", "task": task, **more}
    dataset = DatasetNode.model_validate({"kind": "dataset", "source": source})
    sample = sample_task(dataset.source, {})
    assert sample is not None
    assert TASK_ROWS / 4 < sample.rows <= TASK_ROWS
    first = task_rows(task, size=sample.rows, **more)

    found = lengths_of(dataset, None, is_characters=True)
    for name, mean, most in found.texts.columns:
        sizes = [len(str(row[name])) for row in first if not isinstance(row[name], list)]
        if sizes:
            assert (mean, most) == (pytest.approx(sum(sizes) / len(sizes)), max(sizes))
    if "prompt" in first[0]:
        sizes = [len(row["prompt"]) for row in first]
        assert found.texts.prompt == pytest.approx(sum(sizes) / len(sizes))
        assert found.texts.prompt_max == max(sizes)
    assert not found.is_assumed


def test_a_task_with_fewer_rows_than_are_sampled_has_those_it_has() -> None:
    """One digit: problems `1+2=` of four characters."""
    source = {"type": "task", "task": "arithmetic", "digits": 1, "split": "test"}
    dataset = DatasetNode.model_validate({"kind": "dataset", "source": source})

    texts = lengths_of(dataset, None, is_characters=True).texts

    assert (texts.prompt, texts.prompt_max) == (4, 4)
    assert 1 <= texts.written <= 2
