"""Whole runs over the processes of a pool: what is learned does not depend on their number, and a
process that is lost ends the run and nothing else."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tests.engine.numerics import assert_near
from tests.engine.rank_processes import ranks_of

from coloop.models import build_model, save_hf
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.recovery import REPLACED
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.model import ScratchModel
from coloop.workers.cluster import Deadlines

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
Text = Callable[..., str]

TERMS = 20_000
"""More roundings than the steps of these loops have, there and back."""
STEADY = {"optimizer": {"name": "adamw", "lr": 0.05, "epsilon": 1.0}, "mini_batch": 6}
"""AdamW that does not enlarge rounding: a step is at most as wide as the gradient."""
SPREAD = {"backend": "fsdp2", "reshard_after_forward": True}
"""Weights and optimizer lie in parts over the processes, else whole in each."""
LOOP = "grpo-arithmetic"
MODELS = (
    "transformers",
    "pyarrow",
    "coloop.models",
    "coloop.workers.training",
    "coloop.workers.worker",
)
NEEDS_DEEPSPEED = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed"),
]


def pool_of(workers: int, **training: Any) -> dict[str, Any]:
    """All in one pool of so many processes."""
    return {
        "nodes.actor.training": {**STEADY, **training},
        "hardware.pools": {"main": {"workers": workers}},
    }


def pools_of(train: int, write: int) -> dict[str, Any]:
    """The engine and the snapshot apart from the trainer."""
    return {
        **pool_of(train),
        "hardware.pools": {"train": {"workers": train}, "write": {"workers": write}},
        "nodes.actor.pool": "train",
        "nodes.actor.rollout": {
            "completions_per_prompt": 4,
            "max_new_tokens": 6,
            "pool": "write",
        },
        "nodes.start.pool": "write",
    }


def finished(ended: Any) -> Any:
    assert ended.state is RunStateName.FINISHED, ended.error
    return ended


def check_same_weights(found: Any, expected: Any) -> None:
    """The same weights up to rounding."""
    theirs, ours = expected.weights(), found.weights()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert_near(ours[name], weight, terms=TERMS)


def check_same_learning(found: Any, expected: Any) -> None:
    """The same weights up to rounding, and readings of the same texts."""
    check_same_weights(found, expected)
    for node, metric in (("probe", "score"), ("actor", "reward"), ("actor", "length")):
        assert found.metrics(node, metric) == expected.metrics(node, metric)
    losses = expected.metrics("actor", "loss")
    assert losses
    assert_near(found.metrics("actor", "loss"), losses, terms=TERMS, scale=1.0)


def begins(step: int, stage: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: (
        event["type"] == "stage.started" and event["step"] == step and event["stage"] == stage
    )


@pytest.fixture
def no_ranks_left() -> Iterator[None]:
    """Runs end the ranks that they started."""
    yield
    assert ranks_of(psutil.Process()) == []


def test_a_loop_goes_on_with_another_number_of_processes(
    runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    alone, pair = tiny(LOOP, pool_of(1)), tiny(LOOP, pool_of(2, **SPREAD))

    stopped = runner(pair, stop_at=begins(5, "actor.learn"))

    assert stopped.state is RunStateName.STOPPED, stopped.error
    learned = [e for e in stopped.of("stage.finished") if e["stage"] == "actor.learn"]
    assert all(len(event["rank_seconds"]) == 2 for event in learned)
    assert all(max(event["rank_seconds"]) <= event["seconds"] + 0.01 for event in learned)
    [backend] = {one["backend"] for one in stopped.plan()["weights"] if one["trains"]}
    assert backend == "fsdp2"
    resumed = finished(runner(alone, resume=stopped))
    check_same_learning(resumed, whole(alone))


def test_a_folder_that_processes_read_weight_by_weight_learns_as_in_one(
    runner: Run, tiny: Text, whole: Run, tmp_path: Path, no_ranks_left: None
) -> None:
    section = ScratchModel.model_validate({"type": "scratch", "architecture": "tiny-qwen3"})
    made = build_model(section, seed=5, root=tmp_path)
    save_hf(tmp_path / "begun", made.model, made.tokenizer)
    begun = {"nodes.actor.model": {"type": "pretrained", "path": str(tmp_path / "begun")}}

    ended = finished(runner(tiny(LOOP, {**pool_of(2, **SPREAD), **begun})))

    check_same_learning(ended, whole(tiny(LOOP, {**pool_of(1), **begun})))


@pytest.mark.parametrize("rank", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_rank_that_is_killed_is_replaced_and_the_run_goes_on(
    rank: int, runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    """Of the trainer's pool, and of that of the snapshot, whose weights follow."""
    pair = tiny(LOOP, {**pools_of(2, 2), "run.checkpoint_every": 2})
    killed: list[int] = []

    def kill(event: dict[str, Any], folder: Path) -> None:
        if not killed and begins(5, "actor.learn")(event):
            killed.append(ranks_of(psutil.Process())[rank].pid)
            os.kill(killed[0], signal.SIGKILL)

    ended = runner(pair, on_event=kill)

    [alert] = [one for one in ended.of("alert") if one["code"] == REPLACED]
    assert f"pool {'train' if rank == 1 else 'write'}, rank 1 of 2" in alert["message"]
    check_same_weights(finished(ended), whole(tiny(LOOP, pool_of(1))))


