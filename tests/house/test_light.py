"""The light line: designing, checking, estimating, planning and serving load nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "torch", "ray", "vllm", "deepspeed", "transformers")
LIGHT = (
    "coloop",
    "coloop.errors",
    "coloop.spec.diagnostics",
    "coloop.runtime.run_files.events",
    "coloop.spec.presets",
    "coloop.runtime.run_files.run_lock",
    "coloop.spec.io",
    "coloop.spec.catalog",
    "coloop.spec.lineage",
    "coloop.plan.cost",
    "coloop.validate",
    "coloop.plan.compile",
    "coloop.explain.controls",
    "coloop.explain.rehearsal",
    "coloop.explain.codes",
    "coloop.explain.algorithm",
    "coloop.cli.app",
    "coloop.data.tasks",
    "coloop.sandbox.process",
    "coloop.data.services.service",
    "coloop_server.app",
)


def test_importing_them_loads_nothing_heavy() -> None:
    """One after the other in one process: what is heavy is told beside the module that loads it."""
    code = (
        "import importlib, sys\n"
        f"for module in {LIGHT!r}:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(module)\n"
        f"    for heavy in {HEAVY!r}:\n"
        "        if heavy in sys.modules and heavy not in before:\n"
        "            print(f'{module} loads {heavy}')"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )

    assert loaded.stdout.splitlines() == []


NOT_A_DRIVERS = (
    *(
        "transformers",
        "tokenizers",
        "pyarrow",
        "sympy",
        "torch._dynamo",
        "torch.distributed.tensor",
    ),
    *(
        "ray",
        "coloop.models",
        "coloop.workers.training",
        "coloop.workers.rollout",
        "coloop.workers.worker",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "its_own"),
    [("coloop.runtime.start", ()), ("coloop.workers.ray.ray_cluster", ("ray", "pyarrow"))],
)
def test_a_driver_loads_no_models(module: str, its_own: tuple[str, ...]) -> None:
    """Where the processes of its pools compute, it would hold 110 MiB for nothing."""
    others = tuple(one for one in NOT_A_DRIVERS if one not in its_own)
    code = f"import sys, {module}; print(','.join(m for m in {others!r} if m in sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert loaded.stdout.strip() == "", loaded.stderr
    assert loaded.returncode == 0
