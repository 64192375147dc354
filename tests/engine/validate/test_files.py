"""Files that a loop names are looked at under its folder, and nowhere without one."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.spec.data import FileSource
from coloop.spec.diagnostics import Diagnostic, Report
from coloop.validate import sources

Finding = Callable[..., Diagnostic]

NARROW = {
    "model_type": "qwen3",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}


A_STEP = 128
"""Rows: as many as a step of the loops here takes at most."""


def _from_file(path: str, **more: Any) -> list[tuple[Any, ...]]:
    return [("set", "nodes.problems.source", {"type": "file", "path": path, **more})]


def test_a_missing_file_is_told_with_its_neighbours(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1+1=", "target": "2", "answer": "2"}\n')

    found = finding("grpo", *_from_file("row.jsonl"), root=tmp_path)

    assert found.code == "data.missing_file"
    assert (found.node, found.field) == ("problems", "source.path")
    assert found.hint == "did you mean `rows.jsonl`?"


def test_no_file_is_looked_at_without_a_folder(check: Callable[..., Report]) -> None:
    assert check("grpo", *_from_file("no/such/file.jsonl")).diagnostics == ()


def test_a_sound_file_has_no_finding(check: Callable[..., Report], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1=", "answer": "2"}\n' * A_STEP)
    mapping = ("set", "nodes.problems.columns", {"prompt": "question", "target": "answer"})

    report = check("grpo", *_from_file("rows.jsonl"), mapping, root=tmp_path)

    assert report.diagnostics == ()


def test_an_empty_file_has_no_rows(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("")

    assert finding("grpo", *_from_file("rows.jsonl"), root=tmp_path).code == "data.empty"


def test_a_file_that_is_no_json_is_unreadable(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("prompt,answer\n1+1=,2\n")

    assert finding("grpo", *_from_file("rows.jsonl"), root=tmp_path).code == "data.unreadable"


def test_a_mapped_column_must_be_in_the_file(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,answer\n1+1=,2\n")
    mapping = ("set", "nodes.problems.columns", {"prompt": "qestion", "target": "answer"})

    found = finding("grpo", *_from_file("rows.csv"), mapping, root=tmp_path)

    assert found.code == "data.missing_column"
    assert found.fixes[0].changes[0].model_dump() == {
        "op": "set",
        "path": "nodes.problems.columns.prompt",
        "value": "question",
    }


def test_columns_of_a_file_are_known_to_texts(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("prompt,target\n1+1=,2\n")

    found = finding("grpo", *_from_file("rows.csv"), root=tmp_path)

    assert found.code == "structure.unknown_column"
    assert found.message == "there is no name `answer`"


def test_what_was_seen_is_looked_at_again_when_the_file_changes(
    check: Callable[..., Report], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("prompt,target\n" + "1+1=,2\n" * A_STEP)
    assert check("grpo", *_from_file("rows.csv"), root=tmp_path).diagnostics != ()

    rows.write_text("prompt,target,answer\n" + "1+1=,2,2\n" * A_STEP)

    assert check("grpo", *_from_file("rows.csv"), root=tmp_path).diagnostics == ()


def test_a_missing_file_of_code_is_told(finding: Finding, tmp_path: Path) -> None:
    source = {"type": "python", "file": "reward.py"}

    found = finding("grpo", ("set", "nodes.exact.source", source), root=tmp_path)

    assert (found.code, found.field) == ("data.missing_file", "source.file")


def test_a_file_of_code_is_read(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text("def reward(completions, **columns):\n    return [")
    source = {"type": "python", "file": "reward.py"}

    found = finding("grpo", ("set", "nodes.exact.source", source), root=tmp_path)

    assert (found.code, found.field) == ("text.code_syntax", "source.file")


def test_a_missing_folder_of_a_model_is_told(finding: Finding, tmp_path: Path) -> None:
    model = {"type": "pretrained", "path": "./models/start"}

    found = finding("grpo", ("set", "nodes.actor.model", model), root=tmp_path)

    assert (found.code, found.field) == ("data.missing_file", "model.path")


def test_vllm_on_a_cpu_wants_heads_that_its_kernels_have(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "narrow").mkdir()
    (tmp_path / "narrow" / "config.json").write_text(json.dumps(NARROW))

    found = finding(
        "grpo",
        ("set", "nodes.actor.model", {"type": "pretrained", "path": "narrow"}),
        ("set", "nodes.actor.rollout.engine", "vllm"),
        root=tmp_path,
    )

    assert found.code == "placement.engine"
    assert "head dimension is 16" in found.message


ROW = {"prompt": "1+1=", "target": "2"}


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("count", [100, 4_000])
def test_columns_of_a_file_are_known_whatever_its_size(
    finding: Finding, tmp_path: Path, count: int
) -> None:
    _write_rows(tmp_path / "rows.jsonl", [ROW] * count)

    found = finding("grpo", *_from_file("rows.jsonl"), root=tmp_path)

    assert (found.code, found.severity) == ("structure.unknown_column", "error")
    assert found.message == "there is no name `answer`"


def test_a_json_schema_in_a_file_is_read_in_every_row(finding: Finding, tmp_path: Path) -> None:
    rows = [{**ROW, "answer": "2", "form": json.dumps({"type": "object"})} for _ in range(A_STEP)]
    rows[2]["form"] = json.dumps({"type": "object", "requird": ["a"]})
    _write_rows(tmp_path / "rows.jsonl", rows)
    reward = {"type": "builtin", "name": "json_schema", "column": "form"}
    held_out = {"type": "inline", "rows": [{**ROW, "answer": "2", "form": {}}]}

    found = finding(
        "grpo",
        *_from_file("rows.jsonl"),
        ("set", "nodes.exact.source", reward),
        ("set", "nodes.held_out.source", held_out),
        root=tmp_path,
    )

    assert (found.code, found.node, found.field) == ("data.schema", "problems", "source.path")
    assert found.message == (
        "line 3: the JSON schema in `form` is invalid: the schema's $.requird is not known; "
        "`exact` uses this schema"
    )


def test_columns_of_a_parquet_file_are_those_of_its_schema(
    finding: Finding, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet wants the engine's packages")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist([ROW] * 10), tmp_path / "rows.parquet")

    found = finding("grpo", *_from_file("rows.parquet"), root=tmp_path)

    assert (found.code, found.severity) == ("structure.unknown_column", "error")


def test_a_parquet_file_that_is_none_is_unreadable(finding: Finding, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet", reason="parquet wants the engine's packages")
    (tmp_path / "rows.parquet").write_text("no parquet at all")

    assert finding("grpo", *_from_file("rows.parquet"), root=tmp_path).code == "data.unreadable"


def test_a_folder_is_told_how_to_be_read_and_can_be(
    check: Callable[..., Report], tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("one")

    report = check("grpo", *_from_file("docs"), root=tmp_path)

    [found] = [one for one in report.diagnostics if one.code == "data.unknown_format"]
    assert found.message == "`docs` is a folder"
    [change] = found.fixes[0].changes
    mended = [*_from_file("docs"), (change.op, change.path, change.value)]
    codes = {one.code for one in check("grpo", *mended, root=tmp_path).diagnostics}
    assert codes == {"structure.unknown_column"}, "its columns are text, title and path"


def test_a_folder_without_documents_is_empty(check: Callable[..., Report], tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()

    report = check("grpo", *_from_file("docs", format="text"), root=tmp_path)

    assert "data.empty" in {one.code for one in report.diagnostics}


def test_a_column_that_some_rows_lack_is_told_with_the_first_line(
    finding: Finding, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [{**ROW, "answer": "2"}] * 4_000
    _write_rows(tmp_path / "rows.jsonl", [*rows[:2_500], ROW, *rows[2_501:]])

    found = finding("grpo", *_from_file("rows.jsonl"), root=tmp_path)

    assert (found.code, found.severity) == ("data.partial_column", "warning")
    assert found.message.startswith(
        "`answer` is missing in 1 of 4,000 rows of `problems`, first in line 2501"
    )


def test_a_column_that_only_late_rows_have_is_missing_in_the_first(
    finding: Finding, tmp_path: Path
) -> None:
    _write_rows(tmp_path / "rows.jsonl", [*[ROW] * 600, {**ROW, "answer": "2"}])

    found = finding("grpo", *_from_file("rows.jsonl"), root=tmp_path)

    assert found.message.startswith("`answer` is missing in 600 of 601 rows")
    assert "in line 1;" in found.message


def test_a_mapped_column_must_be_in_every_row(finding: Finding, tmp_path: Path) -> None:
    rows = [{**ROW, "gold": "2"}] * 3
    _write_rows(tmp_path / "rows.jsonl", [*rows, ROW])
    mapping = ("set", "nodes.problems.columns", {"answer": "gold"})

    found = finding("grpo", *_from_file("rows.jsonl"), mapping, root=tmp_path)

    assert (found.code, found.severity) == ("data.missing_column", "error")
    assert found.message == ("1 of 4 rows have no column `gold` for `answer`, first in line 4")


@pytest.fixture
def small_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files from 4 KB on are looked at in 8 places of 256 bytes."""
    monkeypatch.setattr(sources, "WHOLE_BYTES", 4096)
    monkeypatch.setattr(sources, "STRETCHES", 8)
    monkeypatch.setattr(sources, "STRETCH_BYTES", 256)


