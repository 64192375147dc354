"""`coloop calibrate`: a small loop on this machine, for predictions of times.

What every run does at its end, `coloop.runtime.reporting.accuracy`, is done here with a loop that
uses each kind of stage and whose texts have a known length.
"""

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coloop.cli.app import Json
from coloop.cli.output import console, print_json
from coloop.errors import SettingInvalid
from coloop.plan.cost import explain
from coloop.plan.settings.corrections import machine_name
from coloop.plan.settings.measured import PLACE, measured_here
from coloop.plan.unrolled import Unrolled
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run as run_loop
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch, require
from coloop.workers import openmp

LOOP = "grpo-arithmetic"
PHASES = [
    {"name": "first", "steps": 4, "learn": ["actor.rewards", "actor.demonstrations"]},
    {"name": "rl", "steps": 16, "learn": ["actor.rewards"]},
    {
        "name": "sft",
        "steps": 16,
        "learn": ["actor.demonstrations"],
        "set": {"nodes.problems.rows_per_step": 64},
    },
]
"""What is done for the first time takes longer, so it is done in a phase that does not count. A
policy that has not learned yet writes nearly as much as it may."""
CHANGES: list[tuple[str, object]] = [
    ("nodes.actor.rollout.expected_tokens", 7),
    ("nodes.actor.training.optimizer.lr", 0.0),
    ("nodes.start.model.refresh", {"at": "rl"}),
    ("nodes.probe.every", 1_000_000),
    ("run.checkpoint_every", 1_000_000),
    ("schedule.phases", PHASES),
    ("schedule.triggers", []),
]


def calibrate_command(
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Do nothing if there are times of this machine.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure this machine with a small loop of some seconds. Later predictions of times are
    corrected by it, as by every run."""
    measured = measured_here()
    if measured is None:
        raise SettingInvalid(
            f"{PLACE} is {os.environ.get(PLACE)!r}: set it to an absolute path of a file, or unset "
            "it to keep the times below ~/.cache"
        )
    text = patch(
        presets.load_loop_text(LOOP),
        [Change(op="set", path=path, value=value) for path, value in CHANGES],
    )
    spec = require(parse(text))
    survey = Unrolled(spec).settings().survey
    if not (if_missing and measured.knows(machine_name(survey))):
        openmp.set_default_threads(1)
        with tempfile.TemporaryDirectory(prefix="coloop-calibrate-") as place:
            run_loop(
                RunRequest(
                    spec=spec,
                    text=text,
                    root=Path(place),
                    runs_dir=Path(place),
                    cluster="local",
                    threads=1,
                )
            )
    found = {correction.stage: correction.factor for correction in explain(spec).corrections}
    if as_json:
        print_json({"machine": machine_name(survey), "measured_over_predicted": found})
        return 0
    table = Table("stage", "measured / predicted", title=machine_name(survey))
    for stage, factor in found.items():
        table.add_row(stage, f"{factor:.2f}")
    console().print(table)
    return 0
