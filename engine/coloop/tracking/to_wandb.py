"""Weights & Biases. Key, server, entity and mode come from its own settings: `wandb login`,
`WANDB_API_KEY`, `WANDB_BASE_URL`, `WANDB_ENTITY`, `WANDB_MODE=offline`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import wandb

from coloop.errors import ColoopError
from coloop.tracking.tracker import Level, RunAbout, Text, Tracker

STEP = "step"
LOGIN_SECONDS = 60.0
NO_KEY = (
    "there is no API key: run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline to write "
    "files that `wandb sync` sends later"
)
LEVELS: Mapping[Level, Any] = {
    "info": wandb.AlertLevel.INFO,
    "warning": wandb.AlertLevel.WARN,
    "error": wandb.AlertLevel.ERROR,
}


class WeightsAndBiases(Tracker):
    def begin(self, about: RunAbout) -> None:
        self._about = about
        try:
            self._run = wandb.init(
                project=about.project,
                id=_id(about.run),
                name=about.run,
                config=dict(about.config),
                resume="allow",
                dir=str(about.folder),
                settings=wandb.Settings(
                    init_timeout=LOGIN_SECONDS, console="off", silent=True, x_disable_meta=False
                ),
            )
        except wandb.errors.UsageError as error:
            if "api_key" in str(error) or "API key" in str(error):
                raise ColoopError(NO_KEY) from error
            raise
        self._run.define_metric("*", step_metric=STEP)
        loop = wandb.Artifact(f"{_id(about.run)}-loop", type="loop")
        with loop.new_file("loop.yaml", mode="w") as file:
            file.write(about.text)
        self._run.log_artifact(loop)
        self._run.log({"loop": wandb.Html(about.picture, inject=False), STEP: 0})

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({**values, STEP: step})

    def texts(self, step: int, texts: Sequence[Text]) -> None:
        rows = [[step, one.node, one.prompt, one.completion, one.score] for one in texts]
        table = wandb.Table(columns=["step", "node", "prompt", "completion", "score"], data=rows)
        self._run.log({"samples": table, STEP: step})

    def alert(self, step: int, level: Level, title: str, message: str) -> None:
        self._run.alert(title=title, text=f"step {step}: {message}", level=LEVELS[level])

    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        artifact = wandb.Artifact(
            f"{_id(self._about.run)}-checkpoint", type="model", metadata={STEP: step}
        )
        artifact.add_dir(str(folder))
        self._run.log_artifact(artifact, aliases=[f"step-{step}", *(["best"] if best else [])])

    def end(self, state: str) -> None:
        self._run.summary["state"] = state
        self._run.finish(exit_code=0 if state == "finished" else 1)


def _id(run: str) -> str:
    """A run id, or a name of an artifact, without what W&B refuses in one."""
    return re.sub(r"[^\w.-]", "-", run)[:64]
