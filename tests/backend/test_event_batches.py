"""Events are taken in by the batch: that is the same as one by one, and costs one parse an event,
however many clients there are."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop_server.runs import eventlog
from coloop_server.runs.charts import LAST_STEP, run_curves
from coloop_server.runs.eventlog import EventLog
from coloop_server.runs.watch import Watch

ODD_VALUES = (None, True, "x", 3, 10**400, -0.0, 1e308)


def some_events(seed: int, count: int, is_odd: bool) -> list[str]:
    """Lines of a run of several attempts; odd ones are of no driver's making."""
    chance = random.Random(seed)
    lines, step, attempt = [], 0, 1
    for seq in range(1, count + 1):
        step += chance.random() < 0.3
        if chance.random() < 0.01:
            attempt, step = attempt + 1, max(step - chance.randrange(9), 0)
        head = {"seq": seq, "at": f"2026-01-01T00:{seq // 60 % 60:02}:{seq % 60:02}.125Z"}
        head |= {"run": "r", "attempt": attempt, "step": step}
        if chance.random() < 0.1:
            del head["step"]
        told = an_event(chance, is_odd)
        text = json.dumps(head | told)
        if is_odd and chance.random() < 0.02:
            text = text.replace("0.5", chance.choice(("NaN", "1e999", "-Infinity", "[")))
        lines.append(text + "\n")
    return lines


def an_event(chance: random.Random, is_odd: bool) -> dict[str, Any]:
    node: Any = chance.choice(("policy", "critic", None))
    match chance.randrange(8):
        case 0:
            stage = chance.choice(("policy.learn", "policy.generate", "probe.evaluate"))
            told = {"stage": stage, "seconds": chance.choice((0.5, 2, None)), "tokens": 7}
            return {"type": "stage.finished", "node": "policy", **told}
        case 1:
            alert = {"code": chance.choice("ab"), "metric": "loss", "message": "low"}
            return {"type": "alert", "node": node, "cleared": chance.random() < 0.3, **alert}
        case 2:
            return {"type": "run.state", "state": chance.choice(("running", "stopping"))}
    names = chance.choice((("loss", "reward"), ("loss",), ("kl", "entropy"), ()))
    metrics: dict[str, Any] = {name: chance.choice((0.5, chance.random())) for name in names}
    if is_odd and chance.random() < 0.2:
        metrics |= {"extra": chance.choice(ODD_VALUES)}
        node = chance.choice((node, 3, "run"))
    return {"type": "metrics", "node": node, "metrics": metrics}


def told_by(watch: Watch) -> str:
    """All that a page can ask of a run."""
    curves = run_curves("r", watch.snapshot(lambda _: True), 0, LAST_STEP, 1)
    shown = curves.model_dump()
    for part in ("curves", "series"):
        shown[part].sort(key=lambda one: (one["node"], one["metric"]))
    log = watch.log.keep()
    rest = [watch.summary.keep(), watch.steps.keep(), watch.rare.keep(), watch.samples.keep(), log]
    return json.dumps([shown, rest, watch.log.read(0, 10**6)], sort_keys=True)


@pytest.mark.sample(5)
@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_says_what_its_events_say_one_by_one(
    tmp_path: Path, seed: int, is_odd: bool
) -> None:
    lines = some_events(seed, 400, is_odd)
    watches = [Watch(tmp_path / name) for name in ("one", "some", "all")]
    for watch, size in zip(watches, (1, 37, len(lines)), strict=True):
        watch.folder.path.mkdir()
        for begin in range(0, len(lines), size):
            with watch.folder.events.open("a") as file:
                file.writelines(lines[begin : begin + size])
            watch.poll()

    one, some, whole = map(told_by, watches)

    assert one == some == whole
    assert len(watches[0].series.keys()) > 3


def test_an_event_is_parsed_once_for_all_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = count_calls(monkeypatch, "quick_event")
    again = count_calls(monkeypatch, "parse_event")
    path = tmp_path / "events.jsonl"
    path.write_text("".join(some_events(1, 3000, False)))
    log = EventLog(path)

    log.refresh()
    clients = [read_all(log) for _ in range(4)]

    assert (len(parsed), len(again)) == (3000, 0)
    assert all(texts == clients[0] for texts in clients)


def test_clients_that_stand_at_the_same_event_share_their_message(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = some_events(2, 900, False)
    path.write_text("".join(lines[:700]))
    log = EventLog(path)
    log.refresh()

    first, second = log.read_message(0, 500), log.read_message(0, 500)
    assert first
    assert second
    assert first[1] is second[1]
    assert [found[0] for found in (first, log.read_message(500, 500)) if found] == [500, 700]
    with path.open("a") as file:
        file.writelines(lines[700:])
    log.refresh()

    last, text = log.read_message(500, 500) or (0, "")
    assert last == 900
    assert json.loads(f"[{text}]") == [json.loads(line) for line in lines[500:]]
    assert log.read_message(900, 500) is None


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[bytes]:
    calls: list[bytes] = []
    real: Callable[[bytes], Any] = getattr(eventlog, name)

    def counted(line: bytes) -> Any:
        calls.append(line)
        return real(line)

    monkeypatch.setattr(eventlog, name, counted)
    return calls


def read_all(log: EventLog) -> list[str]:
    cursor, texts = 0, []
    while (found := log.read_message(cursor, 500)) is not None:
        cursor = found[0]
        texts.append(found[1])
    return texts
