"""A tracker that writes down what it receives, and messages of a run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coloop.spec import presets
from coloop.spec.io import parse, require
from coloop.tracking import RunAbout, Tracker, about_run
from coloop.tracking.tracker import Level, Text

PRESET = "two-halves"


class RecordingTracker(Tracker):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, about: RunAbout) -> None:
        self.calls.append(("begin", about.run, about.project))

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.calls.append(("metrics", step, dict(values)))

    def texts(self, step: int, texts: Sequence[Text]) -> None:
        self.calls.append(("texts", step, list(texts)))

    def alert(self, step: int, level: Level, title: str, message: str) -> None:
        self.calls.append(("alert", step, level, title, message))

    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        self.calls.append(("checkpoint", step, folder.name, best))

    def end(self, state: str) -> None:
        self.calls.append(("end", state))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


def about(folder: Path) -> RunAbout:
    text = presets.load_loop_text(PRESET)
    return about_run(folder, require(parse(text)), text)


def event(kind: str, step: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "step": step, "attempt": 1, **fields}


def reading(step: int, value: float | None, node: str = "probe") -> dict[str, Any]:
    return event("metrics", step, node=node, metrics={"pass@8": value}, evaluation=True)


def gauges(step: int) -> dict[str, Any]:
    stage = {"seconds": 0.5, "tokens_per_second": 100.0}
    told = {
        "step_seconds": 1.5,
        "stages": {"units.learn": stage},
        "nodes": {"units": {"busy": 0.25}},
    }
    return {"seq": 1, "step": step, "gauges": told}


def a_run(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Messages of a run of three steps with a text, an alert and a checkpoint."""
    row = {
        "node": "units",
        "prompt": [{"role": "user", "content": "1+2?"}],
        "completion": "3",
        "scores": {"joint": 1.0},
    }
    checkpoint = folder / "checkpoints" / "step-3"
    checkpoint.mkdir(parents=True)
    (checkpoint / "manifest.json").write_text("{}")
    return [
        ("event", event("run.state", state="starting")),
        ("event", event("run.state", 0, state="running")),
        ("event", reading(0, 0.1)),
        *(
            message
            for step in (1, 2, 3)
            for message in (
                ("event", reading(step, 0.1 * (step + 1))),
                ("event", event("metrics", step, node="units", metrics={"loss": 2.0 / step})),
                ("event", event("sample", step, path=f"samples/step-{step}.jsonl", rows=[row])),
                ("step_gauges", gauges(step)),
            )
        ),
        (
            "event",
            event(
                "alert",
                3,
                node="units",
                level="warning",
                code="learning.kl",
                message="the KL is high",
                hint="lower the learning rate",
            ),
        ),
        ("event", event("checkpoint", 3, path="checkpoints/step-3", best=True)),
        ("event", event("run.state", 3, state="finished")),
    ]


def as_texts(messages: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    return [(kind, json.dumps(message, separators=(",", ":"))) for kind, message in messages]
