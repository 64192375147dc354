"""Sources of datasets: what they give, and what every mistake in them says."""

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coloop.data import sources
from coloop.data.sources import Source, open_source, unfolded
from coloop.errors import DataError
from coloop.spec.nodes import DatasetNode

GSM8K = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "gsm8k"


def dataset(source: dict[str, Any], **fields: Any) -> DatasetNode:
    return DatasetNode.model_validate({"kind": "dataset", "source": source, **fields})


def opened(root: Path, source: dict[str, Any], **fields: Any) -> Source:
    return open_source(dataset(source, **fields), node_id="problems", root=root)


def rows_in(source: Source) -> list[dict[str, Any]]:
    return [source.row(index) for index in range(len(source))]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def file_of(path: Path, **fields: Any) -> dict[str, Any]:
    return {"type": "file", "path": str(path.name), **fields}


def message_of(root: Path, source: dict[str, Any], **fields: Any) -> str:
    with pytest.raises(DataError) as caught:
        opened(root, source, **fields)
    assert caught.value.node == "problems"
    assert caught.value.field is not None
    assert caught.value.field in str(caught.value)
    return str(caught.value)


def test_jsonl_rows_come_in_order_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"prompt": "1"}\n\n{"prompt": "2", "n": 3}\n   \n')

    source = opened(tmp_path, file_of(path))

    assert rows_in(source) == [{"prompt": "1"}, {"prompt": "2", "n": 3}]
    assert source.columns == ("prompt", "n")


def test_a_byte_order_mark_and_windows_line_ends_are_read_over(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"prompt": "1"}\r\n{"prompt": "2"}\r\n')

    source = opened(tmp_path, {"type": "file", "path": "a.jsonl"})

    assert rows_in(source) == [{"prompt": "1"}, {"prompt": "2"}]


def test_csv_values_are_texts_and_quoted_ones_may_span_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'question,answer\n"two\nlines, ""quoted""",1\nplain,2\n')

    source = opened(tmp_path, file_of(path), columns={"prompt": "question"})

    assert [row["prompt"] for row in rows_in(source)] == ['two\nlines, "quoted"', "plain"]
    assert source.row(1)["answer"] == "2"


def test_parquet_rows_are_read_over_several_row_groups(tmp_path: Path) -> None:
    table = pa.table({"prompt": [f"p{i}" for i in range(10)], "steps": [[i] for i in range(10)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)

    source = opened(tmp_path, {"type": "file", "path": "a.parquet"})

    assert len(source) == 10
    assert source.row(9) == {"prompt": "p9", "steps": [9]}
    assert source.row(0) == {"prompt": "p0", "steps": [0]}


def test_the_format_field_beats_the_suffix(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.txt", '{"prompt": "1"}\n')

    assert rows_in(opened(tmp_path, file_of(path, format="jsonl"))) == [{"prompt": "1"}]


def test_columns_are_mapped_and_the_others_travel_under_their_own_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"question": "q", "answer": "a", "level": 2}\n')

    source = opened(tmp_path, file_of(path), columns={"prompt": "question", "target": "answer"})

    assert source.row(0) == {
        "question": "q",
        "answer": "a",
        "level": 2,
        "prompt": "q",
        "target": "a",
    }


def test_two_columns_may_change_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"chosen": "bad", "rejected": "good"}\n')

    source = opened(tmp_path, file_of(path), columns={"chosen": "rejected", "rejected": "chosen"})

    assert source.row(0) == {"chosen": "good", "rejected": "bad"}


def test_inline_rows_are_given_as_written(tmp_path: Path) -> None:
    source = opened(tmp_path, {"type": "inline", "rows": [{"principle": "no symbol x"}]})

    assert rows_in(source) == [{"principle": "no symbol x"}]


def test_a_task_source_gives_the_tasks_rows(tmp_path: Path) -> None:
    source = opened(tmp_path, {"type": "task", "task": "arithmetic", "size": 5})

    assert len(source) == 5
    assert set(source.columns) == {"prompt", "answer", "target", "task"}


def test_a_chat_is_a_prompt(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    path = write(tmp_path / "a.jsonl", json.dumps({"prompt": chat}))

    assert opened(tmp_path, file_of(path)).row(0)["prompt"] == chat


def test_a_missing_file_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "{}")

    message = message_of(tmp_path, {"type": "file", "path": "trian.jsonl"})

    assert message.startswith("problems: source.path: file ")
    assert "trian.jsonl does not exist; did you mean `train.jsonl`?" in message


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").mkdir()

    assert "is a folder" in message_of(tmp_path, {"type": "file", "path": "rows.jsonl"})


def test_a_missing_column_lists_those_found_and_the_likely_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"Question": "q", "answer": "a"}\n')

    message = message_of(tmp_path, file_of(path), columns={"prompt": "question"})

    assert "columns.prompt" in message
    assert "has no column `question` for `prompt`; it has `Question`, `answer`" in message
    assert "did you mean `Question`?" in message


