"""The service under load: a thousand long runs, and a file that grows by 10,000 events a second.

The thousand runs are one event file of 50 MB and hard links to it: each folder has the whole file,
the disk has it once. The first run is read as any run is; the rows of the others are copies of its
row, as a server that had read them would have left them.
"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any, Self

import httpx
from sqlalchemy import insert, select
from tests.bench.machine import ROOT
from tests.bench.results import Goal, Result, Table
from tests.bench.server import BEARER, await_address, environment_in
from websockets.sync.client import connect

from coloop.runtime.run_files.events import utc_now
from coloop.spec.presets import load_loop_text
from coloop_server.database.connect import open_engine
from coloop_server.database.tables import RunLogRow, RunRow
from coloop_server.runs.series import sidecar_of
from coloop_server.runs.watch import Watch

RUNS = 1000
RUN_BYTES = 50_000_000
METRICS = 10
ASKED = 40
STARTS = 3

MOST_START_SECONDS = 3.0
MOST_PAGE_MILLISECONDS = 50.0
MOST_MEMORY_MB = 500.0

RATE = 10_000
SECONDS = 15
SLOW_CLIENTS = 3
MOST_LAG_SECONDS = 1.0
MOST_COST_OF_SLOW_CLIENTS = 1.25
"""Times what an event costs without them."""
PATIENCE = 120
"""Seconds for which a client may still read when all is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    runs: int
    run_bytes: int
    seconds: int

    @classmethod
    def of(cls, share: float) -> Self:
        return cls(
            runs=max(round(RUNS * share), 50),
            run_bytes=max(round(RUN_BYTES * share), 100_000),
            seconds=max(round(SECONDS * share), 2),
        )


def run(share: float = 1.0) -> Result:
    """Start, pages and memory with a thousand runs; 10,000 events a second with slow clients."""
    size = Size.of(share)
    many, stream = many_runs(size), flood(size)
    return Result(
        title="The service: a thousand runs, and 10,000 events a second",
        tables=(
            Table(
                title=f"{size.runs} ended runs of {size.run_bytes / 1e6:g} MB",
                head=("what", "found"),
                rows=(
                    ("start, to the first response of `GET /runs`", f"{many['start']:.2f} s"),
                    ("CPU seconds until then", f"{many['start_processor']:.2f} s"),
                    ("page of 50, median", f"{many['page']:.1f} ms"),
                    ("page of 50, 95th percentile", f"{many['page_95']:.1f} ms"),
                    ("page of 50 by name, with a search term", f"{many['search']:.1f} ms"),
                    ("curves of 50 runs, 32 buckets, first time", f"{many['sparks']:.0f} ms"),
                    ("curves of one run, 10 metrics, 400 buckets", f"{many['series']:.1f} ms"),
                    ("resident memory after lists", f"{many['memory_idle']:.0f} MB"),
                    ("resident memory after lists and curves", f"{many['memory']:.0f} MB"),
                    ("reading one such run for the first time", f"{many['first']:.1f} s"),
                    ("events read per CPU second", f"{many['read_by_core']:,.0f}"),
                ),
            ),
            Table(
                title=f"One file, {RATE:,} events/s for {size.seconds} s",
                head=("what", "alone", f"with {SLOW_CLIENTS} slow clients"),
                rows=tuple(
                    (what, *(shape(one[key]) for one in (stream["alone"], stream["crowded"])))
                    for what, key, shape in FLOOD_ROWS
                ),
            ),
        ),
        goals=(
            goal(f"start in {MOST_START_SECONDS:g} s", many["start"], MOST_START_SECONDS, "s"),
            goal(
                f"page of 50 in {MOST_PAGE_MILLISECONDS:g} ms",
                many["page"],
                MOST_PAGE_MILLISECONDS,
                "ms",
            ),
            goal(
                f"memory under {MOST_MEMORY_MB:g} MB",
                max(many["memory"], stream["memory"]),
                MOST_MEMORY_MB,
                "MB",
            ),
            *flood_goals(stream),
        ),
        data={"many": many, "stream": stream},
    )


FLOOD_ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("events written", "written", "{:.0f}".format),
    ("events received by the fast client", "came", "{:.0f}".format),
    ("written to received, median", "lag", "{:.3f} s".format),
    ("written to received, maximum", "lag_most", "{:.3f} s".format),
    ("`GET /runs` meanwhile, median", "page", "{:.1f} ms".format),
    ("`GET /runs` meanwhile, 95th percentile", "page_95", "{:.1f} ms".format),
    ("CPU of the server, in cores", "share", "{:.2f}".format),
    ("events processed and sent per CPU second", "by_core", "{:,.0f}".format),
)


def flood_goals(stream: dict[str, Any]) -> tuple[Goal, ...]:
    alone, crowded = stream["alone"], stream["crowded"]
    cost = alone["by_core"] / crowded["by_core"]
    lag = max(alone["lag_most"], crowded["lag_most"])
    return (
        Goal(
            wanted="no durable event lost",
            found=f"{crowded['came']} of {crowded['written']}, without a gap",
            is_reached=crowded["came"] == crowded["written"],
        ),
        goal("lag of at most one second", lag, MOST_LAG_SECONDS, "s"),
        Goal(
            wanted="slow clients cost nothing",
            found=f"CPU time per event is {cost:.2f} times that without slow clients",
            is_reached=cost <= MOST_COST_OF_SLOW_CLIENTS,
        ),
    )


