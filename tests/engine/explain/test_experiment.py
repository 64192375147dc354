"""The report of a run as an experiment: numbers, controls, seeds, and what follows from them."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.explain.experiment import Experiment, SeedRun, experiment_of, markdown_of, record_of
from coloop.explain.experiment.record import RunRecord, read_rows
from coloop.explain.experiment.related import (
    FinishedRun,
    arms_of_run,
    loop_key,
    siblings_of,
)
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, require

LOOP = """\
coloop: 1
name: sums
description: Sums of two numbers.
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 100}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 8}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  probe: {kind: evaluate, instead_of: problems, every: 10, metrics: [accuracy]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - exact.scores -> probe.scores
schedule: {steps: 80}
hardware: {preset: HARDWARE}
run: {seed: SEED, best: probe.accuracy}
"""
ACCURACY = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.7, 0.9, 0.8)


def loop(seed: int = 1, hardware: str = "cpu", control: str = "") -> LoopSpec:
    text = LOOP.replace("SEED", str(seed)).replace("HARDWARE", hardware)
    return require(parse(text.replace("best:", f"{control}best:")))


def event(second: float, kind: str, step: int | None = None, **fields: Any) -> dict[str, Any]:
    at = f"2026-01-02T03:{int(second) // 60:02d}:{second % 60:06.3f}Z"
    return {"at": at, "type": kind, "attempt": 1, "step": step, **fields}


def events(values: Sequence[float] = ACCURACY, state: str = "finished") -> list[dict[str, Any]]:
    """A run with a reading every ten steps, ten seconds apart."""
    found = [
        event(0, "run.state", state="starting"),
        event(20, "run.state", 0, state="running"),
        event(20, "phase", 0, phase="rl", state="started"),
    ]
    for place, value in enumerate(values):
        step, second = 10 * place, 20 + 10 * place
        found += [
            event(second, "stage.finished", step, stage="actor.learn", seconds=6.0, tokens=500),
            event(second, "stage.finished", step, stage="actor.generate", seconds=3.0, tokens=400),
            event(
                second,
                "stage.finished",
                step,
                stage="probe.evaluate",
                seconds=1.0,
                samples=100,
                evaluation="probe",
            ),
            event(
                second,
                "metrics",
                step,
                node="probe",
                metrics={"accuracy": value, "score": None},
                evaluation=True,
            ),
        ]
    last = 20 + 10 * (len(values) - 1)
    return [*found, event(last, "run.state", 10 * (len(values) - 1), state=state)]


def report(record: RunRecord, spec: LoopSpec | None = None, **arguments: Any) -> Experiment:
    given: dict[str, Any] = {"report": {}, "rows": lambda path: [], "kept": [70, 80], **arguments}
    return experiment_of("a-run", spec or loop(), record, **given)


def test_the_main_metric_has_its_start_best_end_and_error() -> None:
    found = report(record_of(events()))

    main = found.main
    assert main is not None
    assert main.metric == "probe.accuracy"
    assert (main.start.value, main.end.value) == (0.1, 0.8)
    assert (main.best.step, main.best.value) == (70, 0.9)
    assert main.rows == 100
    assert main.error == pytest.approx(math.sqrt(0.8 * 0.2 / 100))  # 0.04
    assert [result.metric for result in found.results] == ["probe.accuracy"]


def test_time_tokens_and_shares_are_sums_over_the_run() -> None:
    found = report(record_of(events()))

    assert found.duration.seconds == 100.0  # 20 s of start, 9 readings, 10 s apart
    assert found.duration.phases[0].seconds == 80.0
    assert found.duration.steps == 80
    assert found.duration.learned_tokens == 9 * 500
    assert found.duration.written_tokens == 9 * 400
    stages = {stage.name: stage for stage in found.duration.stages}
    assert stages["actor.learn"].seconds == 54.0
    assert stages["actor.learn"].share == 0.6  # 54 of 54 + 27 + 9
    assert stages["probe.evaluate"].is_evaluation


def test_gpu_hours_have_a_price_and_processors_have_none() -> None:
    spec = loop(hardware="8xh100, price_per_gpu_hour: 3.0")

    found = report(record_of(events()), spec)

    assert found.spent.gpus == 8
    assert found.spent.hours == pytest.approx(8 * 100 / 3600)
    assert found.spent.cost == pytest.approx(3 * 8 * 100 / 3600)
    assert report(record_of(events())).spent.cost is None


def test_a_later_attempt_replaces_what_it_repeats_and_breaks_take_no_time() -> None:
    first = events(ACCURACY[:4], state="running")
    resumed = [
        {**one, "attempt": 2}
        for one in (
            event(1000, "run.state", 10, state="starting"),
            event(1010, "run.state", 10, state="running"),
            event(1020, "metrics", 20, node="probe", metrics={"accuracy": 0.6}, evaluation=True),
            event(1020, "run.state", 20, state="finished"),
        )
    ]

    record = record_of([*first, *resumed])

    assert record.readings["probe", "accuracy"] == {0: 0.1, 10: 0.2, 20: 0.6}
    assert record.attempts == 2
    assert record.seconds == 50.0 + 20.0


def test_seeds_and_controls_are_found_among_the_other_runs() -> None:
    spec = loop(seed=1)
    control = "control: {of: a-run, kind: shuffled}, "
    others = [
        FinishedRun(run="two", spec=loop(seed=2), record=record_of(events((0.1, 0.7)))),
        FinishedRun(run="other", spec=loop(seed=3, hardware="8xh100"), record=RunRecord()),
        *(
            FinishedRun(
                run=f"control-{seed}",
                spec=loop(seed=seed, control=control),
                record=record_of(events((0.1, end))),
            )
            for seed, end in ((1, 0.2), (2, 0.3))
        ),
        FinishedRun(
            run="full-2",
            spec=loop(seed=2, control="control: {of: a-run, kind: full}, "),
            record=record_of(events((0.1, 0.7))),
        ),
    ]
    own = FinishedRun(run="a-run", spec=spec, record=record_of(events()))

    siblings = siblings_of(spec, others[:2])
    arms = arms_of_run(own, others)
    found = report(own.record, spec, siblings=siblings, arms=arms)

    assert siblings == [SeedRun(run="two", seed=2, end=0.7)]
    assert found.seeds is not None
    assert found.seeds.mean == pytest.approx(0.75)
    assert found.seeds.spread == pytest.approx(0.0707, abs=1e-4)  # of 0.8 and 0.7
    [shuffled] = found.controls
    assert (shuffled.kind, shuffled.runs) == ("shuffled", 2)
    assert shuffled.difference == pytest.approx(0.75 - 0.25)
    assert shuffled.leads is True


def test_loops_that_differ_by_seed_alone_are_the_same_experiment() -> None:
    assert loop_key(loop(seed=1)) == loop_key(loop(seed=2))
    assert loop_key(loop()) != loop_key(loop(hardware="8xh100"))


@pytest.mark.parametrize(
    ("values", "actions"),
    [
        (ACCURACY, ["checkpoint", "control"]),  # 0.9 at step 70, 0.8 at the end, error 0.04
        ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), ["continue", "control"]),
        ((0.1, 0.5, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8), ["control"]),
    ],
    ids=["fell behind its best", "still rising", "flat"],
)
def test_what_to_do_next_follows_from_the_curve(
    values: Sequence[float], actions: Sequence[str]
) -> None:
    found = report(record_of(events(values)))

    steps = [step.action for step in found.next]
    assert steps == list(actions)


def test_a_run_that_failed_says_why_and_how_to_go_on() -> None:
    end = event(
        200,
        "run.state",
        40,
        state="failed",
        error={"code": "x", "message": "the disk is full", "hint": "Free some space."},
    )
    alert = event(
        100,
        "alert",
        30,
        node="actor",
        code="learning.no_update",
        level="error",
        message="nothing is learned",
        hint="look at the rewards",
        metric="grad_norm",
    )

    found = report(record_of([*events(ACCURACY[:5], state="running"), alert, end]))

    assert (found.state, found.error) == ("failed", "the disk is full")
    assert [step.action for step in found.next][:2] == ["fix", "alert"]
    text = markdown_of(found)
    assert "the disk is full" in text
    assert "actor: nothing is learned (`learning.no_update`, step 30, raised 1 time)." in text


def test_alerts_that_cleared_come_last_and_ask_for_nothing() -> None:
    raised = {"node": "actor", "code": "a.b", "level": "warning", "metric": "m", "hint": "do it"}
    record = record_of(
        [
            *events(),
            event(90, "alert", 10, message="first", **raised),
            event(91, "alert", 12, message="well", cleared=True, **raised),
        ]
    )

    found = report(record)

    assert [alert.cleared for alert in found.alerts] == [True]
    assert "alert" not in [step.action for step in found.next]


def sample(prompt: str, score: float) -> Mapping[str, Any]:
    return {
        "node": "actor",
        "prompt": prompt,
        "completion": prompt[::-1],
        "scores": {"exact": score},
    }


def test_good_and_bad_texts_are_of_different_prompts_and_of_the_last_step_with_both() -> None:
    told = [event(90, "sample", step, path=f"samples/step-{step}.jsonl") for step in (60, 80)]
    rows = {
        "samples/step-60.jsonl": [sample("a", 1), sample("a", 1), sample("b", 0), sample("c", 0)],
        "samples/step-80.jsonl": [sample("a", 1), sample("b", 1)],
    }

    found = report(record_of([*events(), *told]), rows=lambda path: rows[path])

    assert [(text.prompt, text.step) for text in found.good] == [("a", 60)]
    assert sorted(text.prompt for text in found.bad) == ["b", "c"]


def test_a_sample_file_outside_of_the_run_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"prompt": "secret"}\n')
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")

    assert read_rows(folder, "../secret.jsonl") == []
    assert read_rows(folder, "link.jsonl") == []


def test_a_chat_with_odd_texts_gives_valid_markdown() -> None:
    told = event(90, "sample", 80, path="rows")
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "a`b\n|c|"}]
    rows = [
        {"node": "actor", "prompt": chat, "completion": "", "reward": 1.0, "target": 3},
        {"node": "actor", "prompt": "x" * 1000, "completion": "y", "reward": 0.0},
        {"node": "actor", "prompt": "no score", "completion": "y"},
    ]

    text = markdown_of(report(record_of([*events(), told]), rows=lambda path: rows))

    assert "- `actor`, score 1, wanted `3`" in text
    assert "``a`b⏎|c|``" in text
    assert "(empty)" in text
    assert max(map(len, text.splitlines())) < 400


def test_a_metric_of_training_steps_counts_where_the_loop_is_compared_by_it() -> None:
    spec = require(
        parse(
            LOOP.replace("SEED", "1")
            .replace("HARDWARE", "cpu")
            .replace("probe.accuracy", "actor.reward/mean")
        )
    )
    told = [
        event(30 + step, "metrics", step, node="actor", metrics={"reward/mean": 0.1 * step})
        for step in (1, 2, 3)
    ]

    found = report(record_of([*events(), *told], also="actor.reward/mean"), spec)

    assert found.main is not None
    assert found.main.metric == "actor.reward/mean"
    assert found.main.end.value == pytest.approx(0.3)
    assert found.main.title == "Mean reward"


def test_a_run_without_events_or_evaluations_is_reported_too() -> None:
    found = report(RunRecord(), kept=[])

    assert found.main is None
    assert "the result is not known" in markdown_of(found)
    assert [step.action for step in found.next] == ["fix"]


def test_the_command_prints_writes_and_finds_other_seeds(tmp_path: Path) -> None:
    for run, seed, end in (("one", 1, 0.8), ("two", 2, 0.6)):
        folder = tmp_path / run
        folder.mkdir()
        text = LOOP.replace("SEED", str(seed)).replace("HARDWARE", "cpu")
        (folder / "spec.yaml").write_text(text)
        lines = [{**one, "seq": n, "run": run} for n, one in enumerate(events((0.1, end)), 1)]
        (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    ask = CliRunner().invoke
    where = ["--runs-dir", str(tmp_path)]

    shown = ask(app, ["report", "one", *where])
    found = json.loads(ask(app, ["report", "one", *where, "--json"]).stdout)
    written = ask(app, ["report", "one", *where, "-o", str(tmp_path / "report.md")])
    missing = ask(app, ["report", "three", *where])

    assert shown.exit_code == written.exit_code == 0
    assert found["seeds"]["mean"] == pytest.approx(0.7)
    assert (tmp_path / "report.md").read_text().startswith("# sums: run one\n")
    assert missing.exit_code == 1
    assert "three" in missing.output
