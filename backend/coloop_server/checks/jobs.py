"""Job files that run a loop on a cluster."""

from pathlib import Path
from typing import Final

from pydantic import Field

from coloop.errors import ExportRefused
from coloop.launch import WRITERS, Options, Target, job_of
from coloop.plan.run_check import check_run, refused_words
from coloop.spec.io import dump
from coloop_server.checks.schemas import LoopInput
from coloop_server.checks.service import parsed_of, root_of
from coloop_server.language import require_parsed
from coloop_server.paths import Roots
from coloop_server.schemas import Output

MAX_OPTION = 300
ENDINGS: Final = {"slurm": "sbatch"}
"""Endings of files, where they are not those of YAML."""


class JobInput(LoopInput):
    """A loop and what its job asks for."""

    target: Target
    """Whose job file: an sbatch script, a RayJob or RayCluster of KubeRay, a task of SkyPilot."""
    nodes: int | None = Field(default=None, ge=1, le=10_000)
    """Machines; null: those of the loop's hardware."""
    time: str | None = Field(default=None, max_length=40)
    """Walltime as Slurm writes it: `12:00:00`, `1-00:00:00`."""
    partition: str | None = Field(default=None, max_length=MAX_OPTION, pattern=r"^[\w.,-]+$")
    image: str | None = Field(default=None, max_length=MAX_OPTION, pattern=r"^\S+$")
    """Container image that has Ray and coloop."""
    volume: str | None = Field(default=None, max_length=MAX_OPTION, pattern=r"^\S+$")
    """Volume claim (KubeRay) or bucket (SkyPilot) of the run folders."""


class JobFile(Output):
    name: str
    """Name for the file."""
    text: str


def job_file(body: JobInput, roots: Roots) -> JobFile:
    """Raises `ExportRefused` where a run or the cluster could not run what is asked."""
    spec = require_parsed(parsed_of(body))
    root = root_of(spec, roots)
    run = check_run(spec, root=root)
    if run.refusals:
        raise ExportRefused(refused_words(run.refusals))
    options = Options(
        nodes=body.nodes,
        time=body.time,
        partition=body.partition,
        image=body.image,
        volume=body.volume,
    )
    text = body.yaml if body.yaml is not None else dump(spec)
    job = job_of(spec, text, run.plan, root or Path.cwd(), body.target, options)
    ending = ENDINGS.get(body.target, "yaml")
    return JobFile(name=f"{job.name}.{ending}", text=WRITERS[body.target](job))