def goal(wanted: str, found: float, most: float, unit: str) -> Goal:
    return Goal(wanted=wanted, found=f"{found:.2f} {unit}", is_reached=found <= most)


# A thousand runs


def many_runs(size: Size) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="coloop-bench-service-") as name:
        folder = Path(name)
        write_run(folder / "runs" / "run-0000", size.run_bytes)
        with server(folder) as (url, _), client(url) as http:
            began = time.monotonic()
            while not http.get("/api/runs").json():
                time.sleep(0.05)
            first = time.monotonic() - began
        copy_runs(folder, size.runs)
        starts = [start_of(folder, size.runs) for _ in range(STARTS)]
        with server(folder) as (url, process), client(url) as http:
            page = http.get("/api/runs?limit=50")
            pages = [timed(http, "/api/runs?limit=50") for _ in range(ASKED)]
            search = [timed(http, "/api/runs?limit=50&sort=name&search=run-0") for _ in range(9)]
            memory_idle = resident_mb(process.pid)
            runs = "&".join(f"runs={run['id']}" for run in page.json())
            sparks = timed(http, f"/api/runs/series?{runs}&metrics=policy.m0&buckets=32")
            names = "&".join(f"metrics=policy.m{number}" for number in range(METRICS))
            series = [timed(http, f"/api/runs/run-0007/series?{names}") for _ in range(9)]
            return {
                "first": first,
                "read_by_core": read_by_core(folder / "runs" / "run-0000"),
                "starts": starts,
                "start": statistics.median(wall for wall, _ in starts),
                "start_processor": statistics.median(processor for _, processor in starts),
                "memory_idle": memory_idle,
                "page": statistics.median(pages),
                "page_95": at_95(pages),
                "search": statistics.median(search),
                "sparks": sparks,
                "series": statistics.median(series),
                "memory": resident_mb(process.pid),
            }


def start_of(folder: Path, runs: int) -> tuple[float, float]:
    """Seconds from the start of a server to its first page, and those of the processor in it."""
    began = time.monotonic()
    with server(folder) as (url, process), client(url) as http:
        page = http.get("/api/runs?limit=50")
        spent = time.monotonic() - began, processor_seconds(process.pid)
        assert (len(page.json()), page.headers["x-total-count"]) == (50, str(runs))
    return spent


def read_by_core(folder: Path) -> float:
    """Events of a run that a second of processor takes in: lines, curves, summary, places."""
    watch = Watch(folder)
    began = time.process_time()
    watch.poll()
    return watch.log.lines / (time.process_time() - began)


def write_run(folder: Path, size: int) -> None:
    """Steps of a run, each with its metrics and stages, up to so many bytes."""
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(load_loop_text("grpo-arithmetic"), encoding="utf-8")
    seq = step = 0
    with (folder / "events.jsonl").open("w", encoding="utf-8") as file:
        while file.tell() < size:
            step += 1
            for told in events_of(step):
                seq += 1
                file.write(line(seq, step, **told))
        file.write(line(seq + 1, step, type="run.state", state="finished"))


def events_of(step: int) -> Iterator[dict[str, Any]]:
    for stage in ("policy.generate", "policy.learn"):
        told = {"stage": stage, "phase": "main", "seconds": 0.1, "samples": 8, "tokens": 100}
        yield {"type": "stage.finished", "node": "policy"} | told
    metrics = {f"m{number}": step * 0.001 + number for number in range(METRICS)}
    yield {"type": "metrics", "node": "policy", "metrics": metrics}


def line(seq: int, step: int, **told: Any) -> str:
    head = {"seq": seq, "at": utc_now(), "run": "bench", "attempt": 1, "step": step}
    return json.dumps(head | told) + "\n"


def copy_runs(folder: Path, count: int) -> None:
    """The other runs: links to the first one's files, and copies of its rows."""
    runs, data = folder / "runs", folder / "data"
    engine = open_engine(f"sqlite:///{data / 'coloop.db'}")
    rows, logs = RunRow.__table__, RunLogRow.__table__
    with engine.begin() as connection:
        row = dict(connection.execute(select(rows)).one()._mapping)
        log = dict(connection.execute(select(logs)).one()._mapping)
        for number in range(1, count):
            name = f"run-{number:04}"
            (runs / name).mkdir()
            for file in ("spec.yaml", "events.jsonl"):
                os.link(runs / "run-0000" / file, runs / name / file)
            os.link(sidecar_of(data, "run-0000"), sidecar_of(data, name))
            created = row["created_at"] + timedelta(seconds=number)
            own = {"id": name, "name": name, "folder": str(runs / name), "created_at": created}
            connection.execute(insert(rows), row | own)
            connection.execute(insert(logs), log | {"run_id": name})
    engine.dispose()


# 10,000 events a second


