"""Events and gauges of a run as calls of a tracker.

Metrics of one step are sent together when the next step begins, or the run ends. Texts are sent of
steps that are further and further apart, some fifty in a run of any length.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from coloop.spec.graph import LoopSpec
from coloop.spec.io import to_dict
from coloop.tracking.picture import picture_of
from coloop.tracking.tracker import RunAbout, Text, Tracker

DEFAULT_PROJECT = "coloop"
FINAL = ("stopped", "finished", "failed")
SPACING = 0.1
"""Share of the step number by which texts are apart."""


def about_run(folder: Path, spec: LoopSpec, text: str) -> RunAbout:
    return RunAbout(
        run=folder.name,
        project=spec.run.project or DEFAULT_PROJECT,
        folder=folder,
        text=text,
        config=to_dict(spec, is_bare=True),
        picture=picture_of(spec),
    )


class Feed:
    """Translates one run for one tracker."""

    def __init__(self, tracker: Tracker, about: RunAbout, *, with_checkpoints: bool) -> None:
        self._tracker = tracker
        self._about = about
        self._with_checkpoints = with_checkpoints
        self._step = 0
        self._values: dict[str, float] = {}
        self._next_texts = 0
        self.has_begun = False
        self.has_ended = False

    def take(self, kind: str, text: str) -> None:
        """Pass one message on; kinds are those of `coloop.runtime.run_files.recorder.Sink`."""
        if kind == "event":
            self.event(json.loads(text))
        elif kind == "step_gauges":
            self.step_gauges(json.loads(text))

    def event(self, event: Mapping[str, Any]) -> None:
        if not self.has_begun:
            self.has_begun = True
            self._tracker.begin(self._about)
        step = event.get("step")
        match event["type"]:
            case "metrics":
                self._metrics(step or 0, event)
            case "sample":
                self._texts(step or 0, event.get("rows") or ())
            case "alert" if not event.get("cleared"):
                self._alert(step or self._step, event)
            case "checkpoint" if self._with_checkpoints:
                folder = self._about.folder / event["path"]
                if folder.is_dir():
                    self._tracker.checkpoint(step or 0, folder, best=bool(event.get("best")))
            case "run.state" if event.get("state") in FINAL:
                self._end(event)

    def step_gauges(self, kept: Mapping[str, Any]) -> None:
        """Rates and times of the stages at the end of a step."""
        if not self.has_begun or self.has_ended:
            return
        gauges = kept.get("gauges") or {}
        values = {"run/step_seconds": gauges.get("step_seconds")}
        for name, stage in (gauges.get("stages") or {}).items():
            values[f"seconds/{name}"] = stage.get("seconds")
            values[f"tokens_per_second/{name}"] = stage.get("tokens_per_second")
        for name, node in (gauges.get("nodes") or {}).items():
            values[f"busy/{name}"] = node.get("busy")
        self._add(int(kept.get("step") or 0), values)

    def close(self) -> None:
        """Send what is held and close the tracker, also where the run has not ended."""
        if self.has_begun and not self.has_ended:
            self._end({"state": "stopped"})

    def _metrics(self, step: int, event: Mapping[str, Any]) -> None:
        node = event.get("node") or "run"
        values = {f"{node}/{name}": value for name, value in event["metrics"].items()}
        self._add(step, values)

    def _add(self, step: int, values: Mapping[str, Any]) -> None:
        if step != self._step:
            self._flush()
            self._step = step
        for name, value in values.items():
            if isinstance(value, int | float) and math.isfinite(value):
                self._values[name] = float(value)

    def _flush(self) -> None:
        if self._values:
            self._tracker.metrics(self._step, self._values)
            self._values = {}

    def _texts(self, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        if step < self._next_texts or not rows:
            return
        self._next_texts = step + max(1, math.ceil(step * SPACING))
        self._tracker.texts(step, [_text(row) for row in rows])

    def _alert(self, step: int, event: Mapping[str, Any]) -> None:
        if event.get("level") == "info":
            return
        where = f"{event['node']}: " if event.get("node") else ""
        message = f"{where}{event.get('message')}"
        hint = event.get("hint")
        self._tracker.alert(
            step, event["level"], str(event.get("code")), f"{message} {hint}" if hint else message
        )

    def _end(self, event: Mapping[str, Any]) -> None:
        self._flush()
        error = (event.get("error") or {}).get("message")
        if error:
            self._tracker.alert(self._step, "error", "run failed", str(error))
        self.has_ended = True
        self._tracker.end(str(event["state"]))


def _text(row: Mapping[str, Any]) -> Text:
    scores = [one for one in (row.get("scores") or {}).values() if isinstance(one, int | float)]
    reward = row.get("reward")
    score = reward if isinstance(reward, int | float) else fmean(scores) if scores else None
    return Text(
        node=str(row.get("node") or ""),
        prompt=_shown(row.get("prompt")),
        completion=_shown(row.get("completion")),
        score=score,
    )


def _shown(value: Any) -> str:
    """A text; of a chat, every message with its role."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return "\n".join(f"{one.get('role')}: {one.get('content')}" for one in value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)
