"""A driver that is killed while it works on Ray: what it has started holds nothing of its run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.smallest import GRPO

from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.run_files.run_lock import is_held

pytestmark = [pytest.mark.attack, pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240
LOOP = GRPO.replace("steps: 3", "steps: 8") + "run: {checkpoint_every: 1, keep: 3}\n"


def driver(place: Path, address: str, *what: str) -> "subprocess.Popen[str]":
    """`coloop run` on a Ray that is there."""
    command = [sys.executable, "-m", "coloop", "run", "--json", *what]
    return subprocess.Popen(
        [*command, "--address", address, "--runs-dir", str(place)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "engine"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_a_driver_that_was_killed_on_ray_is_gone_on_with_at_once(
    local_ray: None, tmp_path: Path
) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    (tmp_path / "loop.yaml").write_text(LOOP, encoding="utf-8")
    first = driver(tmp_path, address, str(tmp_path / "loop.yaml"), "--run-id", "run")
    assert first.stdout is not None
    for line in first.stdout:
        if line.startswith("{") and json.loads(line)["type"] == "checkpoint":
            break
    first.send_signal(signal.SIGKILL)
    first.communicate()
    was_held = is_held(tmp_path / "run")

    again = driver(tmp_path, address, "--resume", "run")
    told, _ = again.communicate(timeout=SECONDS)

    assert not was_held
    assert again.returncode == 0, told
    seqs = [event["seq"] for event in read_events(tmp_path / "run" / "events.jsonl")]
    assert seqs == list(range(1, len(seqs) + 1))