def flood(size: Size) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="coloop-bench-service-") as name:
        folder = Path(name)
        for run in ("alone", "crowded"):
            path = folder / "runs" / run
            path.mkdir(parents=True)
            (path / "spec.yaml").write_text(load_loop_text("grpo-arithmetic"), encoding="utf-8")
            (path / "events.jsonl").write_text(
                line(1, 0, type="run.state", state="running"), encoding="utf-8"
            )
        with server(folder, COLOOP_STALE_SECONDS="600") as (url, process):
            with client(url) as http:
                while len(http.get("/api/runs").json()) < 2:
                    time.sleep(0.05)
            found = {
                run: watched(url, folder, run, size.seconds, process.pid, slow=slow)
                for run, slow in (("alone", 0), ("crowded", SLOW_CLIENTS))
            }
            return {**found, "memory": resident_mb(process.pid, peak=True)}


def watched(
    url: str, folder: Path, run: str, seconds: int, server_pid: int, *, slow: int
) -> dict[str, Any]:
    """What a fast client is sent of a file that grows, beside clients that take nothing."""
    address = f"{url.replace('http', 'ws', 1)}/api/runs/{run}/stream"
    idle = [
        connect(address, additional_headers=BEARER, max_queue=1, ping_interval=None)
        for _ in range(slow)
    ]
    came: list[int] = []
    lags: list[float] = []
    pages: list[float] = []
    is_over = threading.Event()

    def read() -> None:
        with connect(address, additional_headers=BEARER, max_size=None) as stream:
            for message in stream:
                told = json.loads(message)
                events = told.get("events", ())
                came.extend(event["seq"] for event in events)
                if events and "written" in events[-1]:
                    lags.append(time.time() - events[-1]["written"])
                if told["kind"] == "end" or any(e["type"] == "run.state" for e in events[1:]):
                    return

    def ask() -> None:
        with client(url) as http:
            while not is_over.wait(0.1):
                pages.append(timed(http, "/api/runs?limit=50"))

    threads = [threading.Thread(target=one, daemon=True) for one in (read, ask)]
    began, processor = time.monotonic(), processor_seconds(server_pid)
    for thread in threads:
        thread.start()
    writer = subprocess.run(
        [sys.executable, __file__, str(folder / "runs" / run / "events.jsonl"), str(seconds)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths()))},
    )
    threads[0].join(PATIENCE)
    processor = processor_seconds(server_pid) - processor
    took = time.monotonic() - began
    is_over.set()
    threads[1].join(PATIENCE)
    for one in idle:
        one.socket.shutdown(socket.SHUT_RDWR)
    written = int(writer.stdout)
    assert not threads[0].is_alive(), f"{len(came)} of {written} events came in {took:.0f} s"
    assert came == sorted(set(came)), "an event came twice, or out of order"
    return {
        "written": written,
        "came": len(came),
        "lag": statistics.median(lags),
        "lag_most": max(lags),
        "page": statistics.median(pages),
        "page_95": at_95(pages),
        "share": processor / took,
        "by_core": written / processor,
    }


def write_flood(path: Path, seconds: int) -> int:
    """Append events at the rate, a hundredth of a second at once; the number of all in the file."""
    seq, batch = 1, RATE // 100
    began = time.monotonic()
    events = ((step, told) for step in count(1) for told in events_of(step))
    with path.open("a", encoding="utf-8") as file:
        for turn in range(seconds * 100):
            now, lines = time.time(), []
            for step, told in islice(events, batch):
                seq += 1
                lines.append(line(seq, step, written=now, **told))
            file.write("".join(lines))
            file.flush()
            time.sleep(max(0.0, began + (turn + 1) / 100 - time.monotonic()))
        step, _ = next(events)
        file.write(line(seq + 1, step, type="run.state", state="finished"))
    return seq + 1


# The server


@contextmanager
def server(folder: Path, **environment: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server on this folder, from its start to its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "coloop_server", "--no-browser", "--port", "0"],
        env=environment_in(str(folder)) | environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        url = await_address(process)
        threading.Thread(target=drain, args=(process,), daemon=True).start()
        yield url.partition("/?")[0].rstrip("/"), process
    finally:
        process.terminate()
        process.wait(60)


def drain(process: "subprocess.Popen[str]") -> None:
    """What the server says goes on being read, so that it is never held up by it."""
    assert process.stdout is not None
    shutil.copyfileobj(process.stdout, open(os.devnull, "w"))  # noqa: SIM115


def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers=BEARER, timeout=120, trust_env=False)


def timed(http: httpx.Client, path: str) -> float:
    """Milliseconds of one answer."""
    began = time.perf_counter()
    http.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000


def at_95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def resident_mb(pid: int, *, peak: bool = False) -> float:
    name = "VmHWM" if peak else "VmRSS"
    for one in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if one.startswith(f"{name}:"):
            return int(one.split()[1]) / 1024
    raise RuntimeError(f"{name} of process {pid} is not told")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def paths() -> tuple[Path, ...]:
    return (ROOT, ROOT / "engine", ROOT / "backend")


if __name__ == "__main__":
    print(write_flood(Path(sys.argv[1]), int(sys.argv[2])))
