"""Files that a loop names are looked at under its folder, and nowhere without one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coloop.diagnostics import Diagnostic, Report

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
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1=", "answer": "2"}\n')
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
    assert found.message == "nothing gives the name `answer`"


def test_what_was_seen_is_looked_at_again_when_the_file_changes(
    check: Callable[..., Report], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("prompt,target\n1+1=,2\n")
    assert check("grpo", *_from_file("rows.csv"), root=tmp_path).diagnostics != ()

    rows.write_text("prompt,target,answer\n1+1=,2,2\n")

    assert check("grpo", *_from_file("rows.csv"), root=tmp_path).diagnostics == ()


def test_a_missing_file_of_code_is_told(finding: Finding, tmp_path: Path) -> None:
    source = {"type": "python", "file": "reward.py"}

    found = finding("grpo", ("set", "nodes.exact.source", source), root=tmp_path)

    assert (found.code, found.field) == ("data.missing_file", "source.file")


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
    assert "16 dimensions" in found.message


def test_a_confined_check_looks_at_nothing_outside(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("prompt,target,answer\n1+1=,2,2\n")
    (tmp_path / "loops").mkdir()
    change = _from_file("../secret.csv")

    found = finding("grpo", *change, root=tmp_path / "loops", is_confined=True)

    assert (found.code, found.field) == ("data.outside", "source.path")


def test_a_link_does_not_lead_out_of_a_confined_check(finding: Finding, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("prompt,target,answer\n1+1=,2,2\n")
    (tmp_path / "loops").mkdir()
    (tmp_path / "loops" / "rows.csv").symlink_to(tmp_path / "secret.csv")

    found = finding("grpo", *_from_file("rows.csv"), root=tmp_path / "loops", is_confined=True)

    assert found.code == "data.outside"
