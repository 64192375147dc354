"""A driver without an engine: writes the folder that `coloop run` writes, obeys its control file.

    fake_driver.py SPEC --runs-dir DIR --run-id ID [--root DIR] [--resume RUN] [--force]
                   [--local | --address ADDRESS]

What it does is told by words in the spec's `description`, each with a default:

    steps=3 seconds=0.01   steps, and the time of each
    hold=0                 after the last step wait for a request to stop, up to so many seconds
    die=0                  end without a word in that step
    deaf                   never stop on request
    crash                  end before there is a run folder
    flood=0                so many log events of 1 KiB each in every step
"""

import argparse
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from coloop.data.files.marks import Marks
from coloop.runtime.checkpoints.manifest import write_manifest
from coloop.runtime.run_files.events import (
    CONTROL_ADAPTER,
    MARK,
    CheckpointEvent,
    EditEvent,
    EditRequest,
    Event,
    Gauges,
    LogEvent,
    MetricsEvent,
    PhaseEvent,
    RunStateEvent,
    RunStateName,
    SampleEvent,
    StageFinished,
    StageStarted,
    StopRequest,
    utc_now,
)


def read_options(text: str) -> dict[str, float]:
    """Read without the language, whose import would take longer than the run."""
    options = {"steps": 3.0, "seconds": 0.01}
    found = re.search(r"^description: (.*)$", text, re.MULTILINE)
    for word in (found[1] if found else "").split():
        name, _, value = word.partition("=")
        options[name] = float(value or 1)
    return options


class Driver:
    def __init__(self, folder: Path, run: str, options: dict[str, float]) -> None:
        self.folder, self.run, self.options = folder, run, options
        self.events = folder / "events.jsonl"
        self.control = folder / "control.jsonl"
        self.seq, self.attempt, self.step = 0, 1, 0
        self.is_stopping = False
        if self.events.exists():
            last = json.loads(self.events.read_text(encoding="utf-8").splitlines()[-1])
            self.seq, self.attempt = last["seq"], last["attempt"] + 1
        self.read = self.control.stat().st_size if self.control.exists() else 0

    def record(self, event: Event) -> None:
        self.seq += 1
        stamp = {"seq": self.seq, "at": utc_now(), "run": self.run, "attempt": self.attempt}
        text = event.model_copy(update=stamp).model_dump_json(exclude_none=True)
        with self.events.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
        self.tell(text)

    def tell(self, text: str) -> None:
        """A marked line, for a launcher that does not see this folder."""
        if os.environ.get("COLOOP_MARKED_LINES"):
            sys.stdout.write(f"{MARK}{text}\n")
            sys.stdout.flush()

    def show(self, state: RunStateName) -> None:
        gauges = Gauges(
            at=utc_now(),
            run=self.run,
            attempt=self.attempt,
            state=state,
            step=self.step,
            steps_total=int(self.options["steps"]),
        )
        text = gauges.model_dump_json(exclude_none=True)
        aside = self.folder / "gauges.json.new"
        aside.write_text(text, encoding="utf-8")
        aside.replace(self.folder / "gauges.json")
        self.tell(f'{{"type":"gauges","gauges":{text}}}')

    def become(self, state: RunStateName) -> None:
        """That the run is over is said last."""
        self.show(state)
        self.record(RunStateEvent(state=state, step=self.step))

    def obey(self) -> None:
        if not self.control.exists():
            return
        with self.control.open("rb") as file:
            file.seek(self.read)
            lines = file.readlines()
        for line in lines:
            self.read += len(line)
            match CONTROL_ADAPTER.validate_json(line):
                case StopRequest():
                    self.is_stopping = "deaf" not in self.options
                case EditRequest(changes=changes, by=by):
                    self.record(EditEvent(changes=changes, by=by, step=self.step))

    def one_step(self) -> None:
        self.step += 1
        stage = "actor.generate"
        self.record(StageStarted(stage=stage, phase="rl", node="actor", step=self.step))
        if self.options.get("die") == self.step:
            with self.events.open("a", encoding="utf-8") as file:
                file.write('{"seq": 999, "type": "lo')
            sys.exit("out of luck")
        for number in range(int(self.options.get("flood", 0))):
            self.record(LogEvent(message=f"{number} " + "x" * 1000, step=self.step))
        seconds = self.options["seconds"]
        time.sleep(seconds)
        done = StageFinished(
            stage=stage, phase="rl", node="actor", step=self.step, seconds=seconds, samples=4
        )
        self.record(done)
        metrics: dict[str, float | None] = {"reward/mean": self.step / 10, "kl": 0.01}
        self.record(MetricsEvent(node="actor", step=self.step, metrics=metrics))
        self.sample()
        self.show(RunStateName.RUNNING)

    def sample(self) -> None:
        rows: list[dict[str, Any]] = [
            {"id": f"{self.step}.{k}", "prompt": "1+1=", "completion": str(k), "reward": k == 2}
            for k in range(3)
        ]
        path = self.folder / "samples" / f"step-{self.step}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        named = str(path.relative_to(self.folder))
        self.record(SampleEvent(path=named, node="actor", step=self.step, rows=rows[:1]))

    def work(self) -> None:
        steps = int(self.options["steps"])
        self.become(RunStateName.STARTING)
        self.become(RunStateName.RUNNING)
        phase = PhaseEvent(
            phase="rl", index=0, learn=["actor.rewards"], steps=steps, state="started"
        )
        self.record(phase)
        while self.step < steps and not self.is_stopping:
            self.one_step()
            self.obey()
        until = time.monotonic() + self.options.get("hold", 0)
        while time.monotonic() < until and not self.is_stopping:
            time.sleep(0.05)
            self.show(RunStateName.RUNNING)
            self.obey()
        if self.is_stopping:
            self.become(RunStateName.STOPPING)
        checkpoint = self.folder / "checkpoints" / f"step-{self.step}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        weights = checkpoint / "weights.safetensors"
        weights.write_bytes(b"numbers")
        sha256 = Marks().of([weights])[weights].sha256
        files = {weights.name: weights.stat().st_size}
        hashes = {weights.name: sha256}
        write_manifest(checkpoint, {"step": self.step, "files": files, "hashes": hashes})
        self.record(CheckpointEvent(path=f"checkpoints/{checkpoint.name}", step=self.step))
        report = json.dumps({"steps": self.step})
        (self.folder / "report.json").write_text(report, encoding="utf-8")
        self.become(RunStateName.STOPPED if self.is_stopping else RunStateName.FINISHED)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=Path)
    parser.add_argument("--runs-dir", type=Path, required=True)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--address")
    parser.add_argument("--resume")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--local", action="store_true")
    given = parser.parse_args()
    text = given.spec.read_text(encoding="utf-8")
    options = read_options(text)
    if "crash" in options:
        sys.exit("no engine in sight")
    if "deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = given.runs_dir / given.run_id
    folder.mkdir(parents=True, exist_ok=given.resume == given.run_id)
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    Driver(folder, given.run_id, options).work()


if __name__ == "__main__":
    main()