def test_a_column_that_is_missing_later_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"q": "1"}\n\n{"a": "2"}\n')

    assert "line 3, has no column `q`" in message_of(
        tmp_path, file_of(path), columns={"prompt": "q"}
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    assert "has no rows" in message_of(tmp_path, file_of(write(tmp_path / name, "")))


def test_a_csv_of_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "prompt,answer\n")

    assert "has no rows" in message_of(tmp_path, file_of(path))


def test_an_empty_parquet_and_no_inline_rows_are_empty_datasets(tmp_path: Path) -> None:
    pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), tmp_path / "a.parquet")

    assert "has no rows" in message_of(tmp_path, {"type": "file", "path": "a.parquet"})
    assert "source.rows: the rows has no rows" in message_of(
        tmp_path, {"type": "inline", "rows": []}
    )


def test_a_malformed_line_is_named_with_what_stands_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"prompt": "1"}\n{"prompt": "2"\n')

    message = message_of(tmp_path, file_of(path))

    assert "a.jsonl, line 2, is not JSON: " in message
    assert """'{"prompt": "2"'""" in message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[1, 2]", "is a list, expected an object with columns"),
        ('"text"', "is a text, expected an object"),
        ("7", "is a number, expected an object"),
        ('{"prompt": NaN}', "is not JSON: NaN is not a JSON number"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_line_that_is_no_object_is_refused(tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path / "a.jsonl", line + "\n")

    assert f"line 1, {told}" in message_of(tmp_path, file_of(path))


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"prompt": "1"}\n{"prompt": "\xff"}\n')

    assert "line 2, is not UTF-8" in message_of(tmp_path, {"type": "file", "path": "a.jsonl"})


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"prompt": 3}, "column `prompt` must be a text or a list of messages, found 3"),
        ({"prompt": None}, "column `prompt` must be a text or a list of messages, found None"),
        ({"prompt": []}, "needs at least one message"),
        ({"prompt": ["hi"]}, "needs messages with a `role` and a `content`"),
        ({"prompt": [{"role": "user", "content": 1}]}, "needs a text as `content` of the user"),
        ({"chosen": "a", "rejected": 1}, "column `rejected` must be a text"),
        ({"margin": "wide"}, "column `margin` must be a number, found 'wide'"),
        ({"probability": 1.5}, "column `probability` must be a number from 0 to 1, found 1.5"),
    ],
)
def test_a_value_of_the_wrong_type_names_line_and_column(
    tmp_path: Path, row: dict[str, Any], told: str
) -> None:
    path = write(tmp_path / "a.jsonl", '{"other": 1}\n' + json.dumps(row) + "\n")

    message = message_of(tmp_path, file_of(path))

    assert "line 2, " in message
    assert told in message


def test_the_type_of_a_mapped_column_is_told_under_both_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"q": 5}\n')

    assert "column `q` (as `prompt`) must be a text" in message_of(
        tmp_path, file_of(path), columns={"prompt": "q"}
    )


def test_numbers_of_a_csv_are_read_where_numbers_are_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "chosen,rejected,margin\na,b,0.5\n")

    assert opened(tmp_path, file_of(path)).row(0)["margin"] == 0.5


def test_a_csv_line_of_another_length_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "prompt,answer\n1,2\n3\n")

    assert "line 3, has 1 values, the header has 2 columns" in message_of(tmp_path, file_of(path))


def test_a_csv_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "prompt,prompt\n1,2\n")

    assert "has two columns 'prompt' in its header" in message_of(tmp_path, file_of(path))


