"""Eight trained models in one graph are planned, estimated and run, and all of them learn."""

from pathlib import Path

from tests.engine.many_models import loop_of
from tests.presets.test_loops import is_changed

from coloop.plan.compile import compile_plan
from coloop.plan.cost import estimate
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.io import parse, require
from coloop.validate import validate


def test_eight_models_learn_in_one_graph(tmp_path: Path) -> None:
    text = loop_of(8, every=1)
    spec = require(parse(text))
    learners = list(spec.graph.learners())

    assert validate(spec).diagnostics == ()
    assert len(learners) == 8
    (phase,) = compile_plan(spec).phases
    assert {f"{node}.learn" for node in learners} <= {stage.name for stage in phase.stages}
    assert estimate(spec).step_seconds is not None

    result = run(
        RunRequest(
            spec=spec, text=text, root=tmp_path, runs_dir=tmp_path, cluster="local", threads=1
        )
    )

    assert result.error is None
    assert all(is_changed(result.folder / "checkpoints", node) for node in learners)
