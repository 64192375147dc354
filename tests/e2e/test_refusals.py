"""What goes wrong between people, pages and the service: it is said, and nothing is lost."""

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.conftest import signed_in

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

LOOP = """\
coloop: 1
name: shared
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {rewards: {name: grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""

RAISES = LOOP.replace(
    "  exact: {kind: reward, source: {type: builtin, name: exact_match}}\n",
    """\
  exact:
    kind: reward
    source:
      type: python
      code: |
        def reward(prompts, completions, answer, **columns):
            return [1 / (len(gold) - 2) for gold in answer]  # not for answers of two digits
""",
)

ATTACK = """\
<script>
  const told = [];
  const note = what => { told.push(what); document.title = told.sort().join(" "); };
  fetch("SERVER/api/runs", {
    method: "POST", body: JSON.stringify({yaml: "x"}), mode: "no-cors",
    headers: {"content-type": "text/plain"},
  }).then(() => note("sent"), () => note("not-sent"));
  fetch("SERVER/api/loops").then(() => note("read"), () => note("unread"));
  const socket = new WebSocket("SERVER/api/runs/any/stream".replace("http", "ws"));
  socket.onopen = () => note("socket");
  socket.onerror = () => note("no-socket");
</script>
"""


def steps(page: Page) -> Any:
    """The field for the number of steps, in the settings of the whole loop."""
    return page.get_by_role("complementary", name="Settings").get_by_label("Steps", exact=True)


@pytest.mark.slow
def test_a_second_tab_that_has_nothing_unsaved_follows_the_first(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    address = server.open_loop(LOOP)
    first = open_page(address)
    second = open_page(address, beside=first)
    expect(steps(second)).to_have_value("3")

    steps(first).fill("7")

    expect(first.locator("[data-save]")).to_have_attribute("data-save", "saved")
    expect(steps(second)).to_have_value("7")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("choice", "steps_then", "seed_then"),
    [("Keep mine", "3", "4"), ("Take theirs", "7", None), ("Keep both", "7", "4")],
)
def test_the_second_of_two_saves_is_told_and_chooses_what_to_keep(
    choice: str,
    steps_then: str,
    seed_then: str | None,
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
) -> None:
    address = server.open_loop(LOOP)
    mine, theirs = open_page(address), open_page(address)
    expect(steps(mine)).to_have_value("3")
    steps(theirs).fill("7")
    expect(theirs.locator("[data-save]")).to_have_attribute("data-save", "saved")

    mine.get_by_label("Seed", exact=True).fill("4")
    dialog = mine.get_by_role("dialog", name="This loop was changed elsewhere")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name=choice).click()

    expect(dialog).to_be_hidden()
    text = saved_yaml(mine)
    assert f"steps: {steps_then}" in text
    assert (f"seed: {seed_then}" in text) == (seed_then is not None)
    kept = server.get(f"{address}/versions")
    assert len(kept) == (2 if choice == "Take theirs" else 3), "nothing that was saved is gone"


@pytest.mark.slow
def test_what_two_tabs_both_changed_is_asked_for_and_the_rest_of_both_lives_on(
    server: "Server", open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    address = server.open_loop(LOOP)
    mine, theirs = open_page(address), open_page(address)
    expect(steps(mine)).to_have_value("3")
    steps(theirs).fill("7")
    theirs.get_by_label("Seed", exact=True).fill("5")
    expect(theirs.locator("[data-save]")).to_have_attribute("data-save", "saved")

    steps(mine).fill("9")
    dialog = mine.get_by_role("dialog", name="This loop was changed elsewhere")
    expect(dialog.get_by_role("region", name="You changed")).to_contain_text("steps 3 → 9")
    other = dialog.get_by_role("region", name="The other version changed")
    expect(other).to_contain_text("seed")
    keep = dialog.get_by_role("button", name="Keep both")
    expect(keep).to_be_disabled()

    dialog.get_by_role("radiogroup", name="Which version of schedule.steps").get_by_text(
        "Mine"
    ).click()
    keep.click()

    expect(dialog).to_be_hidden()
    text = saved_yaml(mine)
    assert "steps: 9" in text
    assert "seed: 5" in text
    mine.get_by_role("button", name="Undo: Merge both versions").click()
    assert "seed: 5" not in saved_yaml(mine)


@pytest.fixture
def other_site(server: "Server") -> Iterator[str]:
    """A page of someone else, on this machine."""
    page = ATTACK.replace("SERVER", server.url).encode()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://localhost:{site.server_port}/"
    site.shutdown()
    site.server_close()


@pytest.mark.slow
def test_a_page_of_another_site_can_neither_act_nor_read_nor_listen(
    server: "Server", open_page: Callable[..., Page], other_site: str
) -> None:
    runs = len(server.get("/runs"))
    page = open_page("/runs")

    page.context.route(re.compile("favicon"), lambda route: route.abort())
    page.goto(other_site)
    expect(page).to_have_title("no-socket not-sent unread")

    assert len(server.get("/runs")) == runs


@pytest.mark.slow
def test_the_server_does_not_answer_to_a_name_that_is_not_its_own(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page("/runs")

    answer = page.goto(f"http://elsewhere.example:{server.port}/")

    assert answer is not None
    assert answer.status == 403
    expect(page.locator("body")).to_contain_text("does not answer to the host")


@pytest.mark.slow
def test_a_cluster_that_is_away_is_said_with_its_address_and_the_loop_is_kept(
    server: "Server", chromium: Browser, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    away = replace(
        server,
        data=tmp_path,
        port=0,
        environment=server.environment | {"COLOOP_LAUNCHER": "auto", "COLOOP_RAY_ADDRESS": address},
    )
    away.start()
    try:
        context = signed_in(chromium, away)
        page = context.new_page()
        page.goto(away.open_loop(LOOP))
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/runs/*")

        expect(page.locator("[data-run-state]")).to_have_text("failed", timeout=60_000)
        told = page.get_by_role("alert")
        expect(told).to_contain_text(address)
        expect(told).to_contain_text("does not answer")
        page.get_by_role("link", name="Edit loop").or_(
            page.get_by_role("button", name="Edit loop")
        ).click()
        expect(page.get_by_role("article")).to_have_count(3)
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        context.close()
    finally:
        away.stop()


@pytest.mark.slow
def test_a_port_in_use_is_said_together_with_one_that_is_free(
    server: "Server", tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "coloop_server", "--no-browser", "--data", str(tmp_path)]

    ended = subprocess.run(
        [*command, "--port", str(server.port)],
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert f"port {server.port} on 127.0.0.1 is in use" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_reward_that_raises_is_shown_with_node_row_and_traceback(
    server: "Server", open_page: Callable[..., Page], violations: Callable[[Page], list[str]]
) -> None:
    page = open_page(server.open_loop(RAISES), bypass_csp=True)

    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")

    told = page.get_by_role("alert")
    expect(told).to_contain_text("ZeroDivisionError", timeout=150_000)
    expect(told).to_contain_text(re.compile(r"exact, row \d+: ZeroDivisionError.*line 2"))
    told.locator("summary").click()
    expect(told).to_contain_text("for gold in answer")
    told.get_by_role("button", name="Show exact").click()
    expect(page.get_by_role("complementary", name="Settings")).to_contain_text("exact")
    expect(page.locator("[data-run-state]")).to_have_text("failed")
    assert violations(page) == []
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("row", name="shared").first).to_contain_text("failed")
