"""The process that runs tasks of EleutherAI's `lm_eval` on a model folder.

Reads a request as JSON from standard input and writes the last line of standard output: the numbers
of each task, or what is wrong in one sentence. A program of its own, because it loads torch, the
model and the data of the tasks.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

MOST_NAMED = 5
"""Names of tasks in a message."""


def measure(request: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by `task/metric`; of a metric that a filter computes by `task/metric:filter`.

    Raises:
        LookupError: there is no such task.
    """
    import lm_eval.evaluator
    import torch
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=request["task_folder"])
    wanted = list(request["tasks"])
    missing = [name for name in wanted if not manager.match_tasks([name])]
    if missing:
        near = [name for name in manager.all_tasks if missing[0].lower() in name.lower()]
        hint = f"; there are {', '.join(sorted(near)[:MOST_NAMED])}" if near else ""
        raise LookupError(f"lm_eval has no task {missing[0]!r}{hint}")
    # It would list all installed packages, which takes minutes on some machines.
    lm_eval.evaluator.add_env_info = lambda storage: None
    found = lm_eval.evaluator.simple_evaluate(
        model="hf",
        model_args={"pretrained": request["model"], "dtype": "auto"},
        tasks=wanted,
        num_fewshot=request["few_shot"],
        batch_size=request["batch"],
        device=request["device"] or ("cuda" if torch.cuda.is_available() else "cpu"),
        limit=request["limit"],
        bootstrap_iters=0,
        log_samples=False,
        apply_chat_template=request["chat"],
        task_manager=manager,
    )
    return dict(numbers_of(found["results"]))


def numbers_of(results: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """The finite numbers of `results`, whose keys are `metric,filter`. Standard errors, which need
    a bootstrap or are not stated, are left out."""
    for task, values in results.items():
        for key, value in values.items():
            metric, comma, filter_name = key.partition(",")
            if not comma or metric.endswith("_stderr") or isinstance(value, str):
                continue
            if isinstance(value, int | float) and math.isfinite(value):
                of = "" if filter_name in ("none", "") else f":{filter_name}"
                yield f"{task}/{metric}{of}", float(value)


def main() -> None:
    try:
        answer: dict[str, Any] = {"numbers": measure(json.load(sys.stdin))}
    except ModuleNotFoundError as missing:
        answer = {"missing": missing.name}
    except Exception as error:  # tasks are code and data of others: the error is reported
        lines = str(error).splitlines() or [""]
        is_named = isinstance(error, LookupError) and not isinstance(error, KeyError)
        name = "" if is_named else f"{type(error).__name__}: "
        answer = {"error": f"{name}{lines[0][:300]}"}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
