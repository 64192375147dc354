"""How a run of a hundred nodes feels that tells ten times a second: frames while its graph is
dragged, and the share of the main thread that watching it takes.

The run is written by the bench, at the pace that is asked of a page; the service and the page are
the real ones, in headless Chromium without a GPU. What watching costs is the difference between
seconds in which the run tells and seconds in which it is silent.
"""

import json
import re
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright
from tests.bench.bench_canvas import BROWSERS, MOVES, WATCH, chained_nodes
from tests.bench.bench_service import server
from tests.bench.results import Goal, Result, Table
from tests.bench.server import TOKEN

from coloop.events import Gauges, NodeGauge, RunStateName, StageGauge, utc_now
from coloop.spec.text.emit import to_yaml

CHAINS = 25
EVENTS_PER_SECOND = 10
METRICS = ("reward/mean", "reward/std", "kl", "entropy", "clip_fraction", "group/zero_variance")
MORE = (
    "reward/max",
    "rollout/length",
    "rollout/finished",
    "learning_rate",
    "gradient_norm",
    "loss/rewards",
)
SECONDS = 8.0
LONGEST_FRAME_MILLISECONDS = 1000 / 60
LARGEST_SHARE = 0.2


def run() -> Result:
    found = shutil.which(next(filter(shutil.which, BROWSERS), ""))
    if found is None:
        return Result(title="A live run of 100 nodes", text="no Chromium; `make chromium` has it")
    with tempfile.TemporaryDirectory(prefix="coloop-bench-live-") as name:
        folder = Path(name) / "runs" / "bench"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(to_yaml(chained_nodes(CHAINS)), encoding="utf-8")
        teller = Teller(folder)
        teller.tell()
        with server(Path(name)) as (url, _), teller.telling(), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 2560, "height": 1440})
            page.goto(f"{url}/runs/bench?token={TOKEN}")
            page.get_by_role("article").first.wait_for()
            page.get_by_role("figure").first.wait_for()
            page.get_by_role("button", name=re.compile("^[0-9]+ more$")).click()
            page.wait_for_timeout(3000)
            nodes, charts = page.get_by_role("article").count(), page.get_by_role("figure").count()
            told = _share(page)
            teller.is_silent.set()
            page.wait_for_timeout(1000)
            silent = _share(page)
            still = _frames(page)
            teller.is_silent.clear()
            page.wait_for_timeout(1000)
            frames = _frames(page)
            browser.close()
    share = max(0.0, told - silent)
    times = {"it tells": frames, "it is silent": still}
    median = statistics.median(frames)
    return Result(
        title="A live run of 100 nodes",
        tables=(
            Table(
                title=f"Milliseconds between frames while the graph is dragged; {nodes} nodes and "
                f"{charts} charts on the page, {EVENTS_PER_SECOND} events a second.",
                head=("while", "median", "95th of 100", "slowest", "main thread at work"),
                rows=tuple(
                    (
                        while_,
                        f"{statistics.median(taken):.1f} ms",
                        f"{sorted(taken)[int(0.95 * len(taken))]:.1f} ms",
                        f"{max(taken):.1f} ms",
                        f"{100 * work:.0f} %",
                    )
                    for (while_, taken), work in zip(times.items(), (told, silent), strict=True)
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"telemetry takes at most {100 * LARGEST_SHARE:.0f} % of the main thread",
                found=f"{100 * share:.1f} %",
                is_reached=share <= LARGEST_SHARE,
            ),
            Goal(
                wanted="60 frames a second while the graph is dragged",
                found=f"{1000 / median:.0f}",
                is_reached=median <= 1.05 * LONGEST_FRAME_MILLISECONDS,
            ),
        ),
        data={"frames": times, "told": told, "silent": silent, "nodes": nodes, "charts": charts},
    )


class Teller:
    """Writes the files of a run that goes on, as its driver does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seq = 0
        self._step = 0
        self.is_silent = threading.Event()
        self._is_over = threading.Event()

    @contextmanager
    def telling(self) -> Iterator[None]:
        thread = threading.Thread(target=self._go_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _go_on(self) -> None:
        while not self._is_over.wait(1 / EVENTS_PER_SECOND):
            if not self.is_silent.is_set():
                self.tell()

    def tell(self) -> None:
        """The metrics of a step of one of the learners, and what all nodes do."""
        if self._seq == 0:
            self._write("run.state", state="running")
        self._step += 1
        node = f"actor_{self._step % CHAINS}"
        values = dict.fromkeys((*METRICS, *MORE), self._step % 17 / 17)
        self._write("metrics", node=node, metrics=values)
        text = self._gauges().model_dump_json()
        (self._folder / "gauges.json.new").write_text(text, encoding="utf-8")
        (self._folder / "gauges.json.new").replace(self._folder / "gauges.json")

    def _write(self, kind: str, **told: Any) -> None:
        self._seq += 1
        head = {"seq": self._seq, "at": utc_now(), "run": "bench", "attempt": 1}
        line = json.dumps(head | {"step": self._step, "type": kind} | told)
        with (self._folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _gauges(self) -> Gauges:
        rate = 10 + self._step % 7
        names = [f"{kind}_{chain}" for chain in range(CHAINS) for kind in ("data", "actor")]
        stages = {
            f"{name}.{'load' if name.startswith('data') else 'generate'}": StageGauge(
                seconds=0.1, share=0.5, samples_per_second=rate, wall_samples_per_second=rate
            )
            for name in names
        }
        nodes = {name: NodeGauge(samples_per_second=rate, busy=rate / 20) for name in names}
        return Gauges(
            at=utc_now(),
            run="bench",
            state=RunStateName.RUNNING,
            step=self._step,
            step_seconds=0.1,
            nodes=nodes,
            stages=stages,
            bottleneck="actor_0.generate",
        )


def _share(page: Page) -> float:
    """Of some seconds, the share in which the main thread had a processor: others do not count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before, began = _at_work(session), time.monotonic()
    page.wait_for_timeout(1000 * SECONDS)
    found = (_at_work(session) - before) / (time.monotonic() - began)
    session.detach()
    return found


def _at_work(session: CDPSession) -> float:
    told = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in told if one["name"] == "TaskDuration"))


def _frames(page: Page) -> list[float]:
    page.evaluate(WATCH)
    page.mouse.move(700, 300)
    page.mouse.down(button="middle")
    for step in range(2 * MOVES):
        page.mouse.move(700 + 4 * (step % MOVES), 300 + step % MOVES)
    page.mouse.up(button="middle")
    frames: list[float] = page.evaluate("() => window.frames_")
    return frames[1:]
