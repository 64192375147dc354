"""Which steps a run shows samples of."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.algorithm_loops import algorithm_loop
from tests.engine.runs.test_tools import CALLING

from coloop.runtime.reporting import samples


def test_a_run_shorter_than_the_time_between_samples_shows_its_first_and_its_last_step(
    runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "INTERVAL_SECONDS", 1e9)

    ended = runner(algorithm_loop("grpo", steps=3))

    shown = ended.of("sample")
    assert [event["step"] for event in shown] == [1, 3]
    assert [event["path"] for event in shown] == ["samples/step-1.jsonl", "samples/step-3.jsonl"]
    assert all((ended.folder / event["path"]).read_text("utf-8") for event in shown)
    last = ended.events[-1]
    assert (last["type"], last["state"]) == ("run.state", "finished")


def rows_of(ended: Any, path: str) -> list[dict[str, Any]]:
    text = (ended.folder / path).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_tokens_of_a_text_with_a_tools_words_are_those_that_the_loss_learned(
    runner: Callable[..., Any],
) -> None:
    """What the calculator said stands among them, and nothing of it is trained."""
    ended = runner(CALLING)

    event = ended.of("sample")[0]
    samples = {row["id"]: row for row in rows_of(ended, event["path"])}
    lines = rows_of(ended, event["tokens"])
    assert lines
    heard = []
    for line in lines:
        row, mask = samples[line["id"]], line["mask"]
        assert row["has_tokens"]
        assert (line["node"], line["by"], line["algorithm"]) == ("actor", "actor", "grpo")
        size = len(line["ids"])
        numbers = ("pieces", "mask", "advantage", "log_prob", "log_ratio", "clipped")
        assert {len(line[name]) for name in numbers} == {size}
        assert "".join(line["pieces"]).replace("⟨eos⟩", "") == row["completion"]
        wanted = [row["advantage"] if trained else 0.0 for trained in mask]
        assert line["advantage"] == pytest.approx(wanted, rel=1e-5)
        assert [value != 0.0 for value in line["log_prob"]] == mask
        said = [piece for piece, own in zip(line["pieces"], mask, strict=True) if not own]
        heard.append("".join(said))
    assert any(text.startswith("[") for text in heard)
    shifted = [line["mask"][-1:] + line["mask"][:-1] for line in lines]
    assert shifted != [line["mask"] for line in lines]


@pytest.mark.slow
def test_what_answers_to_a_text_names_it_and_its_score_reaches_it(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    """A solution, and the critique of it, lead to each other."""
    ended = runner(tiny("tango"))

    event = ended.of("sample")[-1]
    rows = rows_of(ended, event["path"])
    samples = {row["id"]: row for row in rows}
    children = [row for row in rows if row.get("parents")]
    assert children
    for row in children:
        above = samples[row["parents"][0]]
        assert above["node"] != row["node"]
        assert row["node"] in above["scores"]
