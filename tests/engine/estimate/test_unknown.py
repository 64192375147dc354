"""What the estimate does not know, and what the loop says instead."""

import json
import time

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import estimate, explain


def test_an_unknown_model_is_a_gap_and_no_crash(tiny):
    unknown = {"type": "pretrained", "path": "nobody/nothing", "architecture": None}
    found = explain(tiny(nodes={"actor": {"model": unknown}}))

    gaps = [note for note in found.notes if note.is_gap]
    assert found.estimate.parameters == {}
    assert {note.node for note in gaps} == {"actor", "start"}
    assert "nobody/nothing" in gaps[0].message


def test_a_local_folder_is_read_under_the_root_only(tiny, tmp_path):
    from coloop.spec import presets

    (tmp_path / "mine").mkdir()
    config = presets.architecture("tiny-qwen3-wide")
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spec = tiny(
        nodes={"actor": {"model": {"type": "pretrained", "path": "mine", "architecture": None}}}
    )

    assert estimate(spec).parameters == {}
    assert estimate(spec, root=tmp_path).parameters["actor"] == 681_024


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hidden_size": "x"}', "\0"])
def test_a_broken_config_is_a_gap(tiny, tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(text, encoding="utf-8")
    spec = tiny(
        nodes={"actor": {"model": {"type": "pretrained", "path": "mine", "architecture": None}}}
    )

    found = explain(spec, root=tmp_path)

    assert any(note.is_gap for note in found.notes)


def test_unknown_hardware_is_a_gap_and_counted_as_a_processor(grpo):
    found = explain(grpo(hardware={"preset": "3xH900"}))

    assert any("3xH900" in note.message and note.is_gap for note in found.notes)
    assert len(found.estimate.gpus) == 1


def test_an_assumed_length_is_noted(grpo):
    source = {"type": "file", "path": "rows.jsonl", "task": None}
    found = explain(grpo(nodes={"problems": {"source": source}}))

    assert any(note.node == "problems" and "assumed" in note.message for note in found.notes)


def test_unverified_hardware_is_noted(grpo):
    notes = explain(grpo(hardware={"preset": "8xH20"})).notes

    assert any("not verified" in note.message for note in notes)


def test_a_huge_cluster_is_answered_quickly(grpo):
    hardware = {"preset": None, "nodes": 4096, "gpus_per_node": 64, "gpu": "H100-80GB"}

    started = time.thread_time()
    found = estimate(grpo(hardware=hardware))

    assert time.thread_time() - started < 5
    assert len(found.gpus) <= 1024


def _hub(tokens=None):
    source = {"type": "hub", "path": "openai/gsm8k", "task": None}
    return {"source": source, **({"tokens": tokens} if tokens else {})}


def test_lengths_of_unread_rows_are_those_that_the_loop_says(grpo):
    assumed = explain(grpo(nodes={"problems": _hub()}))
    said = explain(grpo(nodes={"problems": _hub({"mean": 2000, "max": 4000})}))

    def scored(found):
        return stage_of(found.estimate, "start.score").seconds

    # completions of 2 x 1024 ** 0.68 = 222.9 tokens
    brief = explain(grpo(nodes={"problems": _hub({"mean": 512, "max": 1024})}))
    assert scored(said) / scored(brief) == pytest.approx((2000 + 223) / (512 + 223), rel=0.15)
    assert any("tokens assumed" in note.message for note in assumed.notes)
    assert not any("tokens assumed" in note.message for note in said.notes)


def test_the_mean_length_of_completions_is_what_the_loop_expects(grpo):
    def generated(rollout):
        stage = stage_of(estimate(grpo(nodes={"actor": {"rollout": rollout}})), "actor.generate")
        return stage.tokens_per_second * stage.seconds

    assert generated({"expected_tokens": 100}) == pytest.approx(128 * 8 * 100)
    assert generated({}) == pytest.approx(128 * 8 * 2 * 1024**0.68)
    assert generated({"expected_tokens": 9000}) == pytest.approx(128 * 8 * 1024)