# --- the whole matrix

ALONE = pool_of(1)
LEARNERS = {
    "spin": ["policy"],
    "two-halves": ["tens", "units"],
    "ppo-four-models": ["policy", "critic"],
}
MATRIX = {
    "four": pool_of(4),
    "two and two": pools_of(2, 2),
    "one and three": pools_of(1, 3),
    "two that share layers": pool_of(2, tensor_parallel=2),
    "two with parts of the weights": pool_of(2, **SPREAD),
}
MORE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a moving average in another pool": (
        pools_of(2, 2),
        {
            "nodes.start.model": {
                "type": "snapshot",
                "of": "actor",
                "refresh": {"every": 2},
                "ema": 0.75,
            }
        },
    ),
    "groups that go on while others are written": (pools_of(2, 2), {"schedule.stream": True}),
}
"""Places, and what is set besides, in one process as well."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["local", pytest.param("ray", marks=pytest.mark.ray)])
@pytest.mark.parametrize("what", MATRIX)
def test_what_is_learned_does_not_depend_on_the_number_of_processes(
    what: str,
    where: str,
    runner: Run,
    tiny: Text,
    whole: Run,
    request: pytest.FixtureRequest,
    no_ranks_left: None,
) -> None:
    if where == "ray":
        request.getfixturevalue("local_ray")

    ended = runner(tiny(LOOP, MATRIX[what]), cluster=where)

    check_same_learning(finished(ended), whole(tiny(LOOP, ALONE)))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", MORE)
def test_what_is_set_besides_works_over_ranks_as_well(
    what: str, runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    places, values = MORE[what]

    ended = runner(tiny(LOOP, {**places, **values}))

    check_same_learning(finished(ended), whole(tiny(LOOP, {**ALONE, **values})))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
def test_adapters_learn_the_same_over_ranks(
    runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    weights = list_checkpoints(whole(tiny(LOOP, ALONE)).folder / "checkpoints")[-1].path / "actor"
    model = {"type": "pretrained", "path": str(weights), "lora": {"rank": 2}}
    texts = [tiny(LOOP, {**pool_of(size), "nodes.actor.model": model}) for size in (2, 1)]

    stopped = runner(texts[0], stop_at=begins(5, "actor.learn"))
    resumed = runner(texts[0], resume=stopped)

    assert stopped.state is RunStateName.STOPPED, stopped.error
    check_same_learning(finished(resumed), whole(texts[1]))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "training",
    [
        {"backend": "fsdp2"},
        SPREAD,
        *(
            pytest.param({"backend": "deepspeed", "zero_stage": stage}, marks=NEEDS_DEEPSPEED)
            for stage in (1, 2, 3)
        ),
    ],
    ids=lambda training: "-".join(map(str, training.values())),
)
def test_one_goes_on_as_four_and_four_as_two(
    training: dict[str, Any], runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    alone = tiny(LOOP, pool_of(1))
    several = {size: tiny(LOOP, pool_of(size, **training)) for size in (2, 4)}

    first = runner(alone, stop_at=begins(4, "actor.learn"))
    second = runner(several[4], resume=first, stop_at=begins(6, "actor.generate"))
    third = runner(several[2], resume=second)

    assert (first.state, second.state) == (RunStateName.STOPPED,) * 2, second.error
    check_same_learning(finished(third), whole(alone))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_loop_goes_on_where_ranks_share_layers(
    runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    """One process, two that share layers, twice two, one again."""
    alone = tiny(LOOP, pool_of(1))
    shared = {size: tiny(LOOP, pool_of(size, tensor_parallel=2)) for size in (2, 4)}

    first = runner(alone, stop_at=begins(3, "actor.learn"))
    second = runner(shared[2], resume=first, stop_at=begins(5, "actor.generate"))
    third = runner(shared[4], resume=second, stop_at=begins(6, "actor.learn"))
    last = runner(alone, resume=third)

    states = [one.state for one in (first, second, third)]
    assert states == [RunStateName.STOPPED] * 3, (second.error, third.error)
    check_same_learning(finished(last), whole(alone))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("loop", LEARNERS)
def test_other_loops_learn_the_same_in_two_processes(
    loop: str, runner: Run, tiny: Text, no_ranks_left: None
) -> None:
    nodes = LEARNERS[loop]
    steady = {f"nodes.{node}.training": STEADY for node in nodes}
    texts = [
        tiny(loop, {**steady, "hardware.pools": {"main": {"workers": size}}}) for size in (1, 2)
    ]

    alone, pair = (finished(runner(text)) for text in texts)

    for name, weight in alone.weights().items():
        assert_near(pair.weights()[name], weight, terms=TERMS)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rank_that_hangs_is_found_by_its_deadline_and_replaced(
    runner: Run, tiny: Text, whole: Run, no_ranks_left: None
) -> None:
    text = tiny(LOOP, {**pool_of(2), "run.checkpoint_every": 2})
    stopped: list[int] = []

    def halt(event: dict[str, Any], folder: Path) -> None:
        if not stopped and begins(5, "actor.learn")(event):
            stopped.append(ranks_of(psutil.Process())[1].pid)
            os.kill(stopped[0], signal.SIGSTOP)

    ended = runner(text, on_event=halt, deadlines=Deadlines(stalled_after_seconds=20.0))

    [alert] = [one for one in ended.of("alert") if one["code"] == REPLACED]
    assert "pool main, rank 1 of 2: learn: no sign of life" in alert["message"]
    check_same_weights(finished(ended), whole(tiny(LOOP, pool_of(1))))


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_an_actor_that_is_killed_is_named_by_its_rank_and_replaced(
    runner: Run, tiny: Text, whole: Run, local_ray: None
) -> None:
    import ray

    text = tiny(LOOP, {**pool_of(2), "run.checkpoint_every": 2})
    killed: list[int] = []

    def kill(event: dict[str, Any], folder: Path) -> None:
        if not killed and begins(5, "actor.learn")(event):
            host = ray.get_actor(f"coloop-{folder.name}-main-1")
            killed.append(ray.get(host.__ray_call__.remote(lambda _: os.getpid()), timeout=60))
            os.kill(killed[0], signal.SIGKILL)

    ended = runner(text, on_event=kill, cluster="ray")

    [alert] = [one for one in ended.of("alert") if one["code"] == REPLACED]
    assert "pool main, rank 1 of 2" in alert["message"]
    check_same_weights(finished(ended), whole(tiny(LOOP, pool_of(1))))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_driver_that_is_killed_leaves_no_ranks_and_a_resume_goes_on(
    runner: Run, tiny: Text, whole: Run, tmp_path: Path
) -> None:
    text = tiny(LOOP, {**pools_of(2, 2), "run.checkpoint_every": 2})
    loop = tmp_path / "loop.yaml"
    loop.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "coloop", "run", str(loop), "--local", "--json"]
    driver = subprocess.Popen(
        [*command, "--run-id", "run", "--runs-dir", str(tmp_path), "--threads", "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert driver.stdout is not None
        next(line for line in driver.stdout if is_metrics_of(5, line))
        ranks = ranks_of(psutil.Process(driver.pid))
        assert len(ranks) == 4
    finally:
        driver.kill()
        driver.wait()

    _, alive = psutil.wait_procs(ranks, timeout=60)
    assert alive == []
    before = SimpleNamespace(folder=tmp_path / "run")
    check_same_learning(finished(runner(text, resume=before)), whole(tiny(LOOP, ALONE)))


@pytest.mark.slow
def test_the_driver_of_processes_loads_no_models_in_a_whole_run(small: str, tmp_path: Path) -> None:
    """It holds for nothing what its ranks compute with; `house/test_light` says the same of what is
    loaded before the run."""
    loop = tmp_path / "loop.yaml"
    text = small.replace("length.", "short.").replace("length:", "short:")  # no row's column
    loop.write_text(text, encoding="utf-8")
    wanted = ["run", str(loop), "--local", "--runs-dir", str(tmp_path), "--threads", "1"]
    code = (
        "import sys\nfrom coloop.cli.app import main\n"
        f"sys.argv = {['coloop', *wanted, '--set', 'hardware.pools.main.workers=2']!r}\n"
        "try:\n    main()\n"
        "finally:\n"
        f"    print('loaded', *(one for one in {MODELS!r} if one in sys.modules))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "loaded", ended.stdout


def is_metrics_of(step: int, line: str) -> bool:
    if not line.startswith("{"):
        return False
    event = json.loads(line)
    return bool(event["type"] == "metrics" and event["step"] == step)