@pytest.mark.usefixtures("small_looks")
def test_a_large_file_is_looked_at_here_and_there_and_the_finding_says_so(
    finding: Finding, tmp_path: Path
) -> None:
    _write_rows(tmp_path / "rows.jsonl", [ROW] * 4_000)

    found = finding("grpo", *_from_file("rows.jsonl"), root=tmp_path)

    assert (found.code, found.severity) == ("data.unseen_column", "warning")
    assert re.fullmatch(r"there is no name `answer` in \d\d rows of `problems`", found.message)


@pytest.mark.usefixtures("small_looks")
def test_a_large_file_with_the_column_has_no_finding(
    check: Callable[..., Report], tmp_path: Path
) -> None:
    _write_rows(tmp_path / "rows.jsonl", [{**ROW, "answer": "2"}] * 4_000)

    assert check("grpo", *_from_file("rows.jsonl"), root=tmp_path).diagnostics == ()


@pytest.mark.usefixtures("small_looks")
def test_of_a_large_file_little_is_read_and_that_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    _write_rows(path, [ROW] * 200_000)
    read: list[int] = []
    loads = sources.json.loads
    monkeypatch.setattr(sources.json, "loads", lambda text: read.append(len(text)) or loads(text))
    source = FileSource(type="file", path="rows.jsonl")

    for _ in range(3):
        glance = sources.glance_at(source, tmp_path)

    assert glance.columns == {"prompt", "target"}
    assert not glance.is_whole
    assert sum(read) < 8 * 512 < path.stat().st_size / 100


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"prompt": "1+1=", "answer": }', "line 1001 is not JSON"),
        ('["1+1=", "2"]', "line 1001 is not an object with columns"),
        ('{"prompt": 1}, {"prompt": 2}', "line 1001 is not JSON"),
    ],
)
def test_a_line_that_is_no_row_is_named(
    finding: Finding, tmp_path: Path, line: str, problem: str
) -> None:
    row = json.dumps({**ROW, "answer": "2"})
    (tmp_path / "rows.jsonl").write_text("\n".join([*[row] * 1000, line, *[row] * 10]))

    found = finding("grpo", *_from_file("rows.jsonl"), root=tmp_path)

    assert found.code == "data.unreadable"
    assert problem in found.message


