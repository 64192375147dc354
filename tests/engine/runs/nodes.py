"""A Ray cluster of several nodes on this machine, of which all but the first see neither its shared
memory nor its folders: `python -m tests.engine.runs.nodes <loop> <folder>` runs a loop over them.

    head     driver, pool `train`, run folder, run.storage       one core
    others   pool `write`                                        one core each, in a mount
                                                                 namespace of their own

The node with the engine is killed in step 3, where another one has come to take its place; that one
is killed in step 5, where none has, so the run ends; and once a third is there it is resumed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster

from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.io import parse
from coloop.workers import weight_sync
from coloop.workers.cluster import Deadlines

WAIT_SECONDS = 120.0
HIDE = "mount -t tmpfs tmpfs {folder} && mount -t tmpfs -o size=1g tmpfs /dev/shm && exec {ray}"
SMALL = "--object-store-memory=200000000"
STEPS = {3: "another node is there", 5: "no other node is there"}


class Node:
    """A node of the cluster that shares nothing with the first."""

    def __init__(self, address: str, folder: Path) -> None:
        ray_here = Path(sys.executable).parent / "ray"
        start = f"{ray_here} start --address={address} --num-cpus=1 {SMALL} --block"
        script = HIDE.format(folder=folder, ray=start)
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        """All its processes at once, as where a machine loses its power."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        for one in family:
            try:
                one.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        self.process.kill()
        self.process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.1)


def free_cores() -> float:
    return float(ray.available_resources().get("CPU", 0.0))


class Script:
    """Starts and kills nodes while a run goes on."""

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._folder = folder
        self.nodes: list[Node] = []
        self._done: set[int] = set()

    def add(self) -> None:
        self.nodes.append(Node(self._address, self._folder))
        wait_until(lambda: free_cores() >= 1.0)

    def when_the_trainer_is_placed(self) -> None:
        wait_until(lambda: free_cores() == 0.0)
        self.nodes.append(Node(self._address, self._folder))

    def hear(self, what: str, text: str) -> None:
        event = json.loads(text)
        step = event.get("step")
        begins = what == "event" and event.get("stage") == "actor.generate"
        if not begins or event["type"] != "stage.started" or step not in STEPS.keys() - self._done:
            return
        self._done.add(step)
        old = self.nodes[-1]
        if step == min(STEPS):
            self.add()
        old.kill()


def main(loop: Path, folder: Path) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    carried: list[str] = []
    carry = weight_sync.carry

    def counted(*arguments: Any) -> None:
        carry(*arguments)
        carried.append(arguments[3])

    weight_sync.carry = counted
    text = loop.read_text(encoding="utf-8")
    spec = parse(text).spec
    assert spec is not None
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    script = Script(cluster.address, folder)
    try:
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        threading.Thread(target=script.when_the_trainer_is_placed, daemon=True).start()
        request = {"spec": spec, "text": text, "root": folder, "runs_dir": folder, "threads": 2}
        request["sinks"] = [script.hear]
        request["deadlines"] = Deadlines(placement_seconds=60.0)
        first = run(RunRequest(**request, run_id="run", address=cluster.address))
        script.add()
        second = run(RunRequest(**request, resume=folder / "run", address=cluster.address))
    finally:
        for node in script.nodes:
            node.kill()
        ray.shutdown()
        cluster.shutdown()
    ended = [
        {"state": one.state.value, "error": one.error and one.error.message}
        for one in (first, second)
    ]
    sys.stdout.write(json.dumps({"ended": ended, "carried": carried}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
