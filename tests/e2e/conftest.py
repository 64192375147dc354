"""The page as a user meets it: one server, one Ray and one Chromium for the whole session.

    Chromium --http, WebSocket--> coloop serve --jobs--> Ray --> coloop run

Each test has browser windows of its own (nothing stored), and fails when the page wrote an error to
the console. A server that a test kills is started again in its place, with the same port and data.
Knows nothing of how the page is written: tests speak of labels, roles and what can be read.
"""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx
import pytest
from tests.forked import Forked, begin, drivers

playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from playwright.sync_api import (  # noqa: E402
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
)

Answer = TypeVar("Answer")

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(os.environ.get("COLOOP_STATIC_DIR", ROOT / "backend" / "coloop_server" / "_static"))
SHOTS = Path(os.environ.get("COLOOP_SHOTS", ROOT / "test-results"))
"""Where pictures of the page are left: the last of a test that failed, and what looks otherwise."""
SIZES = ((1440, 900), (1024, 768))
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
START_SECONDS = 180.0
WAIT_MS = 20_000
"""For what the page is to show or do, on a machine that does other things as well."""
expect.set_options(timeout=WAIT_MS)
FINAL = ("finished", "stopped", "failed")
EXPECTED_NOISE = (
    "Failed to load resource",
    "WebSocket connection to",
    "net::ERR_",
    "blocked by CORS policy",
    "Failed to fetch dynamically imported module",
    "Cross-Origin-Opener-Policy header has been ignored",
)
"""What Chromium itself writes when a server is away or says no; tests bring both about."""


AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
AXE_LOOKS = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) =>
        `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


ARRANGED = """if (origin !== "null") localStorage.getItem("coloop.preferences")
    ?? localStorage.setItem("coloop.preferences",
        JSON.stringify({ state: { isDockOpen: true }, version: 3 }))"""
"""The lower panel is open, as who works with it leaves it; a first visit has it closed."""

WATCH = """() => {
    const seen = { lit: [], together: [], rates: [], charts: {}, phases: [] };
    const note = (list, value) => value && !list.includes(value) && list.push(value);
    const look = () => {
        const now = [];
        for (const node of document.querySelectorAll("article[data-activity=running]")) {
            const name = node.getAttribute("aria-label").split(",")[0];
            now.push(name);
            note(seen.lit, name);
            if (/rows\\/s/.test(node.innerText)) note(seen.rates, name);
        }
        note(seen.together, now.sort().join(" "));
        for (const chart of document.querySelectorAll("figure[aria-label]")) {
            const title = chart.getAttribute("aria-label").split(":")[0];
            note(seen.charts[title] ??= [], chart.innerText.match(/step (\\d+)/)?.[1]);
        }
        note(seen.phases, document.querySelector("[data-testid=run-phase]")?.innerText);
    };
    new MutationObserver(look).observe(document.body, {
        subtree: true, childList: true, characterData: true, attributes: true,
    });
    window.seen = seen;
}"""


@dataclass
class Server:
    """`coloop serve` in a process of its own, on one port and one data folder for good."""

    data: Path
    port: int = 0
    process: "subprocess.Popen[str] | None" = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def runs(self) -> Path:
        return self.data / "runs"

    @property
    def http(self) -> httpx.Client:
        """There is no certificate to check, and to read those of the world takes longer than most
        answers."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(
            base_url=f"{self.url}/api", timeout=60, trust_env=False, verify=False, headers=headers
        )

    @property
    def token(self) -> str:
        """The server's own, as its data folder keeps it."""
        return (self.data / "token").read_text(encoding="utf-8")

    def start(self) -> None:
        """Start, or start again where it was."""
        command = [sys.executable, "-m", "coloop_server", "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--data", str(self.data)],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=listen, args=(self.process, said), daemon=True).start()
        seen = ""
        while line := said.get(timeout=START_SECONDS):
            seen += line
            if found := re.search(r"coloop is at http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        pytest.fail(f"the server did not start:\n{seen}")

    def kill(self) -> None:
        """End it as a crash does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        """End it in good order, and with it its runs and its Ray."""
        if self.process is None or self.process.poll() is not None:
            self.start()  # one that was killed left a Ray behind, which the next one takes over
        assert self.process is not None
        self.process.terminate()
        self.process.wait(90)

    def get(self, path: str) -> Any:
        """The answer's JSON; its shape is the API's."""
        with self.http as http:
            return http.get(path).raise_for_status().json()

    def post(self, path: str, body: object = None) -> Any:
        with self.http as http:
            return http.post(path, json=body or {}).raise_for_status().json()

    def open_loop(self, yaml: str) -> str:
        """A loop of the user's own; its address on the page."""
        return f"/loops/{self.post('/loops', {'yaml': yaml})['id']}"

    def forget_loops(self) -> None:
        with self.http as http:
            for loop in http.get("/loops").json():
                http.delete(f"/loops/{loop['id']}").raise_for_status()

    def events(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            page = self.get(f"/runs/{run_id}/events?after={after}&limit=10000")
            found += page["events"]
            if not page["has_more"]:
                return found

    def end_runs(self) -> None:
        """Nothing that one test began takes time from the next."""
        if self.process is None or self.process.poll() is not None:
            return
        with self.http as http:
            for run in http.get("/runs").json():
                if run["state"] not in FINAL:
                    http.post(f"/runs/{run['id']}/stop", json={"force": True})
            wait_until(
                lambda: all(run["state"] in FINAL for run in http.get("/runs").json()), seconds=90
            )


def listen(process: "subprocess.Popen[str] | Forked", said: "queue.Queue[str]") -> None:
    """Take what a process says, so that it never waits to be heard; ends with an empty line."""
    assert process.stdout is not None
    for line in process.stdout:
        said.put(line)
    said.put("")


def wait_until(ask: Callable[[], Answer], *, seconds: float = 60.0) -> Answer:
    """Ask again until the answer is true; fails with the last answer after the deadline. The longer
    it takes, the seldomer: who asks has the processor that the answer waits for."""
    began = time.monotonic()
    while not (answer := ask()):
        waited = time.monotonic() - began
        if waited > seconds:
            pytest.fail(f"not within {seconds:.0f} s; the last answer was {answer!r}")
        time.sleep(min(max(waited / 10, 0.05), 0.3))
    return answer


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    return wait_until


def untold() -> dict[str, str]:
    """The environment without what the caller's own coloop is told."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == "COLOOP_CORES" or not name.startswith("COLOOP_")
    }


def environment(page: Path) -> dict[str, str]:
    """Of a server that shows this page."""
    paths = (str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", ""))
    return {
        **untold(),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "COLOOP_STATIC_DIR": str(page),
        "COLOOP_KEEP_RUNS": "false",
        "COLOOP_WARM_RAY": "false",
    }


@contextmanager
def serving(folder: Path, **told: str) -> Iterator[Server]:
    """A service with its own data in this folder; `told` is its environment besides."""
    if not (PAGE / "index.html").exists():
        pytest.skip("the page is not built; `make web` builds it")
    # A page that is built anew in the middle of the session does not disturb it.
    shutil.copytree(PAGE, folder / "page")
    server = Server(data=folder / "data", environment=environment(folder / "page") | told)
    server.start()
    try:
        # Made at the first question, which no page's patience is meant for.
        for path in ("/catalog", "/presets/loops"):
            server.get(path)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service whose runs are a process each, which has loaded what it needs."""
    folder = tmp_path_factory.mktemp("e2e")
    with TemporaryDirectory() as sockets, drivers(Path(sockets)) as driver:
        told = {"COLOOP_LAUNCHER": "process", "COLOOP_DRIVER": json.dumps(driver)}
        with serving(folder, **told) as server:
            yield server


@pytest.fixture(scope="session")
def ray_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with its default launcher: the first run starts a Ray that later runs share. A
    file that wants it has a fixture `server` of its own that gives it."""
    with serving(tmp_path_factory.mktemp("ray"), COLOOP_WARM_RAY="true") as server:
        yield server


def signed_in(chromium: Browser, server: Server, **options: Any) -> BrowserContext:
    """A window of its own in which nothing moves by itself; options are those of its context."""
    defaults = {
        "viewport": {"width": 1440, "height": 900},
        "color_scheme": "light",
        "reduced_motion": "reduce",
    }
    with server.http as http:
        answer = http.post("/session", json={"token": server.token}).raise_for_status()
    ticket = {"name": "coloop.ticket", "value": answer.json()["ticket"]}
    kept = {"cookies": [], "origins": [{"origin": server.url, "localStorage": [ticket]}]}
    return chromium.new_context(base_url=server.url, storage_state=kept, **defaults | options)


@pytest.fixture
def open_page(
    server: Server, chromium: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """Open an address of the server in a window of its own. Options are those of the browser's
    context; `beside=page` opens a further tab of the same window, `arranged=False` one of somebody
    who was never here."""
    pages: list[Page] = []
    errors: list[str] = []

    def note(text: str) -> None:
        if not any(one in text for one in EXPECTED_NOISE):
            errors.append(text)

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            note(message.text)

    failed_before = request.session.testsfailed

    def open_page(
        path: str = "/", *, beside: Page | None = None, arranged: bool = True, **options: Any
    ) -> Page:
        context = beside.context if beside else signed_in(chromium, server, **options)
        if beside is None and arranged:
            context.add_init_script(ARRANGED)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", hear)
        page.on("pageerror", lambda error: note(str(error)))
        pages.append(page)
        page.goto(path)
        return page

    yield open_page
    has_failed = request.session.testsfailed > failed_before
    for number, page in enumerate(pages):
        if has_failed and not page.is_closed():
            page.screenshot(path=SHOTS / f"failed-{request.node.name}-{number}.png")
        page.context.close()
    assert errors == []


@pytest.fixture
def fits() -> Callable[[Page], None]:
    """A page is in no size wider than its window."""

    def look(page: Page) -> None:
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    return look


@pytest.fixture
def violations() -> Callable[[Page], list[str]]:
    """What axe-core finds wrong in what a page shows, in both themes. The rules come from the front
    end's own packages and are put into the page, which has to be opened with `bypass_csp=True`."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; `make web` installs it")

    def look(page: Page) -> list[str]:
        if not page.evaluate("'axe' in window"):
            page.add_script_tag(path=str(AXE))
        found: list[str] = []
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            found += [f"{theme}: {one}" for one in page.evaluate(AXE_LOOKS)]
        return found

    return look


@pytest.fixture
def saved_yaml(server: Server) -> Callable[[Page], str]:
    """The loop that a page shows, as the server has it once the page says that it is saved."""

    def read(page: Page) -> str:
        expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
        with server.http as http:
            return http.get(f"{urlsplit(page.url).path}/yaml").raise_for_status().text

    return read


@pytest.fixture
def watch() -> Callable[[Page], Callable[[], dict[str, Any]]]:
    """From now on note what is on screen: nodes that are lit (and which of them at one moment),
    those that show a rate, the steps that each chart reached. A short run is over before one could
    look in turn."""

    def begin(page: Page) -> Callable[[], dict[str, Any]]:
        page.evaluate(WATCH)
        return lambda: page.evaluate("() => window.seen")

    return begin


@pytest.fixture
def ink() -> Callable[[Page, str], int]:
    """Painted pixels of a chart."""

    def count(page: Page, chart: str) -> int:
        canvas = page.get_by_role("figure", name=chart).locator("canvas")
        return int(
            canvas.evaluate(
                """canvas => {
                    const { data } = canvas.getContext("2d")
                        .getImageData(0, 0, canvas.width, canvas.height);
                    return data.filter((value, index) => index % 4 === 3 && value > 128).length;
                }"""
            )
        )

    return count


SILENT_SECONDS = 180
"""How long a run may say nothing: it is as slow as the machine, but it goes on."""


@pytest.fixture(scope="module")
def headless(server: Server) -> Callable[..., dict[str, Any]]:
    """`coloop run SPEC`, as it is typed, into the server's folder of runs; gives the last event."""

    def run(spec: Path, *options: str, run_id: str) -> dict[str, Any]:
        command = ("-m", "coloop", "run", str(spec), "--json", *options)
        process = begin(
            *(*command, "--runs-dir", str(server.runs), "--run-id", run_id),
            cwd=ROOT,
            env={**untold(), "OMP_NUM_THREADS": "2", "RAY_ADDRESS": "local"},
        )
        said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=listen, args=(process, said), daemon=True).start()
        last = "{}"
        try:
            while line := said.get(timeout=SILENT_SECONDS):
                last = line
        except queue.Empty:
            process.kill()
            pytest.fail(f"{spec.name}: nothing new for {SILENT_SECONDS} s, the last was {last}")
        assert process.wait(SILENT_SECONDS) == 0, last
        event: dict[str, Any] = json.loads(last)
        return event

    return run
