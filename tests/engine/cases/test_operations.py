"""Where people run: the folders that a scheduler of jobs gives them."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

CASE = Path(__file__).resolve().parents[3].parent / "shared/cases/2026-11/25-long-tmpdir"
SECONDS = 300
LONG = 80

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(not CASE.exists(), reason="the cases are not here"),
    pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed"),
    pytest.mark.slow,
]


def test_a_run_on_ray_finishes_where_tmpdir_is_too_long_for_its_sockets(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        folder = Path(short, "x" * (LONG - len(short) - 1))
        folder.mkdir()
        environment = {**os.environ, "TMPDIR": str(folder)}
        environment.pop("RAY_TMPDIR", None)
        command = [sys.executable, "-m", "coloop", "run", str(CASE / "loop.yaml"), "--json"]

        done = subprocess.run(
            [*command, "--runs-dir", str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    assert len(str(folder)) == LONG
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["state"] for one in events if one["type"] == "run.state"][-1] == "finished"
