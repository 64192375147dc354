"""Two machines that share no folder, of which one loses its power; see `nodes`."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.engine.smallest import AHEAD

from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.recovery import REPLACED
from coloop.runtime.run_files.event_file import read_events

WEIGHTS = "model.safetensors"
ROOT = Path(__file__).resolve().parents[3]
LOOP = AHEAD.replace("max_staleness: 1", "max_staleness: 0").replace("steps: 10", "steps: 6")
STORED = LOOP.replace("keep: 2", "keep: 2, checkpoint_every: 1, storage: ./stored")


def may_unshare() -> bool:
    """Whether this user may have a mount namespace with disks of its own."""
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
@pytest.mark.skipif(not may_unshare(), reason="this user may not unshare the disks of a process")
def test_a_run_over_two_nodes_outlives_one_of_them(
    tmp_path: Path, whole: Callable[..., Any], equal: Callable[..., bool]
) -> None:
    loop, folder = tmp_path / "loop.yaml", tmp_path / "head"
    folder.mkdir()
    loop.write_text(STORED, encoding="utf-8")
    command = [sys.executable, "-m", "tests.engine.runs.nodes", str(loop), str(folder)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    first, second = told["ended"]
    assert first["state"] == "failed"
    assert "pool write" in first["error"]
    assert "it cannot be restarted" in first["error"]
    assert second["state"] == "finished", second["error"]
    assert set(told["carried"]) == {"write"}, "all weights went by way of the driver"
    events = read_events(folder / "run" / "events.jsonl")
    assert [one["step"] for one in events if one.get("code") == REPLACED] == [3]
    assert [c.step for c in list_checkpoints(folder / "stored" / "run" / "checkpoints")][-1] == 6
    learned = load_file(folder / "stored" / "run" / "checkpoints" / "step-6" / "actor" / WEIGHTS)
    assert equal(learned, whole(LOOP).group("actor"))
