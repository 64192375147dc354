"""Trackio: a local store (`TRACKIO_DIR`), or a Hugging Face Space (`TRACKIO_SPACE_ID`);
`trackio show` opens it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trackio

from coloop.tracking.tracker import Level, RunAbout, Text, Tracker

LEVELS: Mapping[Level, Any] = {
    "info": trackio.AlertLevel.INFO,
    "warning": trackio.AlertLevel.WARN,
    "error": trackio.AlertLevel.ERROR,
}


def _quiet(*_: object, **__: object) -> None:
    """Trackio prints to standard output, which is that of `coloop run --json`."""


for _module in (trackio, trackio.run, trackio.utils):
    vars(_module)["print"] = _quiet


class Trackio(Tracker):
    def begin(self, about: RunAbout) -> None:
        self._run = trackio.init(
            project=about.project,
            name=about.run,
            config={**about.config, "loop": about.text},
            resume="allow",
            space_id=os.environ.get("TRACKIO_SPACE_ID"),
            embed=False,
        )

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def texts(self, step: int, texts: Sequence[Text]) -> None:
        rows = [[one.node, one.prompt, one.completion, one.score] for one in texts]
        table = trackio.Table(columns=["node", "prompt", "completion", "score"], data=rows)
        self._run.log({"samples": table}, step=step)

    def alert(self, step: int, level: Level, title: str, message: str) -> None:
        self._run.alert(title=title, text=f"step {step}: {message}", level=LEVELS[level])

    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        name = f"{self._run.name}-checkpoint"
        artifact = trackio.Artifact(name, type="model", metadata={"step": step, "best": best})
        artifact.add_dir(str(folder))
        self._run.log_artifact(artifact)

    def end(self, state: str) -> None:
        self._run.log({"finished": float(state == "finished")})
        self._run.finish()
