"""`coloop launch` as a command: one target, a partition that Slurm has, a file or the screen."""

import os
from pathlib import Path

import pytest
import yaml

SLURM = ("--slurm", "--time", "2:00:00")


def test_a_job_file_is_printed_or_written(coloop, loop, tmp_path):
    printed = coloop("launch", loop(), *SLURM)
    written = coloop("launch", loop(), *SLURM, "-o", tmp_path / "job.sbatch")

    assert (printed.code, written.code) == (0, 0)
    assert printed.out.startswith("#!/bin/bash\n")
    assert "#SBATCH --time=2:00:00" in (tmp_path / "job.sbatch").read_text(encoding="utf-8")


def test_one_target_is_named(coloop, loop):
    for targets in ((), ("--slurm", "--sky")):
        outcome = coloop("launch", loop(), *targets)

        assert outcome.code == 2
        assert "give one of --slurm, --kuberay, --kuberay-cluster and --sky" in " ".join(
            outcome.err.replace("│", " ").split()
        )


def test_a_partition_that_slurm_does_not_have_is_refused(
    coloop, loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\nprintf 'long\\nshort\\n'\n", encoding="utf-8")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    refused = coloop("launch", loop(), *SLURM, "--partition", "gpu")
    taken = coloop("launch", loop(), *SLURM, "--partition", "short")

    assert refused.code == 1
    assert "--partition gpu: Slurm has no such partition; it has long, short" in refused.err
    assert taken.code == 0


def test_changed_settings_are_part_of_the_job(coloop, loop):
    outcome = coloop("launch", loop(), "--sky", "--set", "schedule.steps=7")

    task = yaml.safe_load(outcome.out)
    assert "steps: 7" in task["run"]


def test_a_loop_that_a_run_refuses_has_no_job(coloop, loop):
    outcome = coloop("launch", loop(), *SLURM, "--set", "nodes.actor.training.dtype=float16")

    assert outcome.code == 1
    assert "float16" in outcome.err
