"""How a run of a hundred nodes feels that tells ten times a second: frames while its graph is
dragged by its ground and by a box, and the share of the main thread that watching it takes.

The run is written by the bench, at the pace that is asked of a page; the service and the page are
the real ones, in headless Chromium without a GPU. What watching costs is the difference between
seconds in which the run tells and seconds in which it is silent. The boxes of a run stay where they
are, so that one that is dragged takes the graph with it; in a loop it is moved (`canvas`).

The control is a page of as many boxes with nothing in them, in one layer, moved by the same hand:
what the browser can do here at all.
"""

import json
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import CDPSession, Page, sync_playwright
from tests.bench.bench_canvas import IN_SIGHT, MOVES, WATCH, chained_nodes, chromium
from tests.bench.bench_service import server
from tests.bench.results import Goal, Result, Table
from tests.bench.server import TOKEN

from coloop.runtime.run_files.events import Gauges, NodeGauge, RunStateName, StageGauge, utc_now
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
PLACE = """() => document.querySelector(".react-flow__viewport").style.transform"""
PLAIN = """<!doctype html><style>
    body { margin: 0; overflow: hidden }
    main { position: absolute; inset: 0; will-change: transform; background: white }
    div { position: absolute; width: 220px; height: 160px; background: lightgray }
</style><main class="react-flow__viewport"></main><script>
    const main = document.querySelector("main");
    for (let index = 0; index < 100; index += 1) {
        const box = main.appendChild(document.createElement("div"));
        box.style.left = `${260 * (index % 10)}px`;
        box.style.top = `${200 * Math.floor(index / 10)}px`;
    }
    addEventListener("mousemove", (event) => {
        if (event.buttons) main.style.transform = `translate(${event.x}px, ${event.y}px)`;
    });
</script>"""


def run() -> Result:
    found = chromium()
    if found is None:
        return Result(title="A live run of 100 nodes", text="no Chromium; `make chromium` has it")
    with tempfile.TemporaryDirectory(prefix="coloop-bench-live-") as name:
        folder = Path(name) / "runs" / "bench"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(to_yaml(chained_nodes(CHAINS)), encoding="utf-8")
        run_writer = RunWriter(folder)
        run_writer.tell()
        with server(Path(name)) as (url, _), run_writer.telling(), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 2560, "height": 1440})
            page.goto(f"{url}/runs/bench?token={TOKEN}")
            page.get_by_role("article").first.wait_for()
            page.get_by_role("figure").first.wait_for()
            page.get_by_role("button", name=re.compile("^[0-9]+ more charts?$")).click()
            page.wait_for_timeout(3000)
            nodes, charts = page.get_by_role("article").count(), page.get_by_role("figure").count()
            told = _share(page)
            run_writer.is_silent.set()
            page.wait_for_timeout(1000)
            silent = _share(page)
            times = {"background, no events": _by_ground(page), "a box, no events": _by_box(page)}
            run_writer.is_silent.clear()
            page.wait_for_timeout(1000)
            times |= {"background": _by_ground(page), "a box": _by_box(page)}
            page.goto("about:blank")
            page.set_content(PLAIN)
            times["plain boxes"] = _by_ground(page)
            browser.close()
    share = max(0.0, told - silent)
    median = max(statistics.median(times[held]) for held in ("background", "a box"))
    control = statistics.median(times["plain boxes"])
    return Result(
        title="A live run of 100 nodes",
        tables=(
            Table(
                title=f"Milliseconds between frames while the graph is dragged; {nodes} nodes and "
                f"{charts} charts on the page, {EVENTS_PER_SECOND} events a second.",
                head=("dragged by", "median", "95th percentile", "slowest"),
                rows=tuple(
                    (
                        held,
                        f"{statistics.median(taken):.1f} ms",
                        f"{sorted(taken)[int(0.95 * len(taken))]:.1f} ms",
                        f"{max(taken):.1f} ms",
                    )
                    for held, taken in times.items()
                ),
            ),
            Table(
                title="Load of the main thread without user input.",
                head=("with events", "without events"),
                rows=((f"{100 * told:.1f} %", f"{100 * silent:.1f} %"),),
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
                found=f"{1000 / median:.0f} at the median, {1000 / control:.0f} with plain boxes",
                is_reached=median <= 1.05 * LONGEST_FRAME_MILLISECONDS,
            ),
        ),
        data={"frames": times, "told": told, "silent": silent, "nodes": nodes, "charts": charts},
    )


class RunWriter:
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


def _by_ground(page: Page) -> list[float]:
    return _frames(page, 700, 300, "middle")


def _by_box(page: Page) -> list[float]:
    _, x, y = page.evaluate(IN_SIGHT)
    return _frames(page, x, y, "left")


def _frames(page: Page, x: float, y: float, button: Literal["left", "middle"]) -> list[float]:
    """Of a drag to the right and down, and once more from where it began."""
    began = page.evaluate(PLACE)
    page.mouse.move(x, y)
    page.evaluate(WATCH)
    page.mouse.down(button=button)
    for step in range(2 * MOVES):
        page.mouse.move(x + 4 * (step % MOVES), y + step % MOVES)
    page.mouse.up(button=button)
    frames: list[float] = page.evaluate("() => window.frames_")
    assert page.evaluate(PLACE) != began, "the graph was not dragged"
    return frames[1:]
