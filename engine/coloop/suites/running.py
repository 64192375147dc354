"""Starts the process of a suite, and reads its numbers."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coloop.errors import BackendMissing, ColoopError


def run_lm_eval(
    model: Path,
    tasks: Sequence[str],
    *,
    task_folder: Path | None = None,
    limit: int | None = None,
    few_shot: int | None = None,
    batch: int = 8,
    device: str | None = None,
    chat: bool = False,
) -> dict[str, float]:
    """The numbers of tasks on a model folder, by `task/metric`. What the process reports goes to
    standard error.

    Args:
        task_folder: YAML files of further tasks.
        limit: rows of each task; None: all.
        few_shot: examples in each prompt; None: as the task says.
        device: of torch; None: a GPU if there is one.
        chat: apply the chat template of the model.

    Raises:
        BackendMissing: `lm_eval` is not installed.
        ColoopError: there is no such task, or it failed.
    """
    request = {
        "model": str(model),
        "tasks": list(tasks),
        "task_folder": None if task_folder is None else str(task_folder),
        "limit": limit,
        "few_shot": few_shot,
        "batch": batch,
        "device": device,
        "chat": chat,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "coloop.suites.lm_eval_process"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    answer = _last_answer(ended.stdout)
    if answer is None:
        raise ColoopError(
            f"lm_eval ended with code {ended.returncode} before it had a result; the lines above "
            "say why"
        )
    if "missing" in answer:
        raise BackendMissing(
            f"this needs `{answer['missing']}`: pip install 'coloop[lm-eval]' (lm_eval), or the "
            "package itself if a task needs it"
        )
    if "error" in answer:
        raise ColoopError(f"lm_eval, {', '.join(tasks)}: {answer['error']}")
    return {str(name): float(value) for name, value in answer["numbers"].items()}


def _last_answer(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            return answer
    return None
