"""Files, chats and tokenizers as people have them: small inputs with the right value."""

import csv
import json
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.data.sources import Source, open_source
from coloop.errors import DataError
from coloop.models.tokenizer import byte_tokenizer, rendered_prompt
from coloop.spec.nodes import DatasetNode

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases" / "2026-11"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")

TOOLS_TEMPLATE = """{% if tools %}{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}
{% endfor %}"""


def opened(path: str) -> Source:
    source = {"type": "file", "path": path}
    node = DatasetNode.model_validate({"kind": "dataset", "source": source, "rows_per_step": 1})
    return open_source(node, node_id="q", root=CASES)


def rows_in(path: str) -> list[dict[str, Any]]:
    source = opened(path)
    return [source.row(index) for index in range(len(source))]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> Iterator[Path]:
    """A copy of a case's folder, in which one stands."""
    folder = tmp_path / "case"
    shutil.copytree(CASES / request.param, folder)
    monkeypatch.chdir(folder)
    return folder


def test_an_inch_mark_loses_no_row() -> None:
    rows = rows_in("06-csv-inch-mark/inch.csv")

    with (CASES / "06-csv-inch-mark" / "inch.csv").open(encoding="utf-8", newline="") as file:
        assert rows == [*csv.DictReader(file)]
    assert len(rows) == 100
    assert {'a 5" pipe', 'a 7" pipe'} <= {row["prompt"] for row in rows}


SUMS = [{"prompt": "2+2=", "answer": "4"}, {"prompt": "3+3=", "answer": "6"}]


@pytest.mark.parametrize("name", ["array.json", "rows.jsonl.gz", "rows.tsv"])
def test_other_formats_are_read(name: str) -> None:
    assert rows_in(f"data/{name}") == SUMS


def test_both_rows_of_the_small_csv_and_text_parts_are_read() -> None:
    assert [row["answer"] for row in rows_in("data/inch.csv")] == ["12.7", "4"]
    [row] = rows_in("data/parts.jsonl")
    assert row["prompt"] == [{"role": "user", "content": "How much is 2+2?"}]


def test_half_an_emoji_is_found_when_the_file_is_read() -> None:
    with pytest.raises(DataError, match=r"q: .*rows\.jsonl, line 2, column `prompt` contains half"):
        opened("07-lone-surrogate/rows.jsonl")


@pytest.mark.parametrize("case", ["07-lone-surrogate"], indirect=True)
def test_half_an_emoji_is_found_by_validate(case: Path) -> None:
    result = CliRunner().invoke(app, ["validate", "loop.yaml", "--json"])

    [found] = json.loads(result.stdout)["diagnostics"]
    assert (result.exit_code, found["node"], found["code"]) == (1, "q", "data.unreadable")
    assert "line 2: column `prompt` contains half a character, \\ud83d" in found["message"]


def test_a_row_of_parquet_has_no_keys_of_other_rows() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TOOLS_TEMPLATE

    texts = [
        [rendered_prompt(tokenizer, row["prompt"], row["tools"]) for row in rows_in(path)]
        for path in ("09-arrow-null-keys/rows.jsonl", "09-arrow-null-keys/rows.parquet")
    ]

    assert texts[0] == texts[1]
    assert "null" not in "".join(texts[1])


def test_nulls_in_tools_and_calls_are_left_out() -> None:
    source = opened("data/tools_null.jsonl")

    row = source.row(0)

    call = row["target"][0]["tool_calls"][0]["function"]
    assert call["arguments"] == {"town": "Bern"}
    parameters = row["tools"][0]["function"]["parameters"]
    assert parameters["properties"] == {"town": {"type": "string"}}
    assert source.nulls == ("target", "tools")


@pytest.mark.parametrize(
    "name", ["13-several-templates", "15-unknown-is-begin", "18-r1-single-answer"]
)
def test_ids_are_those_of_transformers(name: str) -> None:
    runpy.run_path(str(CASES / name / "check.py"))


def events_of(folder: Path, name: str) -> list[dict[str, Any]]:
    [path] = (folder / "runs").glob(f"*/{name}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", ["11-dpo-chat-sides"], indirect=True)
def test_pairs_of_chats_begin_at_the_logarithm_of_two(case: Path) -> None:
    result = CliRunner().invoke(app, ["run", "loop.yaml", "--local", "--runs-dir", "runs"])

    assert result.exit_code == 0, result.output
    losses = [
        event["metrics"]["loss"]
        for event in events_of(case, "events.jsonl")
        if event["type"] == "metrics" and "loss" in event.get("metrics", {})
    ]
    assert losses[0] == pytest.approx(0.6931, abs=1e-4)


@pytest.mark.parametrize("case", ["12-judge-sees-list"], indirect=True)
def test_a_judge_reads_the_text_of_a_chat(case: Path) -> None:
    result = CliRunner().invoke(app, ["run", "loop.yaml", "--local", "--runs-dir", "runs"])

    assert result.exit_code == 0, result.output
    text = "".join(path.read_text("utf-8") for path in (case / "runs").glob("*/samples/*.jsonl"))
    assert "Question: system: Answer briefly.\\n\\nuser: What is 13 * 16?" in text
    assert "{'role'" not in text
