"""`math_equal` on real solutions with real labels."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.rewards.builtin import score_builtin
from coloop.rewards.scoring import Score, ScoringRow
from coloop.spec.builtins import BuiltinSource

GSM8K = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "gsm8k"
WRITERS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")

pytestmark = pytest.mark.skipif(not GSM8K.is_dir(), reason="the GSM8K files are not here")


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GSM8K / name).read_text(encoding="utf-8").splitlines()]


def scored(rows: list[ScoringRow], **options: Any) -> list[Score]:
    source = TypeAdapter(BuiltinSource).validate_python({"type": "builtin", **options})
    return score_builtin(source, rows, node="right")


def test_gold_solutions_are_right_in_their_own_words() -> None:
    rows = [
        ScoringRow(columns={"completion": line["answer"], "answer": line["answer"]})
        for line in lines_of("test.jsonl")
    ]

    assert set(scored(rows, name="math_equal")) == {1.0}
    assert set(scored(rows, name="exact_match", extract=r"#### (-?[0-9.,]+)")) == {1.0}


def test_labels_of_four_models_are_found_again() -> None:
    gold = {line["question"]: line["answer"] for line in lines_of("test.jsonl")}
    rows, labels = [], []
    for line in lines_of("example_model_solutions.jsonl"):
        for writer in WRITERS:
            columns = {"completion": line[writer]["solution"], "answer": gold[line["question"]]}
            rows.append(ScoringRow(columns=columns))
            labels.append(float(line[writer]["is_correct"]))

    scores = scored(rows, name="math_equal")
    agreeing = sum(score == label for score, label in zip(scores, labels, strict=True))

    assert len(rows) > 5000
    assert agreeing / len(rows) > 0.99
