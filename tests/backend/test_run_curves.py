"""Curves of runs, downsampled by the service: exact at the ends, one story with the stream, and
cheap to ask for however long a run is. Counts, no clocks."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in
from tests.backend.test_long_runs import bytes_read, write_run

from coloop_server.runs.charts import curves_of
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

Eventually = Callable[..., Any]


def line(seq: int, kind: str, attempt: int = 1, second: int = 0, **fields: Any) -> str:
    at = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    head = {"seq": seq, "at": at, "run": "r", "attempt": attempt, "type": kind}
    return json.dumps(head | fields) + "\n"


def metrics(seq: int, step: int, value: float | None, attempt: int = 1, second: int = 0) -> str:
    told = {"reward/mean": value}
    return line(seq, "metrics", attempt, second, step=step, node="policy", metrics=told)


def watch_of(folder: Path, *lines: str) -> Watch:
    folder.mkdir(exist_ok=True)
    (folder / "events.jsonl").write_text("".join(lines))
    watch = Watch(folder, None, folder / "kept.curves")
    watch.poll()
    return watch


def curve(watch: Watch, buckets: int = 400, **limits: int) -> dict[str, Any]:
    found = curves_of({"r": watch}, ["reward/mean"], buckets=buckets, **limits)
    return found.runs[0].series[0].model_dump()


def test_a_short_curve_is_told_point_by_point(tmp_path: Path) -> None:
    told = curve(watch_of(tmp_path, *(metrics(step, step, step / 2) for step in range(1, 9))))

    assert told["step"] == list(range(1, 9))
    assert told["last"] == told["mean"] == told["min"] == [step / 2 for step in range(1, 9)]
    assert told["count"] == [1] * 8


@pytest.mark.parametrize("buckets", [2, 10, 100, 999])
def test_a_long_curve_loses_no_peak_and_no_end(tmp_path: Path, buckets: int) -> None:
    chance = random.Random(3)
    values = [chance.gauss(0, 1) for _ in range(1000)]
    told = curve(
        watch_of(tmp_path, *(metrics(at + 1, at + 1, value) for at, value in enumerate(values))),
        buckets,
    )

    assert len(told["step"]) <= max(buckets, 3)
    assert (told["step"][0], told["last"][0], told["count"][0]) == (1, values[0], 1)
    assert (told["step"][-1], told["last"][-1], told["count"][-1]) == (1000, values[-1], 1)
    assert (min(told["min"]), max(told["max"])) == (min(values), max(values))
    assert sum(told["count"]) == 1000
    weighed = sum(mean * count for mean, count in zip(told["mean"], told["count"], strict=True))
    assert weighed / 1000 == pytest.approx(sum(values) / 1000)
    assert told["step"] == sorted(set(told["step"]))


def test_what_is_no_number_is_a_gap_and_spoils_no_bucket(tmp_path: Path) -> None:
    values = [1.0, None, 3.0, None, None, None, None, None, 9.0, 10.0]
    watch = watch_of(tmp_path, *(metrics(at, at, value) for at, value in enumerate(values, 1)))

    whole, coarse = curve(watch), curve(watch, 6)

    assert whole["last"] == values
    assert coarse["step"] == [1, 3, 7, 9, 10]  # buckets of 4 steps between the two ends
    assert coarse["count"] == [1, 1, 0, 1, 1]
    assert coarse["mean"] == coarse["last"] == coarse["max"] == [1.0, 3.0, None, 9.0, 10.0]


def test_sums_beyond_a_float_have_a_mean(tmp_path: Path) -> None:
    told = curve(watch_of(tmp_path, *(metrics(step, step, 1e308) for step in range(1, 50))), 4)

    assert all(math.isfinite(mean) for mean in told["mean"])
    assert told["max"] == told["last"] == [1e308] * len(told["last"])


def test_a_later_attempt_takes_the_place_of_what_it_does_again(tmp_path: Path) -> None:
    first = [metrics(step, step, 1.0) for step in range(1, 9)]
    again = [metrics(9, 6, 2.0, attempt=2), metrics(10, 7, 2.0, attempt=2)]

    told = curve(watch_of(tmp_path, *first, *again))

    assert told["step"] == [1, 2, 3, 4, 5, 6, 7]
    assert told["last"] == [1.0] * 5 + [2.0] * 2


def test_a_step_that_is_measured_twice_has_its_last_value(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, metrics(1, 5, 1.0), metrics(2, 5, 2.0), metrics(3, 4, 0.5))

    assert curve(watch)["step"] == [4, 5]
    assert curve(watch)["last"] == [0.5, 2.0]


def test_seconds_leave_out_breaks_and_tokens_are_those_learned_from(tmp_path: Path) -> None:
    def learned(seq: int, step: int, attempt: int = 1, **more: Any) -> str:
        told = {"stage": "policy.learn", "phase": "main", "seconds": 1.0, "tokens": 100} | more
        return line(seq, "stage.finished", attempt, step=step, **told)

    watch = watch_of(
        tmp_path,
        line(1, "run.state", second=0, state="running"),
        learned(2, 1),
        metrics(3, 1, 0.1, second=10),
        learned(4, 2, stage="policy.generate"),
        learned(5, 2, evaluation="probe"),
        learned(6, 2),
        metrics(7, 2, 0.2, second=20),
        line(8, "run.state", second=25, state="stopped"),
        line(9, "run.state", 2, second=3000, state="running"),
        learned(10, 2, 2),
        metrics(11, 2, 0.3, attempt=2, second=3010),
    )

    told = curve(watch)

    assert told["last"] == [0.1, 0.3]
    assert told["seconds"] == [10.0, 35.0]
    assert told["tokens"] == [100.0, 200.0]
    stages = curves_of({"r": watch}, [], buckets=9).runs[0].stages
    assert stages == {"policy.learn": 3.0, "policy.generate": 1.0}


def test_a_part_is_exact_at_its_own_ends(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, *(metrics(step, step, float(step)) for step in range(1, 1001)))

    told = curve(watch, 12, first=101, last=900)

    assert (told["step"][0], told["step"][-1]) == (101, 900)
    assert (told["last"][0], told["last"][-1]) == (101.0, 900.0)
    assert sum(told["count"]) == 800


def test_what_was_kept_says_the_same_and_goes_on(tmp_path: Path) -> None:
    chance = random.Random(5)
    lines = [metrics(seq, seq // 2, chance.random()) for seq in range(1, 600)]
    watch = watch_of(tmp_path, *lines)
    _, kept = watch.keep()
    recalled = Watch(tmp_path, json.loads(json.dumps(kept)), tmp_path / "kept.curves")

    assert curve(recalled, 40) == curve(watch, 40)
    assert recalled.log.end == watch.log.end  # nothing was read again
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(metrics(600, 250, 7.0, attempt=2))
    watch.poll()
    recalled.poll()
    assert curve(recalled, 40) == curve(watch, 40)
    assert curve(recalled)["step"][-1] == 250


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_curves_that_were_lost_are_read_anew(tmp_path: Path, damage: str) -> None:
    watch = watch_of(tmp_path, *(metrics(step, step, step / 3) for step in range(1, 60)))
    _, kept = watch.keep()
    file = tmp_path / "kept.curves"
    match damage:
        case "gone":
            file.unlink()
        case "cut":
            file.write_bytes(file.read_bytes()[:-8])
        case "other":
            file.write_bytes(b"no curves at all")

    again = Watch(tmp_path, kept, file)
    again.poll()

    assert curve(again) == curve(watch)
    assert again.summary.step == 59


@pytest.fixture
def long_run(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> TestClient:
    """A server that has read a run of 3,000 steps."""
    lines = [metrics(step, step, step / 3000) for step in range(1, 3001)]
    lines.append(line(3001, "run.state", state="finished", step=3000))
    write_run(settings.runs_dir / "long", loop, lines)
    eventually(lambda: client.get("/api/runs").json())
    return client


def test_curves_of_an_ended_run_cost_their_own_bytes(long_run: TestClient) -> None:
    supervisor = long_run.app.state.supervisor  # type: ignore[attr-defined]
    supervisor.watches.clear()
    before = bytes_read()

    answer = long_run.get("/api/runs/long/series?metrics=policy.reward/mean&buckets=100").json()

    assert bytes_read() - before < 128 * 1024  # of some 400 kB of events
    assert answer["seq"] == 3001
    assert (answer["first_step"], answer["last_step"], answer["width"]) == (1, 3000, 32)
    assert answer["curves"][0]["points"] == 3000
    assert 90 < len(answer["series"][0]["step"]) <= 100
    assert long_run.get("/api/runs/long/series").json()["series"] == []


def test_several_runs_have_one_width(
    long_run: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    short = [metrics(step, step, 1.0) for step in range(1, 51)]
    short.append(line(51, "run.state", state="finished"))
    write_run(settings.runs_dir / "short", loop, short)
    eventually(lambda: len(long_run.get("/api/runs").json()) == 2)

    answer = long_run.get(
        "/api/runs/series?runs=short&runs=long&metrics=reward/mean&buckets=60"
    ).json()

    assert [one["run"] for one in answer["runs"]] == ["short", "long"]
    assert {one["width"] for one in answer["runs"]} == {answer["width"]} == {64}
    assert long_run.get("/api/runs/series?runs=nobody&metrics=x").status_code == 404
    assert long_run.get("/api/runs/series").status_code == 422


def test_the_stream_goes_on_where_the_curves_end(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    """While a driver writes: what the curves hold and what comes after `seq` is each step once."""
    folder = settings.runs_dir / "live"
    write_run(folder, loop, [line(1, "run.state", state="running")])
    eventually(lambda: client.get("/api/runs").json())
    for step in range(1, 120):
        with (folder / "events.jsonl").open("a") as file:
            file.write(metrics(step + 1, step, float(step)))
        if step % 40 == 0:
            told = client.get("/api/runs/live/series?metrics=reward/mean").json()
            assert told["seq"] == step + 1
            assert told["series"][0]["step"] == list(range(1, step + 1))
    told = client.get("/api/runs/live/series?metrics=reward/mean&buckets=20").json()
    later = client.get(f"/api/runs/live/events?after={told['seq'] - 30}").json()["events"]
    after = [event for event in later if event["seq"] > told["seq"]]

    assert told["series"][0]["step"][-1] == 119
    assert after == []


def test_marks_are_what_a_page_needs_besides_curves(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    lines = [line(1, "run.state", state="running"), line(2, "phase", phase="main", step=1)]
    lines += [metrics(seq, seq, 0.5) for seq in range(3, 2000)]
    lines += [line(2000, "alert", code="x", level="warning", message="m", step=1999)]
    lines += [line(2001, "run.state", state="finished", step=1999)]
    write_run(settings.runs_dir / "long", loop, lines)
    eventually(lambda: client.get("/api/runs").json())
    client.app.state.supervisor.watches.clear()  # type: ignore[attr-defined]
    before = bytes_read()

    told = client.get("/api/runs/long/marks").json()

    assert [event["seq"] for event in told["events"]] == [1, 2, 2000, 2001]
    assert told["seq"] == 2001
    assert bytes_read() - before < 64 * 1024


def test_events_begin_with_any_step(
    client: TestClient, settings: Settings, loop: str, eventually: Eventually
) -> None:
    """Three events a step; steps 200 to 299 are done twice."""
    lines: list[str] = []

    def do(steps: range, attempt: int) -> None:
        for step in steps:
            for part in ("a", "b", "c"):
                seq = len(lines) + 1
                lines.append(line(seq, "log", attempt, step=step, message=f"{attempt}{part}"))

    do(range(1, 300), 1)
    do(range(200, 500), 2)
    lines.append(line(len(lines) + 1, "run.state", 2, state="finished", step=499))
    write_run(settings.runs_dir / "long", loop, lines)
    eventually(lambda: client.get("/api/runs").json())

    for step, told in ((1, "1a"), (77, "1a"), (199, "1a"), (200, "2a"), (250, "2a"), (499, "2a")):
        found = client.get(f"/api/runs/long/events?step={step}&limit=2").json()["events"]
        assert [event["step"] for event in found] == [step, step]
        assert found[0]["message"] == told
    assert client.get("/api/runs/long/events?step=500").json()["events"] == []
    newest = client.get("/api/runs/long/events?before=11&limit=3").json()["events"]
    assert [event["seq"] for event in newest] == [8, 9, 10]


def test_a_deleted_run_leaves_no_curves(
    long_run: TestClient, settings: Settings, eventually: Eventually
) -> None:
    kept = settings.data_dir / "series" / "long.curves"
    eventually(kept.exists)

    assert long_run.delete("/api/runs/long").status_code == 204
    assert not kept.exists()


def test_a_restart_recalls_curves_without_reading_events(
    settings: Settings, loop: str, eventually: Eventually
) -> None:
    lines = [metrics(step, step, step / 9) for step in range(1, 2001)]
    write_run(settings.runs_dir / "long", loop, [*lines, line(2001, "run.state", state="finished")])
    with signed_in(settings) as first:
        eventually(lambda: first.get("/api/runs").json())
        asked = "/api/runs/long/series?metrics=reward/mean&buckets=50"
        told = first.get(asked).json()

    with signed_in(settings) as second:
        before = bytes_read()
        assert second.get(asked).json() == told
        assert bytes_read() - before < 128 * 1024
