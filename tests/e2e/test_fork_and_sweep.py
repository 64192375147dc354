"""From a finished run to a fork with another setting, and from a loop to a sweep over values."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Locator, Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = """\
coloop: 1
name: tried
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 4}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-3}}
  digits:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", on_no_match: 0, scale: [0, 9]}
  probe: {kind: evaluate, instead_of: problems, every: 2, greedy: true, metrics: [score]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> digits.rollouts
  - digits.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - digits.scores -> probe.scores
schedule: {steps: 6}
hardware: {preset: cpu}
run: {seed: 0, best: probe.score, checkpoint_every: 2, keep: 3}
"""


class Clicks:
    """Clicks and key presses of a journey."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, target: Locator) -> None:
        self.count += 1
        target.click()

    def fill(self, target: Locator, text: str) -> None:
        """A field is clicked and typed into."""
        self.count += 1
        target.fill(text)


def test_a_run_is_forked_from_a_kept_checkpoint_with_another_setting(
    server: "Server",
    open_page: Callable[..., Page],
    eventually: Callable[..., Any],
    violations: Callable[[Page], list[str]],
) -> None:
    run_id = server.post("/runs", {"yaml": LOOP, "name": "first"})["id"]
    eventually(lambda: server.get(f"/runs/{run_id}")["state"] == "finished", seconds=200)
    page, clicks = open_page(f"/runs/{run_id}", bypass_csp=True), Clicks()

    clicks.on(page.get_by_role("button", name="Fork"))
    dialog = page.get_by_role("dialog", name="Fork this run")
    clicks.on(dialog.get_by_role("combobox", name="Checkpoint"))
    clicks.on(page.get_by_role("option", name="step 4"))
    rate = dialog.get_by_label("Learning rate of actor")
    clicks.fill(rate, "fast")
    expect(dialog.get_by_role("alert")).to_contain_text("a number is expected")
    expect(dialog.get_by_role("button", name="Fork from step 4")).to_be_disabled()
    clicks.fill(rate, "1e-4")
    expect(dialog.get_by_role("list", name="What will differ")).to_contain_text("0.003 → 0.0001")
    clicks.on(dialog.get_by_role("button", name="Fork from step 4"))

    page.wait_for_url(lambda url: "/runs/" in url and run_id not in url)
    expect(page.get_by_text("fork of")).to_be_visible(timeout=60_000)
    fork_id = page.url.rsplit("/", 1)[-1]
    eventually(lambda: server.get(f"/runs/{fork_id}")["state"] == "finished", seconds=200)
    page.reload()
    tree = page.get_by_role("region", name="Forks")
    expect(tree).to_contain_text("from step 4 to 6")
    expect(tree).to_contain_text("0.003 → 0.0001")
    expect(tree.get_by_role("link", name="first")).to_be_visible()
    assert violations(page) == []
    sys.stdout.write(f"\nfork with another learning rate: {clicks.count} clicks\n")
    assert clicks.count <= 7


def test_values_of_a_setting_become_runs_of_one_group(
    server: "Server",
    open_page: Callable[..., Page],
    violations: Callable[[Page], list[str]],
    fits: Callable[[Page], None],
) -> None:
    loop_id = server.post("/loops", {"yaml": LOOP})["id"]
    page, clicks = open_page(f"/loops/{loop_id}", bypass_csp=True), Clicks()

    clicks.on(page.get_by_role("article", name="actor"))
    rate = page.locator("[data-field='training.optimizer.lr']").first
    rate.hover()
    clicks.on(rate.get_by_role("button", name="Try values of"))
    dialog = page.get_by_role("dialog", name="Try values")
    expect(dialog.get_by_label("Setting", exact=True)).to_have_value(
        "nodes.actor.training.optimizer.lr"
    )
    values = dialog.get_by_label("Values", exact=True)
    clicks.fill(values, "fast, 3e-3")
    clicks.on(dialog.get_by_role("button", name="Queue 2 runs"))
    expect(dialog.get_by_role("alert")).to_contain_text("a number is expected")
    clicks.on(dialog.get_by_role("button", name="Around it"))
    expect(values).to_have_value("0.001, 0.003, 0.009")
    clicks.on(dialog.get_by_role("button", name="Queue 3 runs"))

    page.wait_for_url(lambda url: "/sweeps/" in url, timeout=60_000)
    table = page.get_by_role("table", name="Values")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_text("finished")).to_have_count(3, timeout=300_000)
    figure = page.get_by_role("figure")
    expect(figure).to_contain_text("lr 0.003")
    name = page.url.rsplit("/", 1)[-1]
    found = server.get(f"/sweeps/{name}")
    best = min(found["variants"], key=lambda variant: variant["rank"])
    first = table.get_by_role("row").nth(1)
    expect(first).to_contain_text(str(next(iter(best["values"].values()))))
    assert violations(page) == []
    fits(page)
    page.goto(f"{server.url}/runs")
    expect(page.get_by_role("region", name="Sweeps").get_by_role("link")).to_contain_text("lr")
    sys.stdout.write(f"\nsweep over three values: {clicks.count} clicks\n")
    assert clicks.count <= 7
