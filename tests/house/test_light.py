"""The light line: designing, checking, estimating, planning and serving load nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "torch", "ray", "vllm", "deepspeed", "transformers")
LIGHT = (
    "coloop",
    "coloop.errors",
    "coloop.diagnostics",
    "coloop.events",
    "coloop.presets",
    "coloop.run_lock",
    "coloop.spec.io",
    "coloop.spec.catalog",
    "coloop.spec.lineage",
    "coloop.estimate",
    "coloop.validate",
    "coloop.plan.compile",
    "coloop.rehearsal",
    "coloop.cli.app",
    "coloop.data.tasks",
    "coloop.sandbox.process",
    "coloop.services.service",
    "coloop_server.app",
)


@pytest.mark.parametrize("module", LIGHT)
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    code = f"import sys; import {module}; print(','.join(m for m in {HEAVY!r} if m in sys.modules))"

    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )

    assert loaded.stdout.strip() == ""


NOT_A_DRIVERS = (
    *(
        "transformers",
        "tokenizers",
        "pyarrow",
        "sympy",
        "torch._dynamo",
        "torch.distributed.tensor",
    ),
    *("ray", "coloop.models", "coloop.training", "coloop.rollout", "coloop.hosts.host"),
)


def test_a_driver_loads_no_models() -> None:
    """Where the processes of its pools compute, it would hold 110 MiB for nothing."""
    code = (
        "import sys; import coloop.runtime.start; "
        f"print(','.join(m for m in {NOT_A_DRIVERS!r} if m in sys.modules))"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert loaded.stdout.strip() == "", loaded.stderr