def test_a_csv_with_an_open_quote_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'prompt\n"open\nmore\n')

    assert "line 2, is not CSV" in message_of(tmp_path, file_of(path))


def folder_of(root: Path) -> dict[str, Any]:
    (root / "docs" / "more").mkdir(parents=True)
    write(root / "docs" / "b.md", "second")
    write(root / "docs" / "a.txt", "first")
    write(root / "docs" / "more" / "c.md", "third")
    write(root / "docs" / ".hidden", "never")
    return {"type": "file", "path": "docs", "format": "text"}


def test_each_file_of_a_folder_is_a_row(tmp_path: Path) -> None:
    source = opened(tmp_path, folder_of(tmp_path))

    assert [row["text"] for row in rows_in(source)] == ["first", "second", "third"]
    assert source.row(2) == {"text": "third", "title": "c", "path": "more/c.md"}
    assert source.columns == ("text", "title", "path")


def test_a_text_file_is_one_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "all of it")

    assert rows_in(opened(tmp_path, file_of(path))) == [
        {"text": "all of it", "title": "a", "path": "a.md"}
    ]


def test_a_folder_whose_form_is_not_said_is_refused_with_what_to_say(tmp_path: Path) -> None:
    source = folder_of(tmp_path)

    message = message_of(tmp_path, {**source, "format": None})

    assert "is a folder; set `format: text`" in message


def test_a_folder_without_documents_is_empty(tmp_path: Path) -> None:
    (tmp_path / "docs" / "deeper").mkdir(parents=True)
    source = {"type": "file", "path": "docs", "format": "text"}

    assert "has no rows" in message_of(tmp_path, source)


def test_a_document_that_is_no_text_is_named(tmp_path: Path) -> None:
    source = folder_of(tmp_path)
    (tmp_path / "docs" / "more" / "d.bin").write_bytes(b"ab\xff")

    assert "a file more/d.bin that is not UTF-8 (byte 3)" in message_of(tmp_path, source)


def test_a_link_out_of_a_folder_of_documents_is_not_followed(tmp_path: Path) -> None:
    source = folder_of(tmp_path)
    (tmp_path / "docs" / "passwords").symlink_to(write(tmp_path / "secret.txt", "secret"))

    assert "`passwords` is a link that leads outside the folder" in message_of(tmp_path, source)


def test_a_damaged_parquet_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", "not a parquet")

    assert "is not a parquet file" in message_of(tmp_path, file_of(path))


def test_an_unknown_suffix_asks_for_the_format(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml", "[]")

    assert "suffix '.xml', known are .jsonl" in message_of(tmp_path, file_of(path))


def test_a_task_that_has_fewer_rows_than_asked_names_the_split(tmp_path: Path) -> None:
    message = message_of(tmp_path, {"type": "task", "task": "arithmetic", "digits": 1, "size": 500})

    assert message.startswith("problems: source.size: task arithmetic has 87 different rows")


def test_a_huge_file_is_indexed_and_checked_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "CHECKED_BYTES", 100)
    monkeypatch.setattr(sources, "CHECKED_ROWS", 3)
    lines = [json.dumps({"prompt": f"p{i}"}) for i in range(100)]
    path = write(tmp_path / "a.jsonl", "\n".join([*lines, "broken"]))

    source = opened(tmp_path, file_of(path))

    assert len(source) == 101
    assert source.row(99) == {"prompt": "p99"}
    with pytest.raises(DataError, match="line 101, is not JSON"):
        source.row(100)


def test_a_hub_source_without_the_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)

    message = message_of(tmp_path, {"type": "hub", "path": "openai/gsm8k"})

    assert "needs the package `datasets`" in message


def test_a_hub_source_that_cannot_be_reached_ends_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_dataset(*args: Any, **kwargs: Any) -> Any:
        raise ConnectionError("Couldn't reach 'openai/gsm8k' on the Hub\nmany\nlines")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))

    message = message_of(tmp_path, {"type": "hub", "path": "openai/gsm8k"})

    assert "openai/gsm8k cannot be loaded from the hub: Couldn't reach 'openai/gsm8k'" in message
    assert "many" not in message
    assert "use a file source" in message


