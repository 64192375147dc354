"""A run of 100,000 steps: how soon the page shows it, and the memory that the page takes.

The run is the quick start's: a short one is trained, and its steps are told over and over until
there are as many. So the file has the size, and each step the stages, metrics, samples and logs,
of a run that took a day. The service has read it before, as it has any run that it saw going on.

The page is open when each node says that it finished and each chart in sight has its curve. Memory
is the page's process, less what the same process takes for an empty page.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from tests.bench.bench_canvas import chromium
from tests.bench.bench_service import client, processor_seconds, resident_mb, server, timed
from tests.bench.results import Goal, Result, Table
from tests.bench.runs import train
from tests.bench.server import TOKEN

STEPS = 100_000
WARM_UP = 10
TRAINED = 40
OPENED = 5
MOST_SECONDS = 2.0
MOST_MEMORY_MB = 150.0
PATIENCE = 600

IS_OPEN = """() => {
    const nodes = document.querySelectorAll("article").length;
    const figures = [...document.querySelectorAll("figure")].filter((one) => {
        const box = one.getBoundingClientRect();
        return one.contains(document.elementFromPoint(box.x + 20, box.y + box.height / 2));
    });
    const drawn = figures.filter((one) => one.querySelector("canvas"));
    return nodes > 0 && figures.length > 0 && drawn.length === figures.length
        && figures.every((one) => /step [0-9]/.test(one.textContent));
}"""


def run(share: float = 1.0) -> Result:
    """Seconds until a long run is open, and megabytes of the page."""
    found = chromium()
    if found is None:
        return Result(title="A run of 100,000 steps", text="no Chromium; `make chromium` has it")
    steps = round(STEPS * share)
    with tempfile.TemporaryDirectory(prefix="coloop-bench-long-") as name:
        folder = Path(name)
        written = write_run(folder / "runs" / "long", steps)
        with server(folder) as (url, process), client(url) as http, sync_playwright() as playwright:
            began = time.monotonic()
            catalog = timed(http, "/api/catalog")
            while not is_read(http.get("/api/runs").json(), steps):
                assert time.monotonic() - began < PATIENCE, http.get("/api/runs").json()
                time.sleep(0.2)
            first = time.monotonic() - began
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            opened = [open_once(browser, url) for _ in range(OPENED)]
            browser.close()
            service = {
                "memory": resident_mb(process.pid),
                "at_work": processor_seconds(process.pid),
            }
    took = [one["seconds"] for one in opened]
    memory = max(one["memory"] for one in opened)
    return Result(
        title=f"A run of {steps:,} steps",
        tables=(
            Table(
                title=f"{written['events']:,} events, {written['bytes'] / 1e6:.0f} MB",
                head=("what", "found"),
                rows=(
                    ("first read by the service", f"{first:.1f} s"),
                    ("the first `GET /catalog` meanwhile", f"{catalog:.0f} ms"),
                    ("the service's memory then", f"{service['memory']:.0f} MB"),
                    ("the page is open, first time", f"{took[0]:.2f} s"),
                    ("the page is open, median", f"{statistics.median(took):.2f} s"),
                    ("the page is open, slowest", f"{max(took):.2f} s"),
                    ("JavaScript's heap", f"{max(one['heap'] for one in opened):.0f} MB"),
                    ("the page's process, minus an empty page's", f"{memory:.0f} MB"),
                    ("an empty page's process", f"{opened[0]['empty']:.0f} MB"),
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"opens in {MOST_SECONDS:g} s",
                found=f"{statistics.median(took):.2f} s at the median, {max(took):.2f} s at most",
                is_reached=max(took) <= MOST_SECONDS,
            ),
            Goal(
                wanted=f"stays under {MOST_MEMORY_MB:g} MB of page memory",
                found=f"{memory:.0f} MB",
                is_reached=memory < MOST_MEMORY_MB,
            ),
        ),
        data={"opened": opened, "written": written, "first": first, "catalog": catalog} | service,
    )


def write_run(folder: Path, steps: int) -> dict[str, int]:
    """The folder of a quick start of so many steps; its events and their bytes."""
    lengths = {"schedule.phases.0.steps": WARM_UP, "schedule.phases.1.steps": TRAINED}
    train("grpo-arithmetic", settings=lengths, keep=folder)
    spec = (folder / "spec.yaml").read_text(encoding="utf-8")
    assert f"steps: {TRAINED}" in spec
    (folder / "spec.yaml").write_text(
        spec.replace(f"steps: {TRAINED}", f"steps: {steps - WARM_UP}"), encoding="utf-8"
    )
    gauges = folder / "gauges.json"
    ends = {"step": steps, "steps_total": steps}
    gauges.write_text(json.dumps(json.loads(gauges.read_text("utf-8")) | ends), encoding="utf-8")
    path = folder / "events.jsonl"
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    random.seed(0)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for count, event in enumerate(repeated(told, steps), 1):
            file.write(json.dumps(event | {"seq": count}, separators=(",", ":")) + "\n")
    return {"events": count, "bytes": path.stat().st_size}


def repeated(told: list[dict[str, Any]], steps: int) -> Iterator[dict[str, Any]]:
    """The warm-up, the steps after it again and again, and the end."""
    *told, last = told
    yield from (event for event in told if event.get("step", 0) <= WARM_UP)
    middle = [event for event in told if event.get("step", 0) > WARM_UP]
    lasts = datetime.fromisoformat(middle[-1]["at"]) - datetime.fromisoformat(middle[0]["at"])
    for turn, begin in enumerate(range(0, steps - WARM_UP, TRAINED)):
        for event in middle:
            if (step := begin + event["step"]) <= steps:
                yield moved(event, turn * lasts) | {"step": step}
    yield last | {"step": steps}


def moved(event: dict[str, Any], later: timedelta) -> dict[str, Any]:
    """The same at a later time and with other numbers, as no step has those of another."""
    at = (datetime.fromisoformat(event["at"]) + later).isoformat().replace("+00:00", "Z")
    if event["type"] != "metrics":
        return event | {"at": at}
    told = event["metrics"].items()
    values = {name: value and value + random.random() for name, value in told}
    return event | {"at": at, "metrics": values}


def is_read(runs: list[dict[str, Any]], steps: int) -> bool:
    return bool(runs) and runs[0]["step"] == steps and runs[0]["state"] == "finished"


def open_once(browser: Browser, url: str) -> dict[str, float]:
    """Seconds until a new browser window shows the run, and what its page takes."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{url}/?token={TOKEN}")
    page.wait_for_function("localStorage.getItem('coloop.ticket')")
    page.goto("about:blank")
    page.wait_for_timeout(1000)
    empty = pages_mb(browser)
    began = time.monotonic()
    page.goto(f"{url}/runs/long")
    page.wait_for_function(IS_OPEN, polling="raf", timeout=1000 * PATIENCE)
    seconds = time.monotonic() - began
    page.wait_for_timeout(3000)
    memory = pages_mb(browser) - empty
    heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
    context.close()
    return {"seconds": seconds, "memory": memory, "heap": heap, "empty": empty}


def pages_mb(browser: Browser) -> float:
    """Megabytes that the browser's pages share with nobody."""
    session = browser.new_browser_cdp_session()
    told = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return sum(private_mb(one["id"]) for one in told if one["type"] == "renderer")


def private_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(one.split()[1]) for one in lines if one.startswith("Private_")) / 1024
