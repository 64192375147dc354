"""One long run lives through this file: nothing that happens to pages, sockets or the server ends
it; asked to, it stops with a checkpoint, and goes on from there. The tests are in order.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, Response, WebSocketRoute, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(ray_server: "Server") -> "Server":
    """Its runs are on Ray."""
    return ray_server


LOOP = """\
coloop: 1
name: long
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 16}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}
  exact:
    kind: reward
    source:
      type: python
      code: |
        import time
        def reward(prompts, completions, **columns):
            time.sleep(0.2)
            return [len(text) / 6 for text in completions]
  probe: {kind: evaluate, instead_of: problems, every: 20, greedy: true, metrics: [score]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - exact.scores -> probe.scores
schedule: {steps: 100000}
hardware: {preset: cpu}
"""
"""Five steps a second at most, so that the browser and the server have the cores."""


@pytest.fixture(scope="module")
def run_id(server: "Server", eventually: Callable[..., Any]) -> Iterator[str]:
    """The long run, once it makes steps."""
    found: str = server.post("/runs", {"yaml": LOOP})["id"]

    def has_begun() -> bool:
        run = server.get(f"/runs/{found}")
        assert run["state"] in ("queued", "starting", "running"), run["error"]
        return (run["step"] or 0) > 3

    eventually(has_begun, seconds=150)
    yield found
    server.end_runs()


@pytest.fixture
def step(server: "Server", run_id: str) -> Callable[[], int]:
    """The step that the run has reached."""
    return lambda: server.get(f"/runs/{run_id}")["step"] or 0


def shown_step(page: Page) -> int:
    text = page.get_by_test_id("run-step").inner_text()
    return int(text) if text.isdecimal() else -1


def expect_state(page: Page, state: str, *, seconds: float = 60) -> None:
    expect(page.locator("[data-run-state]")).to_have_text(state, timeout=seconds * 1000)


def test_a_run_goes_on_while_no_browser_looks_and_shows_everything_when_one_comes_back(
    run_id: str,
    open_page: Callable[..., Page],
    violations: Callable[[Page], list[str]],
    step: Callable[[], int],
    eventually: Callable[..., Any],
) -> None:
    first = open_page(f"/runs/{run_id}", bypass_csp=True)
    expect_state(first, "running")
    assert violations(first) == []
    left_at = step()
    first.context.close()
    eventually(lambda: step() > left_at + 5)

    page = open_page(f"/runs/{run_id}")

    expect_state(page, "running")
    eventually(lambda: shown_step(page) > left_at + 5)
    expect(page.get_by_role("figure", name="Reward").first).to_contain_text(re.compile(r"step \d+"))
    page.get_by_role("tab", name="Log").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text("The run is starting")
    expect(log).to_contain_text("The run is running")


def test_a_socket_that_breaks_is_opened_again_and_no_event_is_missing_or_doubled(
    run_id: str,
    server: "Server",
    open_page: Callable[..., Page],
    step: Callable[[], int],
    eventually: Callable[..., Any],
) -> None:
    seen: list[int] = []
    opened: list[WebSocketRoute] = []
    histories: list[Response] = []

    def between(route: WebSocketRoute) -> None:
        """Pass everything on and note it; the first two sockets break soon."""
        opened.append(route)
        number = len(opened)
        there = route.connect_to_server()
        taken: list[str] = []

        def pass_on(message: str | bytes) -> None:
            if number < 3 and len(taken) > 8:
                return
            taken.append(str(message))
            seen.extend(map(int, re.findall(r'"seq":(\d+),"at"', str(message))))
            route.send(message)
            if number < 3 and len(taken) > 8:
                route.close(code=1011)
                there.close()

        there.on_message(pass_on)

    page = open_page("/runs")
    page.route_web_socket(re.compile("/stream"), between)
    page.on("response", lambda one: histories.append(one) if "/events?" in one.url else None)

    page.goto(f"/runs/{run_id}")
    eventually(lambda: page.wait_for_timeout(50) or len(opened) > 2)
    here = step()
    eventually(lambda: shown_step(page) > here + 3)

    for history in histories:
        seen += [event["seq"] for event in history.json()["events"]]
    assert len(opened) == 3
    assert sorted(seen) == list(range(1, max(seen) + 1))
    assert max(seen) <= server.get(f"/runs/{run_id}/events?after=0&limit=1")["last_seq"]


def test_a_server_that_is_killed_finds_the_run_again_and_the_page_goes_on_by_itself(
    run_id: str,
    server: "Server",
    open_page: Callable[..., Page],
    step: Callable[[], int],
    eventually: Callable[..., Any],
) -> None:
    page = open_page(f"/runs/{run_id}")
    expect_state(page, "running")

    server.kill()
    expect(page.get_by_text("stale for")).to_be_visible()
    shown = shown_step(page)
    server.start()

    expect(page.get_by_text("stale for")).to_be_hidden(timeout=40_000)
    expect_state(page, "running")
    eventually(lambda: shown_step(page) > shown + 3)
    here = step()
    eventually(lambda: step() > here)
    seqs = [event["seq"] for event in server.events(run_id)]
    assert seqs == list(range(1, len(seqs) + 1))
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("row", name=run_id)).to_contain_text("running")


def test_a_value_that_may_change_in_a_run_is_changed_from_the_page(
    run_id: str, server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page(f"/runs/{run_id}")
    page.get_by_role("article", name="actor, Actor").click()
    settings = page.get_by_role("complementary", name="Settings")
    settings.get_by_label("Learning rate, Optimizer, Training", exact=True).fill("1e-5")
    page.get_by_role("button", name="Apply").click()

    page.get_by_role("tab", name="Log").click()

    expect(page.get_by_role("log")).to_contain_text("nodes.actor.training.optimizer.lr = 0.00001")
    edits = [event for event in server.events(run_id) if event["type"] == "edit"]
    assert edits[-1]["changes"] == {"nodes.actor.training.optimizer.lr": 1e-5}


def test_stop_from_the_page_leaves_a_checkpoint_and_resume_goes_on_from_it(
    run_id: str,
    server: "Server",
    open_page: Callable[..., Page],
    eventually: Callable[..., Any],
) -> None:
    page = open_page(f"/runs/{run_id}")
    expect_state(page, "running")

    page.get_by_role("button", name="Stop").click()
    expect_state(page, "stopped")
    stopped = server.get(f"/runs/{run_id}")
    kept = [event for event in server.events(run_id) if event["type"] == "checkpoint"][-1]
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("log")).to_contain_text(kept["path"])
    page.get_by_role("button", name="Resume").click()
    expect_state(page, "running", seconds=150)

    assert kept["step"] == stopped["step"]
    assert (server.runs / run_id / kept["path"] / "manifest.json").exists()
    expect(page.get_by_text("attempt 2")).to_be_visible()
    eventually(lambda: shown_step(page) > stopped["step"] + 3)
    seqs = [event["seq"] for event in server.events(run_id)]
    assert seqs == list(range(1, len(seqs) + 1))
