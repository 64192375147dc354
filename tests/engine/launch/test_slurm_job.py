"""The script of `coloop launch --slurm`, run on two machines: a run over both, one of them lost,
and the job resumed when it is queued again."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.launch.namespaces import Machines, two_machines, why_not

from coloop.launch import WRITERS, Options, job_of
from coloop.plan.compile import compile_plan
from coloop.spec.io import parse

LOOP = """
coloop: 1
name: two-pools
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  actor:
    kind: actor
    pool: trainers
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {pool: generators, completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 40}
hardware:
  preset: cpu
  pools: {trainers: {workers: 1}, generators: {workers: 1}}
run: {seed: 0, checkpoint_every: 2}
"""
JOB = 4711
SECONDS = 400.0


def script_of(folder: Path) -> Path:
    spec = parse(LOOP).spec
    assert spec is not None
    options = Options(nodes=2, time="30", runs_dir=str(folder / "runs"))
    job = job_of(spec, LOOP, compile_plan(spec), folder, "slurm", options)
    script = folder / "job.sbatch"
    script.write_text(WRITERS["slurm"](job), encoding="utf-8")
    return script


def wait_for(what: Callable[[], bool], machines: Machines) -> None:
    ends = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < ends, machines.log[-3000:]
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(1200)
def test_a_job_over_two_machines_that_loses_one_resumes_when_it_is_queued_again(
    tmp_path: Path,
) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    run = tmp_path / "runs" / f"two-pools-{JOB}"

    with two_machines(tmp_path / "machines") as machines:
        script = script_of(tmp_path)
        job = machines.start(script, JOB)
        wait_for(
            lambda: (run / "checkpoints" / "step-4").exists() or job.poll() is not None, machines
        )
        assert job.poll() is None, machines.log[-3000:]
        machines.lose(machines.names[1])
        wait_for(lambda: job.poll() is not None, machines)
        lost = job.returncode
        machines.lose(machines.names[0])
        again = machines.start(script, JOB)
        wait_for(lambda: again.poll() is not None, machines)

    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    states = [event["state"] for event in events if event["type"] == "run.state"]
    assert lost == 3
    assert again.returncode == 0, machines.log[-3000:]
    assert states[-1] == "finished"
    assert max(event["attempt"] for event in events) == 2
    token = run.parent / ".jobs" / run.name / "ray-token"
    assert token.stat().st_mode & 0o077 == 0
