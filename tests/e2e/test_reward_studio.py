"""Rewards before a run: one is written, tried on rows of an earlier run, weighed against another,
and learned from."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = """\
coloop: 1
name: rewards
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""
BROKEN = "def reward(prompts, completions, **columns):\n    return [1 / 0 for text in completions]"
MINE = "def reward(prompts, completions, **columns):\n    return [0.25 for text in completions]"


def write(page: Page, code: str) -> None:
    """As it is pasted: typed brackets and indents would be completed."""
    page.get_by_label("Code of python").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)


def test_a_reward_is_written_tried_weighed_and_learned_from(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    fits: Callable[[Page], None],
    eventually: Callable[..., Any],
) -> None:
    loop = server.open_loop(LOOP)
    earlier = server.post("/runs", {"yaml": LOOP, "loop_id": loop.rsplit("/", 1)[1]})["id"]
    eventually(lambda: server.get(f"/runs/{earlier}")["state"] == "finished", seconds=120)
    rows = server.get(f"/runs/{earlier}/samples")["rows"]

    page = open_page(loop)
    page.get_by_role("link", name="Rewards").click()
    page.get_by_role("button", name="Add source").click()
    page.keyboard.type("python")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Code of python")).to_contain_text("def reward(prompts")
    write(page, BROKEN)
    page.get_by_role("button", name="Run preview").click()
    scores = page.get_by_role("region", name="Scores")
    expect(scores.get_by_text("line 2")).to_have_count(len(rows), timeout=90_000)
    expect(page.get_by_text("division by zero")).to_be_visible()

    write(page, MINE)
    page.get_by_role("button", name="Run preview").click()
    expect(scores.get_by_text("0.25", exact=True).first).to_be_visible()
    expect(scores.get_by_text("line 2")).to_have_count(0)
    page.get_by_label("Weight of python as a number").fill("0.4")
    expect(page.get_by_test_id("total-weight")).to_have_text("1.40")
    expect(scores.get_by_text("0.10", exact=True).first).to_be_visible()
    fits(page)
    page.set_viewport_size({"width": 1024, "height": 768})
    view = page.get_by_role("radiogroup", name="View of the preview")
    view.get_by_text("Distribution").click()
    expect(page.get_by_role("img", name=re.compile("^python: "))).to_be_visible()
    fits(page)
    view.get_by_text("Rows").click()
    expect(scores).to_be_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(view).to_be_hidden()
    page.get_by_role("button", name=re.compile("^Undo: Weigh")).click()
    expect(page.get_by_test_id("total-weight")).to_have_text("2.00")
    page.get_by_role("button", name=re.compile("^Redo: Weigh")).click()

    page.go_back()
    page.get_by_role("article", name=re.compile("^python,")).click()
    expect(page.get_by_label("Source, type")).to_have_text("python")
    page.get_by_role("link", name="Rewards").click()
    page.get_by_role("button", name=re.compile(r"^python\b"), pressed=False).click()
    expect(page.get_by_label("Code of python")).to_contain_text(MINE.splitlines()[-1].strip())

    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=120_000)
    learned = server.get(f"/runs/{page.url.rsplit('/', 1)[1]}/samples")["rows"]
    assert {row["scores"]["python"] for row in learned} == {0.25}
    assert [row["reward"] for row in learned] == pytest.approx(
        [row["scores"]["exact"] + 0.4 * 0.25 for row in learned]
    )


def test_the_data_panel_shows_rows_their_tokens_and_what_two_datasets_share(
    server: "Server", open_page: Callable[..., Page], fits: Callable[[Page], None]
) -> None:
    held_out = "  held_out: {kind: dataset, source: {type: task, task: arithmetic}}\nedges:"
    demonstrated = "  - problems.rows -> actor.demonstrations\nschedule:"
    loop = LOOP.replace("edges:", held_out).replace("schedule:", demonstrated)
    page = open_page(server.open_loop(loop))

    page.get_by_role("tab", name="Data").click()
    expect(page.get_by_role("region", name="Rows")).to_contain_text(
        "actor: what it writes to", timeout=90_000
    )
    page.get_by_role("radio", name="Tokens and lengths").check(force=True)
    expect(page.get_by_text("Length in tokens")).to_be_visible()
    page.get_by_label("Reader").click()
    page.get_by_role("option", name="actor.demonstrations").click()
    expect(page.get_by_title(re.compile("^token .*, learned$")).first).to_be_visible()
    fits(page)
    page.get_by_role("radio", name="Duplicates and leaks").check(force=True)
    expect(page.get_by_text("held_out: rows that are also in problems")).to_be_visible()
    expect(page.get_by_text("100 %").first).to_be_visible()