def test_a_hub_source_is_read_under_its_name_and_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loaded(list[dict[str, Any]]):
        column_names = ("question", "answer")

    asked: list[Any] = []

    def load_dataset(path: str, name: str | None, **options: Any) -> Loaded:
        asked.append((path, name, options))
        return Loaded([{"question": "q", "answer": "#### 1"}])

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))

    source = opened(
        tmp_path,
        {"type": "hub", "path": "openai/gsm8k", "name": "main", "split": "test"},
        columns={"prompt": "question"},
    )

    assert source.row(0)["prompt"] == "q"
    assert asked == [("openai/gsm8k", "main", {"split": "test", "revision": None})]


def test_each_entry_of_a_list_column_is_a_child() -> None:
    assert unfolded({"answers": ["a", "b"], "n": 1}, "answers", node="d") == [
        {"answers": "a"},
        {"answers": "b"},
    ]


def test_unfolding_what_is_no_list_is_told() -> None:
    with pytest.raises(DataError, match=r"d: unfold: column `answers` must be a list.*found 'a'"):
        unfolded({"answers": "a"}, "answers", node="d")
    with pytest.raises(DataError, match="has no such column"):
        unfolded({}, "answers", node="d")


@pytest.mark.skipif(not GSM8K.is_dir(), reason="the GSM8K files are not here")
def test_gsm8k_is_read_with_its_columns_mapped() -> None:
    source = opened(GSM8K, {"type": "file", "path": "test.jsonl"}, columns={"prompt": "question"})

    assert len(source) == 1319
    assert source.row(0)["prompt"].startswith("Janet")
    assert source.row(0)["answer"].endswith("#### 18")


@pytest.mark.skipif(not GSM8K.is_dir(), reason="the GSM8K files are not here")
def test_a_column_of_gsm8k_that_does_not_exist_is_told() -> None:
    message = message_of(
        GSM8K, {"type": "file", "path": "test.jsonl"}, columns={"prompt": "questions"}
    )

    assert "it has `question`, `answer`; did you mean `question`?" in message


def test_an_inch_mark_in_a_csv_is_a_character_like_any_other(tmp_path: Path) -> None:
    text = 'prompt,answer\na 5" pipe,1\nq,2\n"a 7"" pipe, or\nmore",3\nlast,4'

    source = opened(tmp_path, file_of(write(tmp_path / "a.csv", text)))

    assert rows_in(source) == [*csv.DictReader(io.StringIO(text, newline=""))]
    assert [row["answer"] for row in rows_in(source)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_csv_has_the_rows_that_python_reads(tmp_path: Path, end: str, mark: str) -> None:
    lines = ['"prompt",answer', 'é 5" of 6",1', '"two', 'lines",2', "", 'a "b" c,"3"', " x ,4"]
    path = tmp_path / "a.csv"
    path.write_bytes((mark + end.join(lines)).encode())

    source = opened(tmp_path, file_of(path))

    with path.open(encoding="utf-8-sig", newline="") as file:
        assert rows_in(source) == [*csv.DictReader(file)]


def test_a_quote_that_swallows_lines_is_refused_with_the_line_it_stands_in(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'prompt,answer\nq,1\n"7 inch,2\nq,3\na 5" pipe,4\n')

    assert "a.csv, line 3, is not CSV" in message_of(tmp_path, file_of(path))


def test_a_long_value_of_a_csv_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"prompt\n{'x' * 200_000}\n")

    assert len(opened(tmp_path, file_of(path)).row(0)["prompt"]) == 200_000


ROWS = [{"prompt": "é 1", "answer": 1}, {"prompt": "2", "answer": [{"x": None}]}]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list_is_read(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(ROWS, ensure_ascii=False, indent=indent)
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())

    assert rows_in(opened(tmp_path, file_of(path))) == ROWS


def test_a_json_file_of_lines_is_read_as_such(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", "\n".join(map(json.dumps, ROWS)))

    assert rows_in(opened(tmp_path, file_of(path))) == ROWS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"prompt": "1"},\n{"prompt": }]', "line 2, is not JSON"),
        ('[{"prompt": "1"}\n{"prompt": "2"}]', "line 2, is not JSON: a comma or `]`"),
        ('[{"prompt": "1"}]\nx', "line 2, is not JSON: there is text after"),
        ('[{"prompt": "1"},\n\n 7]', "line 3, is a number, expected an object"),
        ('{\n"data": [{"prompt": "1"}]}', "holds one object with `data`, expected a list"),
        ("7", "holds a number, expected a list"),
        ("[]", "has no rows"),
        ("", "has no rows"),
    ],
)
def test_what_is_no_list_of_objects_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert told in message_of(tmp_path, file_of(write(tmp_path / "a.json", text)))


