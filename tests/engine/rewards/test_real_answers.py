"""`math_equal` on real solutions with real labels, read as a loop reads them."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.sources import open_source
from coloop.data.tables import Score
from coloop.spec.builtins import BuiltinSource
from coloop.spec.nodes import DatasetNode

GSM8K = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "gsm8k"
WRITERS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")

pytestmark = pytest.mark.skipif(not GSM8K.is_dir(), reason="the GSM8K files are not here")


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file through `source: file`."""
    node = DatasetNode.model_validate(
        {
            "kind": "dataset",
            "source": {"type": "file", "path": name},
            "columns": {"prompt": "question"},
        }
    )
    source = open_source(node, node_id="problems", root=GSM8K)
    return [source.row(index) for index in range(len(source))]


def scored(rows: list[ScoringRow], **options: Any) -> list[Score]:
    source = TypeAdapter(BuiltinSource).validate_python({"type": "builtin", **options})
    found = score_builtin(source, rows, node="right")
    assert found.failures == ()
    return found.scores


def test_gold_solutions_are_right_in_their_own_words() -> None:
    problems = rows_of("test.jsonl")
    rows = [
        ScoringRow(columns={"completion": row["answer"], "answer": row["answer"]})
        for row in problems
    ]

    assert len(problems) == 1319
    assert all(isinstance(row["prompt"], str) for row in problems)
    assert set(scored(rows, name="math_equal")) == {1.0}
    assert set(scored(rows, name="exact_match", extract=r"#### (-?[0-9.,]+)")) == {1.0}


@pytest.mark.slow
def test_labels_of_four_models_are_found_again_and_only_with_their_own_answers() -> None:
    gold = {row["prompt"]: row["answer"] for row in rows_of("test.jsonl")}
    rows, turned, labels = [], [], []
    answers = [gold[row["prompt"]] for row in rows_of("example_model_solutions.jsonl")]
    for place, row in enumerate(rows_of("example_model_solutions.jsonl")):
        for writer in WRITERS:
            text = row[writer]["solution"]
            rows.append(ScoringRow(columns={"completion": text, "answer": answers[place]}))
            turned.append(ScoringRow(columns={"completion": text, "answer": answers[place - 1]}))
            labels.append(float(row[writer]["is_correct"]))

    scores = scored(rows, name="math_equal")
    of_others = scored(turned, name="math_equal")

    assert (len(rows), sum(labels)) == (5276, 2001)
    assert scores == labels
    assert sum(score == 1.0 for score in of_others) / len(rows) < 0.05
