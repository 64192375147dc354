"""What a job needs of a cluster: machines, time, secrets by name, and how it is placed there."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

from coloop.errors import ExportRefused
from coloop.plan.types import Plan, PoolPlan
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.presets import hardware_of
from coloop.spec.remotes import secret_variable

Target = Literal["slurm", "kuberay", "kuberay-cluster", "sky"]

DURATION: Final = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")
"""Slurm's formats: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
days-hours:minutes:seconds (sbatch, `--time`)."""
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""Names of Kubernetes objects (RFC 1123), short enough for what KubeRay appends to them."""
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEYS: Final = {"wandb": ("WANDB_API_KEY",)}
"""By tracker, the variables that hold its key."""
DRIVER_CORES: Final = 2
"""Cores of the machine of the driver that no worker uses."""


@record
class Options:
    """What the user asks for."""

    nodes: int | None = None
    """None: as the loop's `hardware`."""
    gpus_per_node: int | None = None
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    image: str | None = None
    accelerator: str | None = None
    """Name of the GPU in the words of the target."""
    setup: tuple[str, ...] = ()
    """Shell lines that every machine runs first."""
    secrets: tuple[str, ...] = ()
    """Environment variables beside those that the loop names."""
    runs_dir: str = "runs"
    """On storage that all machines see."""
    volume: str | None = None
    """Claim of a volume (KubeRay) or address of a bucket (SkyPilot) that holds the run folders."""


@record
class Job:
    name: str
    loop: str
    """The loop as YAML."""
    root: Path
    """Folder that the loop's relative paths refer to."""
    placement: tuple[str, ...]
    """One line for each pool."""
    nodes: int
    gpus_per_node: int
    gpu: str | None
    """As the loop's hardware names it."""
    cores_per_node: int
    secrets: tuple[str, ...]
    """Names of environment variables; values are never written."""
    options: Options
    limit: timedelta | None


def job_of(
    spec: LoopSpec, text: str, plan: Plan, root: Path, target: Target, options: Options
) -> Job:
    """The job of a loop; raises `ExportRefused` where a cluster could not run what is asked."""
    machine = hardware_of(spec.hardware)
    nodes = options.nodes or machine.nodes
    each = options.gpus_per_node if options.gpus_per_node is not None else machine.gpus_per_node
    limit = None if options.time is None else duration(options.time)
    if target == "slurm" and limit is None:
        raise ExportRefused(
            "--time is missing: Slurm ends a job at its partition's default, often within an hour; "
            "give the walltime, for example --time 1-00:00:00"
        )
    if target.startswith("kuberay") and not options.image:
        raise ExportRefused(
            "--image is missing: name an image that has Ray and coloop, for example one built from "
            "this repository's Dockerfile"
        )
    _check_gpus(plan, nodes, each)
    cores = max(_cores_of(plan, nodes), 1)
    return Job(
        name=name_of(spec.name),
        loop=text if text.endswith("\n") else f"{text}\n",
        root=root,
        placement=tuple(_placement(plan)),
        nodes=nodes,
        gpus_per_node=each,
        gpu=machine.gpu,
        cores_per_node=cores + DRIVER_CORES,
        secrets=tuple(_checked(dict.fromkeys([*secrets_of(spec), *options.secrets]))),
        options=options,
        limit=limit,
    )


def duration(text: str) -> timedelta:
    """A walltime in one of Slurm's formats; raises `ExportRefused`."""
    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise ExportRefused(
            f"--time {text!r} is no walltime; write it as Slurm does: minutes (`90`), "
            "hours:minutes:seconds (`12:00:00`) or days-hours:minutes:seconds (`1-00:00:00`)"
        )
    parts = [int(part) for part in found["parts"].split(":")]
    if found["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, (*parts, 0)[:2]
    span = timedelta(days=int(found["days"] or 0), hours=hours, minutes=minutes, seconds=seconds)
    if not span:
        raise ExportRefused(f"--time {text!r} is no time at all")
    return span


def name_of(name: str) -> str:
    """A loop's name as the name of a job that every cluster takes."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return plain if NAME.fullmatch(plain) else "coloop"


def secrets_of(spec: LoopSpec) -> Iterator[str]:
    """Environment variables whose values a run of the loop reads as secrets."""
    for section in spec.nodes.values():
        for secret in _values_of("secret", section.model_dump(mode="json")):
            yield secret_variable(secret)
    for tracker in spec.run.report_to:
        yield from KEYS.get(tracker, ())


def _values_of(key: str, section: Any) -> Iterator[str]:
    if isinstance(section, Mapping):
        for name, value in section.items():
            if name == key and isinstance(value, str):
                yield value
            else:
                yield from _values_of(key, value)
    elif isinstance(section, list):
        for value in section:
            yield from _values_of(key, value)


def _checked(names: Mapping[str, None]) -> Iterator[str]:
    for name in names:
        if not VARIABLE.fullmatch(name):
            hint = "give the name of an environment variable, never its value"
            raise ExportRefused(f"--secret {name.partition('=')[0]}...: {hint}")
        yield name


def _check_gpus(plan: Plan, nodes: int, each: int) -> None:
    needed = {pool.name: pool.gpus for pool in plan.pools if pool.gpus}
    there = nodes * each
    if sum(needed.values()) > there:
        shown = ", ".join(f"{name} {gpus}" for name, gpus in needed.items())
        raise ExportRefused(
            f"the plan needs {sum(needed.values())} GPUs ({shown}), and {nodes} x {each} = {there} "
            "are asked for; raise --nodes or --gpus-per-node, or choose smaller `hardware` for the "
            "loop and see `coloop fit`"
        )
    widest = max(
        (engine.tensor_parallel for weights in plan.weights for engine in weights.engines),
        default=1,
    )
    if needed and widest > each:
        raise ExportRefused(
            f"an engine of the plan needs {widest} GPUs of one machine "
            f"(`rollout.tensor_parallel`), and --gpus-per-node is {each}"
        )


def _cores_of(plan: Plan, nodes: int) -> int:
    """Cores that the workers of one machine need, where pools are spread evenly."""
    cores = sum(pool.workers * pool.threads_per_worker for pool in plan.pools)
    return -(-cores // nodes)


def _placement(plan: Plan) -> Iterator[str]:
    for pool in plan.pools:
        yield f"pool {pool.name}: {_processes(pool)}; {', '.join(_uses(plan, pool)) or 'idle'}"


def _processes(pool: PoolPlan) -> str:
    count = "1 process" if pool.workers == 1 else f"{pool.workers} processes"
    return f"{count}, a GPU each" if pool.gpus else f"{count} of {pool.threads_per_worker} threads"


def _uses(plan: Plan, pool: PoolPlan) -> Iterator[str]:
    for weights in plan.weights:
        if weights.pool == pool.name:
            kind = "frozen" if weights.update is None else weights.update.backend
            yield f"{weights.name} ({kind})"
        for engine in weights.engines:
            if engine.pool == pool.name:
                degree = engine.tensor_parallel
                over = f", each over {degree} GPUs" if degree > 1 else ""
                copies = max(pool.workers // degree, 1)
                yield f"{copies} x {engine.engine} of {weights.name}{over}"
