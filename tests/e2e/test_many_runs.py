"""Three runs at once: one that goes on, two that wait for it, and what differs between those two in
the end. The tests are in order.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = """\
coloop: 1
name: many
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""


@pytest.fixture(scope="module")
def runs(server: "Server", eventually: Callable[..., Any]) -> Iterator[dict[str, str]]:
    """Ids by name: `endless` goes on, `first` and `second` wait behind it."""
    endless = LOOP.replace("steps: 3", "steps: 1000000")
    faster = LOOP.replace("3.0e-4", "1.0e-3")
    ids = {"endless": server.post("/runs", {"yaml": endless, "name": "endless"})["id"]}
    eventually(lambda: (server.get(f"/runs/{ids['endless']}")["step"] or 0) > 1, seconds=150)
    for name, loop in (("first", LOOP), ("second", faster)):
        ids[name] = server.post("/runs", {"yaml": loop, "name": name, "tags": ["rate"]})["id"]
    yield ids
    server.end_runs()


def queued(page: Page) -> list[str]:
    return page.get_by_role("region", name="Queue").get_by_role("link").all_inner_texts()


def test_the_queue_is_changed_on_the_page_and_goes_on_in_that_order(
    runs: dict[str, str],
    server: "Server",
    open_page: Callable[..., Page],
    eventually: Callable[..., Any],
) -> None:
    page = open_page("/runs")
    queue = page.get_by_role("region", name="Queue")
    expect(queue).to_contain_text("2 runs")
    assert queued(page) == ["first", "second"]

    page.get_by_role("button", name="Start second earlier").click()
    expect(queue.get_by_role("link").first).to_have_text("second")
    page.get_by_role("button", name="More for endless").click()
    page.get_by_role("menuitem", name="Stop", exact=True).click()

    expect(queue).to_have_count(0, timeout=90_000)
    eventually(lambda: server.get(f"/runs/{runs['first']}")["state"] == "finished", seconds=90)
    started = {name: server.get(f"/runs/{runs[name]}")["started_at"] for name in runs}
    assert started["endless"] < started["second"] < started["first"]


def test_two_runs_are_compared(
    runs: dict[str, str],
    server: "Server",
    open_page: Callable[..., Page],
    fits: Callable[[Page], None],
) -> None:
    page = open_page("/runs")
    page.get_by_role("button", name="rate").first.click()
    expect(page.get_by_role("row")).to_have_count(3)
    for name in ("first", "second"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    expect(page.get_by_role("img", name=re.compile("Mean reward")).first).to_be_visible()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/runs/compare?runs=*")

    differs = page.get_by_role("region", name="What differs")
    expect(differs.get_by_role("term")).to_have_text(re.compile(r"optimizer\.lr"))
    assert len(differs.get_by_role("definition").all()) == 2
    chart = page.get_by_role("figure", name=re.compile("^Mean reward"))
    expect(chart.get_by_role("listitem")).to_have_count(2)
    page.get_by_role("radio", name="Time").check(force=True)
    split = page.get_by_role("region", name="Where the time went")
    expect(split.get_by_role("row", name=re.compile("actor.learn"))).to_be_visible()
    fits(page)
    page.get_by_role("link", name="second").click()
    page.wait_for_url(f"**/runs/{runs['second']}")
