"""MLflow. The store is MLflow's own choice: `MLFLOW_TRACKING_URI`, else `mlflow.db` in the working
directory."""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.environment_variables import MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR
from mlflow.tracking import MlflowClient

from coloop.tracking.tracker import Level, RunAbout, Text, Tracker

RUN_TAG = "coloop.run"
MOST_IN_BATCH = 1000
MOST_PARAMETERS = 100
LONGEST_PARAMETER = 500
STATES = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class MLflow(Tracker):
    def begin(self, about: RunAbout) -> None:
        MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR.set(False)
        self._client = MlflowClient()
        experiment = self._client.get_experiment_by_name(about.project)
        where = (
            self._client.create_experiment(about.project)
            if experiment is None
            else experiment.experiment_id
        )
        found = self._client.search_runs([where], f"tags.`{RUN_TAG}` = '{about.run}'")
        if found:
            self._run = found[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
            return
        tags = {RUN_TAG: about.run}
        self._run = self._client.create_run(where, run_name=about.run, tags=tags).info.run_id
        parameters = [Param(key, value[:LONGEST_PARAMETER]) for key, value in _flat(about.config)][
            :MOST_PARAMETERS
        ]
        self._client.log_batch(self._run, params=parameters)
        self._client.log_dict(self._run, dict(about.config), "loop.json")
        self._client.log_text(self._run, about.text, "loop.yaml")
        self._client.log_text(self._run, about.picture, "loop.svg")

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        metrics = [Metric(_name(name), value, now, step) for name, value in values.items()]
        for first in range(0, len(metrics), MOST_IN_BATCH):
            self._client.log_batch(self._run, metrics=metrics[first : first + MOST_IN_BATCH])

    def texts(self, step: int, texts: Sequence[Text]) -> None:
        table = {
            "columns": ["node", "prompt", "completion", "score"],
            "data": [[one.node, one.prompt, one.completion, one.score] for one in texts],
        }
        self._client.log_dict(self._run, table, f"samples/step-{step:06d}.json")

    def alert(self, step: int, level: Level, title: str, message: str) -> None:
        name = f"alerts/step-{step:06d}-{_name(title).replace('/', '.')}.txt"
        self._client.log_text(self._run, f"{level}: {message}\n", name)
        self._client.set_tag(self._run, f"alert.{_name(title)}", message[:LONGEST_PARAMETER])

    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        self._client.log_artifacts(self._run, str(folder), f"checkpoints/step-{step}")
        if best:
            self._client.set_tag(self._run, "best_checkpoint", f"checkpoints/step-{step}")

    def end(self, state: str) -> None:
        self._client.set_terminated(self._run, STATES.get(state, "FINISHED"))


def _name(name: str) -> str:
    """A name without what MLflow refuses in one: `pass@8` is `pass.at.8`."""
    return re.sub(r"[^\w./ -]", ".", name.replace("@", ".at."))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a loop with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif path:
        yield _name(path), value if isinstance(value, str) else json.dumps(value)
