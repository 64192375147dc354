"""Time in a run: triggers, anneals, edits, repeated phases; what moves, and that it resumes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem
from tests.engine.run_requests import request

from coloop.runtime.run_files.events import EditRequest, RunStateName

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]

LR = "nodes.actor.training.optimizer.lr"
EVERY_STEP = {"run.checkpoint_every": 1, "run.keep": 50}
ALWAYS = {"metric": "probe.score", "above": -1.0}
WARM = [{"name": "warm-up", "steps": 6, "learn": ["actor.demonstrations"]}]
READ_AT_STEP_3 = {
    "nodes.watch": {"kind": "evaluate", "of": ["actor.demonstrations"], "metrics": ["loss"]},
    "nodes.watch.every": 3,
}
ONCE_WARM = {"metric": "watch.loss", "falls_by": 1.0e-9}


def watched(tiny: Text, do: dict[str, Any], values: dict[str, Any] | None = None) -> str:
    """A warm-up of six steps in which something is done after step 3."""
    text = tiny(
        "grpo-arithmetic",
        {
            "schedule.phases": WARM,
            **READ_AT_STEP_3,
            "schedule.triggers": [{"when": ONCE_WARM, "do": do}],
            **(values or {}),
        },
    )
    return text.replace("\nschedule:", "  - held_out.rows -> watch.rows\n\nschedule:", 1)


def rates(ended: Any) -> list[float]:
    return [round(rate, 9) for rate in ended.metrics("actor", "lr")]


def test_a_trigger_may_end_the_phase(runner: Run, tiny: Text) -> None:
    trigger = {"in": "warm-up", "when": ALWAYS, "do": {"next_phase": True}}
    phases = [
        {"name": "warm-up", "steps": 50, "learn": ["actor.demonstrations"]},
        {"name": "rl", "steps": 2, "learn": ["actor.rewards"]},
    ]
    values = {"schedule.triggers": [trigger], "schedule.phases": phases, "nodes.probe.every": 3}

    at_once = runner(tiny("grpo-arithmetic", values))
    values["schedule.triggers"] = [{**trigger, "when": {**ALWAYS, "for": 2}}]
    second = runner(tiny("grpo-arithmetic", values))

    assert [e["step"] for e in at_once.of("phase", phase="warm-up", state="finished")] == [0]
    assert [e["step"] for e in second.of("phase", phase="warm-up", state="finished")] == [3]
    assert second.of("run.state")[-1]["step"] == 5


def test_a_trigger_may_stop_the_run(runner: Run, tiny: Text) -> None:
    ended = runner(watched(tiny, {"stop": True}))

    assert ended.state is RunStateName.STOPPED
    assert ended.manifest()["timeline"]["step"] == 3


def test_a_trigger_may_set_values_from_then_on(runner: Run, tiny: Text) -> None:
    ended = runner(watched(tiny, {"set": {LR: 0.5e-3}}))

    assert rates(ended) == [1e-3] * 3 + [0.5e-3] * 3


def test_a_trigger_beats_an_anneal_which_beats_the_phase(runner: Run, tiny: Text) -> None:
    phases = [{**WARM[0], "set": {LR: 9.0e-3}}]
    anneal = [{"path": LR, "from": 1.0e-3, "to": 6.0e-3}]
    values = {"schedule.phases": phases, "schedule.anneal": anneal}

    ended = runner(watched(tiny, {"set": {LR: 0.5e-3}}, values))

    assert rates(ended) == [1e-3, 2e-3, 3e-3] + [0.5e-3] * 3


def test_a_trigger_may_refresh_reset_and_save(runner: Run, tiny: Text, equal: Equal) -> None:
    do = {
        "refresh": {"node": "start"},
        "reset_optimizer": "actor",
        "checkpoint": True,
    }

    ended = runner(watched(tiny, do))

    assert [event["step"] for event in ended.of("checkpoint")] == [3, 6]
    assert equal(ended.group("start", 3), ended.group("actor", 3))
    state = torch.load(
        ended.folder / "checkpoints" / "step-6" / "actor" / "trainer.pt", weights_only=True
    )
    told = str(state["trainer"]["optimizer"])
    assert "'step': tensor(3.)" in told
    assert "'step': tensor(6.)" not in told


def test_a_checkpoint_of_a_trigger_keeps_the_triggers_that_come_after_it(
    runner: Run, tiny: Text
) -> None:
    triggers = [
        {"when": ONCE_WARM, "do": {"checkpoint": True}},
        {"when": ONCE_WARM, "do": {"set": {LR: 0.5e-3}}},
    ]
    fired: list[list[int]] = []

    def read(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "checkpoint" and event["step"] == 3:
            manifest = folder / event["path"] / "manifest.json"
            fired.append(json.loads(manifest.read_text(encoding="utf-8"))["fired"])

    ended = runner(watched(tiny, {}, {"schedule.triggers": triggers}), on_event=read)

    assert fired == [[1]]
    assert rates(ended) == [1e-3] * 3 + [0.5e-3] * 3


def test_a_refresh_from_best_takes_the_best_checkpoint(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    do = {"refresh": {"node": "start", "from": "best"}, "checkpoint": True}
    values = {"run.best": "watch.loss", **EVERY_STEP}  # greatest loss: the untrained weights

    ended = runner(watched(tiny, do, values))

    assert [event["step"] for event in ended.of("checkpoint", best=True)] == [0]
    assert equal(ended.group("start", 3), ended.group("actor", 0))


def test_before_anything_was_read_the_present_weights_are_the_best(runner: Run, tiny: Text) -> None:
    do = {"refresh": {"node": "start", "from": "best"}}
    phases = [{**WARM[0], "do": do}]

    ended = runner(tiny("grpo-arithmetic", {"schedule.phases": phases, "run.best": "probe.score"}))

    assert ended.state is RunStateName.FINISHED
    [alert] = [event for event in ended.of("alert") if event["code"] == "snapshot.from_current"]
    assert alert["node"] == "start"


@pytest.mark.slow
def test_a_phase_may_clear_a_buffer(runner: Run, tiny: Text) -> None:
    clearing = {
        "repeat": 2,
        "phases": [
            {"name": "collect", "epochs": 1, "fill": ["iterations"], "do": {"clear": "iterations"}},
            {"name": "train", "epochs": 1, "learn": ["policy.pairs"]},
        ],
    }
    values = {"schedule.phases.1": clearing}

    cleared, kept = runner(tiny("spin", values)), runner(tiny("spin"))

    sizes = [
        [event["metrics"]["rows"] for event in ended.of("metrics", node="iterations")]
        for ended in (cleared, kept)
    ]
    assert sizes[0] == [6.0, 12.0, 16.0] * 2 or sizes[0][:3] == sizes[0][3:]
    assert sizes[1][3] > sizes[1][2]


@pytest.mark.slow
def test_an_annealed_value_moves_and_resumes(
    runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    anneal = [{"path": LR, "from": 1.0e-3, "to": 4.0e-3, "over": "rl"}]
    text = tiny("grpo-arithmetic", {"schedule.anneal": anneal})

    stopped = runner(text, stop_at=lambda e: e["type"] == "metrics" and e["step"] == 5)
    resumed = runner(text, resume=stopped)

    assert rates(whole(text)) == [1e-3] * 3 + [1e-3, 2e-3, 3e-3, 4e-3]
    assert equal(resumed.weights(), whole(text).weights())


def test_a_decaying_rate_spans_the_updates_of_one_phase(runner: Run, tiny: Text) -> None:
    optimizer = {"name": "adamw", "lr": 4.0e-3, "schedule": "linear"}
    values = {
        "nodes.actor.training.optimizer": optimizer,
        "schedule.phases": [{**WARM[0], "steps": 8}],
        "schedule.learn": {"actor": {"every": 2}},
    }

    ended = runner(tiny("grpo-arithmetic", values))

    assert rates(ended) == [4e-3, 3e-3, 2e-3, 1e-3]
    assert [e["step"] for e in ended.of("stage.finished", stage="actor.learn")] == [1, 3, 5, 7]


def test_a_rate_warms_up_anew_in_the_second_phase(runner: Run, tiny: Text) -> None:
    values = {
        "nodes.actor.training.optimizer": {"name": "adamw", "lr": 4.0e-3, "warmup": 1},
        "schedule.phases": [{**WARM[0], "name": name, "steps": 2} for name in ("one", "two")],
    }

    assert rates(runner(tiny("grpo-arithmetic", values))) == [2e-3, 4e-3, 2e-3, 4e-3]


def test_several_updates_of_one_step_age_the_rows_once(runner: Run, tiny: Text) -> None:
    ended = runner(tiny("grpo-arithmetic", {"schedule.learn": {"actor": {"updates": 3}}}))

    details = [e["detail"] for e in ended.of("log") if e["message"].startswith("actor.learn")]
    assert [detail["version"] for detail in details] == [1, 2, 3, 4, 5, 6, 7]


def edit_at(step: int, **changes: Any) -> Callable[[dict[str, Any], Path], None]:
    """Asks for an edit while a step is going on."""

    def ask(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "stage.started" and event["step"] == step:
            wanted = {path.replace("__", "."): value for path, value in changes.items()}
            request(folder, EditRequest(changes=wanted, by="tester"))

    return ask


def test_an_edit_counts_from_the_next_step_on(runner: Run, tiny: Text) -> None:
    values = {"schedule.phases": WARM, "nodes.probe.every": 100}
    changes = {LR.replace(".", "__"): 2.0e-3, "nodes__problems__rows_per_step": 4}

    ended = runner(tiny("grpo-arithmetic", values), on_event=edit_at(3, **changes))

    assert rates(ended) == [1e-3] * 3 + [2e-3] * 3
    loads = ended.of("stage.finished", stage="problems.load")
    assert [event["samples"] for event in loads] == [3, 3, 3, 4, 4, 4]
    edits = ended.of("edit")
    assert edits[0]["changes"] == {LR: 2.0e-3, "nodes.problems.rows_per_step": 4}
    assert (edits[0]["by"], edits[0]["step"]) == ("tester", 3)


def test_an_edit_survives_a_stop(runner: Run, tiny: Text) -> None:
    text = tiny("grpo-arithmetic", {"schedule.phases": WARM, "nodes.probe.every": 100})
    ask = edit_at(2, **{LR.replace(".", "__"): 2.0e-3})

    stopped = runner(text, on_event=ask, stop_at=lambda e: e["type"] == "edit")
    resumed = runner(text, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert rates(resumed) == [1e-3] * 2 + [2e-3] * 4


def test_an_edit_survives_a_stop_of_the_step_in_which_it_came(runner: Run, tiny: Text) -> None:
    text = tiny("grpo-arithmetic", {"schedule.phases": WARM, "nodes.probe.every": 100})
    ask = edit_at(3, **{LR.replace(".", "__"): 2.0e-3})

    stopped = runner(
        text, on_event=ask, stop_at=lambda e: e["type"] == "stage.started" and e["step"] == 3
    )
    assert stopped.manifest()["timeline"]["step"] == 2
    resumed = runner(text, resume=stopped)

    assert [event["changes"] for event in stopped.of("edit")] == [{LR: 2.0e-3}]
    assert rates(resumed) == [1e-3] * 2 + [2e-3] * 4


@pytest.mark.parametrize("path", ["run__checkpoint_every", "nodes__probe__every"])
def test_rhythms_may_be_edited(path: str, runner: Run, tiny: Text) -> None:
    text = tiny("grpo-arithmetic", {"schedule.phases": WARM, "nodes.probe.every": 100})

    ended = runner(text, on_event=edit_at(2, **{path: 2}))

    if path.startswith("run"):
        assert [event["step"] for event in ended.of("checkpoint")] == [4, 6]
    else:
        assert [event["step"] for event in ended.of("metrics", node="probe")] == [0, 4, 6]


def test_probes_are_read_at_the_start_each_n_steps_and_at_the_end(runner: Run, tiny: Text) -> None:
    ended = runner(tiny("grpo-arithmetic", {"nodes.probe.every": 3}))

    assert [event["step"] for event in ended.of("metrics", node="probe")] == [0, 3, 6, 7]


def test_phases_tell_their_rounds_and_steps(runner: Run, tiny: Text) -> None:
    ended = runner(tiny("spin"))

    started = [
        (e["phase"], e["index"], e["round"], e.get("steps"))
        for e in ended.of("phase", state="started")
    ]
    assert started == [
        ("warm-up", 0, 1, 2),
        ("collect", 1, 1, 3),
        ("train", 2, 1, 3),
        ("collect", 3, 2, 3),
        ("train", 4, 2, 6),
    ]


def test_checkpoints_load_as_plain_models(runner: Run, tiny: Text) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ended = runner(tiny("two-halves"))
    folder = ended.folder / "checkpoints" / "step-6" / "tens"

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    ids = tokenizer("12+34=", return_tensors="pt").input_ids
    written = model.generate(ids, max_new_tokens=3, do_sample=False)
    assert isinstance(tokenizer.decode(written[0]), str)
    assert model.config.model_type == "qwen3"


@pytest.mark.slow
def test_storage_elsewhere_holds_the_checkpoints(
    runner: Run, tiny: Text, tmp_path: Path, whole: Run, equal: Equal
) -> None:
    text = tiny("two-halves", {"run.storage": str(tmp_path / "big disk")})

    stopped = runner(text, stop_at=lambda e: e["type"] == "metrics" and e["step"] == 3)
    resumed = runner(text, resume=stopped)

    assert (tmp_path / "big disk" / resumed.folder.name / "checkpoints" / "step-6").is_dir()
    assert equal(resumed.weights(), whole(tiny("two-halves")).weights())
    assert resumed.of("checkpoint")[-1]["path"] == "checkpoints/step-6"
    assert list((tmp_path / "big disk" / resumed.folder.name / "samples").glob("step-*.jsonl"))


@pytest.mark.slow
def test_checkpoints_come_back_from_an_address_where_the_run_folder_lost_them(
    runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    text = tiny("two-halves", {"run.storage": "memory://bucket"})
    stopped = runner(text, stop_at=lambda e: e["type"] == "metrics" and e["step"] == 3)
    shutil.rmtree(stopped.folder / "checkpoints")

    resumed = runner(text, resume=stopped)

    assert equal(resumed.weights(), whole(tiny("two-halves")).weights())


def test_a_run_goes_on_where_its_storage_does_not_answer(
    runner: Run, tiny: Text, monkeypatch: pytest.MonkeyPatch, finished: Callable[[Any], Any]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)

    ended = finished(runner(tiny("two-halves", {"run.storage": "memory://lost"})))

    assert "checkpoint.not_copied" in ended.alerts()
    assert (ended.folder / "checkpoints" / "step-6" / "manifest.json").exists()