def test_a_tsv_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'prompt\tanswer\n5" long, or not\t\n')

    assert rows_in(opened(tmp_path, file_of(path))) == [{"prompt": '5" long, or not', "answer": ""}]


COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("a.json", json.dumps(ROWS)),
        ("a.csv", "prompt,answer\né 1,1\n2,2"),
        ("a.tsv", "prompt\tanswer\né 1\t1\n2\t2"),
    ],
)
def test_a_compressed_file_has_the_same_rows(
    tmp_path: Path, name: str, text: str, suffix: str
) -> None:
    plain = rows_in(opened(tmp_path, file_of(write(tmp_path / name, text))))
    packed = tmp_path / (name + suffix)
    packed.write_bytes(COMPRESS[suffix](text.encode()))

    assert rows_in(opened(tmp_path, file_of(packed))) == plain
    named = packed.rename(tmp_path / ("rows" + suffix))
    form = name.rpartition(".")[2]
    assert rows_in(opened(tmp_path, file_of(named, format=form))) == plain


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.gz", "has no suffix .jsonl/.ndjson/.json/.csv/.tsv before .gz"),
        ("a.parquet.gz", ".parquet cannot be read compressed; decompress it"),
        ("a.xlsx", "suffix '.xlsx', known are .jsonl"),
    ],
)
def test_a_suffix_that_says_nothing_is_told(tmp_path: Path, name: str, told: str) -> None:
    assert told in message_of(tmp_path, file_of(write(tmp_path / name, "x")))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_damaged_compressed_file_is_told(tmp_path: Path, suffix: str) -> None:
    whole = COMPRESS[suffix](b'{"prompt": "1"}\n' * 1000)
    path = tmp_path / f"a.jsonl{suffix}"
    for data in (whole[: len(whole) // 2], b"plain"):
        path.write_bytes(data)
        assert "cannot be decompressed" in message_of(tmp_path, file_of(path))


def parts_of(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*parts]}]


def test_text_parts_of_a_content_are_joined(tmp_path: Path) -> None:
    chat = parts_of({"type": "text", "text": "How much "}, {"type": "text", "text": "is 2+2?"})
    path = write(tmp_path / "a.jsonl", json.dumps({"prompt": chat}))

    row = opened(tmp_path, file_of(path)).row(0)

    assert row["prompt"] == [{"role": "user", "content": "How much is 2+2?"}]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "image", "image": "a.png", "text": None}, "a part of type `image` in message 0"),
        ({"type": "text", "text": None}, "a part without text in message 0 (user)"),
        (3, "a part without text in message 0 (user)"),
    ],
)
def test_other_parts_are_named(tmp_path: Path, part: Any, told: str) -> None:
    chat = parts_of({"type": "text", "text": "Look: "}, part)
    path = write(tmp_path / "a.jsonl", json.dumps({"prompt": chat}))

    assert told in message_of(tmp_path, file_of(path))


@pytest.mark.parametrize(
    "prompt", ["\ud83d 1", [{"role": "user", "content": "\ude00"}], {"deep": ["\ud83d"]}]
)
@pytest.mark.parametrize("column", ["prompt", "answer"])
def test_half_a_character_is_found_when_the_file_is_read(
    tmp_path: Path, prompt: Any, column: str
) -> None:
    lines = [{"prompt": "1", "answer": "😀"}, {"prompt": "2", column: prompt}]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))

    message = message_of(tmp_path, file_of(path))

    assert "line 2, " in message
    assert f"column `{column}` contains half a character, \\ud" in message


def test_an_empty_prompt_is_found_when_the_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"q": "1"}\n{"q": ""}')

    message = message_of(tmp_path, file_of(path), columns={"prompt": "q"})

    assert "line 2, column `q` (as `prompt`) is empty" in message
    path = write(tmp_path / "b.jsonl", '{"prompt": "", "target": "a text to imitate"}')
    assert opened(tmp_path, file_of(path)).row(0)["prompt"] == ""
