"""`coloop launch`: job files that run a loop on a cluster."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from coloop.cli.app import Settings, Spec
from coloop.cli.check import checked_spec
from coloop.cli.output import complain
from coloop.data.files.marks import write_whole
from coloop.errors import ColoopError, ExportRefused, PlanRefused
from coloop.launch import WRITERS, Options, Target, job_of
from coloop.plan.run_check import check_run

SINFO_SECONDS = 10.0
REFUSED = 1


def launch_command(
    spec: Spec,
    settings: Settings = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="A script for sbatch.")] = False,
    kuberay: Annotated[
        bool, typer.Option("--kuberay", help="A RayJob for Kubernetes with KubeRay.")
    ] = False,
    kuberay_cluster: Annotated[
        bool, typer.Option("--kuberay-cluster", help="A RayCluster that stays.")
    ] = False,
    sky: Annotated[bool, typer.Option("--sky", help="A task for SkyPilot.")] = False,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Machines; default: those of the loop's `hardware`.")
    ] = None,
    gpus_per_node: Annotated[int | None, typer.Option(min=0, help="GPUs of each machine.")] = None,
    time: Annotated[
        str | None, typer.Option(help="Walltime, as Slurm writes it: `12:00:00`, `1-00:00:00`.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Partition of Slurm.")] = None,
    account: Annotated[str | None, typer.Option(help="Account that Slurm charges.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image with Ray and coloop.")] = None,
    accelerator: Annotated[
        str | None, typer.Option(help="Type of the GPUs in the words of the cluster.")
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option(help="Shell line that machines run first. May be repeated."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="Name of an environment variable to pass on. May be repeated."),
    ] = None,
    runs_dir: Annotated[
        str, typer.Option(help="Folder of run folders, on storage that all machines see.")
    ] = "runs",
    volume: Annotated[
        str | None,
        typer.Option(help="Volume claim (KubeRay) or bucket (SkyPilot) of the run folders."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write to this file; else it is printed.")
    ] = None,
) -> int:
    """Write the job file of a loop for a cluster: machines and placement of its plan, secrets by
    name, and a run that resumes when the job is queued again."""
    asked = {
        "slurm": slurm,
        "kuberay": kuberay,
        "kuberay-cluster": kuberay_cluster,
        "sky": sky,
    }
    chosen = [target for target, is_asked in asked.items() if is_asked]
    if len(chosen) != 1:
        raise typer.BadParameter("give one of --slurm, --kuberay, --kuberay-cluster and --sky")
    target: Target = chosen[0]  # type: ignore[assignment]
    checked, loop = checked_spec(spec, settings, as_json=False)
    try:
        run = check_run(loop, checked.unrolled, root=checked.source.root)
        if run.refusals:
            raise PlanRefused(run.sentence or "", run.refusals)
        if partition is not None and target == "slurm":
            check_partition(partition)
        options = Options(
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            time=time,
            partition=partition,
            account=account,
            image=image,
            accelerator=accelerator,
            setup=tuple(setup or ()),
            secrets=tuple(secret or ()),
            runs_dir=runs_dir,
            volume=volume,
        )
        text, root = checked.source.text, checked.source.root.resolve()
        job = job_of(loop, text, run.plan, root, target, options)
        written = WRITERS[target](job)
    except ColoopError as refused:
        complain(str(refused))
        return REFUSED
    if out is None or str(out) == "-":
        sys.stdout.write(written)
    else:
        write_whole(out, written)
    return 0


def check_partition(name: str) -> None:
    """Raises `ExportRefused` where Slurm is on this machine and has no such partition."""
    if shutil.which("sinfo") is None:
        return
    try:
        asked = subprocess.run(
            ["sinfo", "--noheader", "--format=%R"],
            capture_output=True,
            text=True,
            timeout=SINFO_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return
    there = sorted(set(asked.stdout.split()))
    if asked.returncode == 0 and name not in there:
        raise ExportRefused(
            f"--partition {name}: Slurm has no such partition; it has {', '.join(there)}"
        )