def test_a_header_that_names_a_column_twice_is_unreadable(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("prompt,answer,answer\n1+1=,2,2\n")

    found = finding("grpo", *_from_file("rows.csv"), root=tmp_path)

    assert found.code == "data.unreadable"
    assert "two columns 'answer'" in found.message


@pytest.mark.parametrize(
    ("name", "written", "hint"),
    [
        ("rows.csv", "prompt,answer\nné?,2\n".encode("latin-1"), "save it as UTF-8"),
        ("rows.jsonl", json.dumps(ROW).encode("utf-16"), "UTF-16; save it as UTF-8"),
        ("rows.csv", b'prompt,answer\n"a 7" pipe",2\n', "must be doubled"),
        ("rows.csv", b'prompt,answer\n"a,2\n', "must be doubled"),
        ("rows.tsv", b"prompt\tanswer\n1+1=\t2\t3\n", "separated by tabs"),
        ("rows.jsonl", b'{"prompt": "1+1=", "answer": }\n', "a JSON object"),
        ("rows.json", b'{"train": [\n{"prompt": "1+1="}]}\n', "a list of JSON objects"),
        ("rows.parquet", b"PAR1 and no more", "download or write it again"),
    ],
)
def test_what_to_do_about_a_file_is_told_by_what_is_wrong_with_it(
    finding: Finding, tmp_path: Path, name: str, written: bytes, hint: str
) -> None:
    (tmp_path / name).write_bytes(written)

    found = finding("grpo", *_from_file(name), root=tmp_path)

    assert found.code == "data.unreadable"
    assert hint in found.hint
    assert found.fixes == ()


@pytest.mark.parametrize(
    ("name", "written", "form"),
    [
        ("rows.jsonl", json.dumps([{"prompt": "1+1=", "answer": "2"}], indent=1), "json"),
        ("rows.csv", '{"prompt": "a, b", "target": "2"}\n{"prompt": "c", "target": "3"}', "jsonl"),
        ("rows.jsonl", "prompt,target\n1+1=,2\n", "csv"),
        ("rows.parquet", '{"prompt": "1+1=", "target": "2"}\n', "jsonl"),
        ("rows.json", "prompt\ttarget\n1+1=\t2\n", "tsv"),
    ],
)
def test_a_format_that_is_offered_reads_the_file(
    finding: Finding, tmp_path: Path, name: str, written: str, form: str
) -> None:
    (tmp_path / name).write_text(written)

    found = finding("grpo", *_from_file(name), root=tmp_path)

    assert (found.code, found.hint) == ("data.unreadable", f"it can be read as {form}")
    (change,) = found.fixes[0].changes
    assert (change.path, change.value) == ("nodes.problems.source.format", form)
    glance = sources.glance_at(FileSource(type="file", path=name, format=form), tmp_path)
    assert glance.problem is None
    assert "prompt" in glance.common


PREFERRED = '{"prompt": "p", "chosen": "a", "rejected": "b", "probability": 0.8}\n'


@pytest.mark.parametrize(
    ("algorithm", "end"),
    [
        ({"name": "kto"}, "the run ends at the first value that is not 1"),
        ({"name": "dpo", "loss": "nca"}, "the run ends at the first value that is not 1"),
        ({"name": "dpo"}, None),
    ],
)
def test_probabilities_of_a_file_meet_who_reads_them(
    algorithm: dict[str, str], end: str | None, check: Callable[..., Report], tmp_path: Path
) -> None:
    (tmp_path / "pairs.jsonl").write_text(PREFERRED * A_STEP)
    (tmp_path / "mapped.jsonl").write_text(PREFERRED.replace("probability", "sureness") * A_STEP)
    for file, columns in (("pairs", {}), ("mapped", {"probability": "sureness"}), ("mapped", {})):
        source = {"type": "file", "path": f"{file}.jsonl"}
        node = {"kind": "dataset", "source": source, "columns": columns, "rows_per_step": 4}

        report = check(
            "grpo",
            ("set", "nodes.liked", node),
            ("add", "liked.pairs -> actor.pairs"),
            ("add", "liked.pairs -> start.pairs"),
            ("set", "nodes.actor.algorithm.pairs", algorithm),
            ("set", "schedule.phases.1.learn", ["actor.rewards", "actor.pairs"]),
            root=tmp_path,
        )

        told = [one for one in report.diagnostics if one.code == "learning.soft_pairs"]
        assert len(told) == len(report.diagnostics)
        is_there = file == "pairs" or bool(columns)
        assert len(told) == (end is not None and is_there)
        assert all(str(end) in one.message and "`liked`" in one.message for one in told)


def test_a_reward_model_that_is_not_soft_says_that_it_reads_no_probabilities(
    finding: Finding, tmp_path: Path
) -> None:
    (tmp_path / "pairs.jsonl").write_text(PREFERRED * A_STEP)
    source = {"type": "file", "path": "pairs.jsonl"}

    found = finding("ppo", ("set", "nodes.prompts.source", source), root=tmp_path)

    assert (found.code, found.node) == ("learning.soft_pairs", "rm")
    assert "it is ignored" in found.message
    assert "set `soft: true`" in found.hint
