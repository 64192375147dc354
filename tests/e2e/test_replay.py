"""A run that is over, played again on its graph."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = Path(__file__).resolve().parents[2] / "presets" / "loops" / "grpo-arithmetic.yaml"
CUTS = {
    "nodes.held_out.rows_per_step": 8,
    "schedule.phases.0.steps": 3,
    "schedule.phases.1.steps": 2,
    "nodes.problems.source.size": 8,
    "nodes.problems.rows_per_step": 8,
    "schedule.phases.0.set": {"nodes.actor.training.optimizer.lr": 1.0e-3},
}
"""The same eight prompts in every step."""


def rates_in(page: Page) -> list[float]:
    """Rates that stand somewhere on the page."""
    texts = page.get_by_text(re.compile(r"^[1-9][\d.,k]*/s$")).all_inner_texts()
    plain = [text.removesuffix("/s").replace(",", "") for text in texts]
    return [1000 * float(one[:-1]) if one.endswith("k") else float(one) for one in plain]


def test_a_finished_run_is_replayed_step_by_step_and_at_its_end_is_what_it_was(
    server: "Server",
    headless: Callable[..., dict[str, Any]],
    open_page: Callable[..., Page],
    violations: Callable[[Page], list[str]],
    tmp_path: Path,
) -> None:
    cuts = [Change(op="set", path=path, value=value) for path, value in CUTS.items()]
    loop = tmp_path / LOOP.name
    loop.write_text(patch(LOOP.read_text(encoding="utf-8"), cuts), encoding="utf-8")
    assert headless(loop, "--local", run_id="replayed")["state"] == "finished"
    page = open_page("/runs/replayed", bypass_csp=True)
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    last = page.get_by_test_id("run-step").inner_text()
    samples = page.get_by_role("region", name="Texts of one prompt")
    expect(samples).to_contain_text(f"step {last} ·")
    assert violations(page) == []

    page.get_by_text("Replay", exact=True).click()
    slider = page.get_by_role("slider", name="Step that is shown")
    expect(page.get_by_test_id("replay-step")).to_have_text(last)
    expect(page.get_by_role("figure").first).to_contain_text(f"step {last}")
    slider.fill("4")
    expect(page.get_by_test_id("replay-step")).to_have_text("4")
    expect(samples).to_contain_text("step 4 ·")
    expect(page.get_by_text(re.compile(r"^[1-9][\d.,k]*/s$")).first).to_be_visible()
    # The rates of that step, as the run kept them.
    events = server.get("/runs/replayed/events?limit=5000")["events"]
    end = max(event["seq"] for event in events if (event.get("step") or 0) <= 4)
    [held] = server.get(f"/runs/replayed/gauges?seq={end}&limit=1")["gauges"]
    assert held["step"] == 4
    rate = held["gauges"]["edges"]["actor.rollouts->exact.rollouts"]["rows_per_second"]
    for _ in range(50):
        if any(told == pytest.approx(rate, rel=0.06) for told in rates_in(page)):
            break
        page.wait_for_timeout(100)
    else:
        pytest.fail(f"{rate} rows a second are not among {rates_in(page)}")
    assert violations(page) == []
    page.get_by_role("button", name="Fork from here").click()
    fork = page.get_by_role("dialog", name="Fork this run")
    expect(fork).to_contain_text("Step 0 is the nearest checkpoint at or before step 4")
    fork.get_by_role("button", name="Cancel").click()
    slider.fill("2")  # learned from demonstrations, before any model wrote
    expect(page.get_by_test_id("replay-step")).to_have_text("2")
    expect(page.get_by_text("No samples yet")).to_be_visible()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_test_id("replay-step")).to_have_text(last, timeout=60_000)

    page.get_by_role("button", name="Exit replay").click()
    expect(page.get_by_test_id("run-step")).to_have_text(last)

    # A prompt is looked at over the steps in which it was written for.
    page.get_by_role("button", name="Pin the prompt, to see it over time").click()
    over_time = page.get_by_role("region", name="The pinned prompt over time")
    expect(over_time.get_by_role("button", name=re.compile("^step [45]"))).to_have_count(2)
    over_time.get_by_role("button", name="step 4").click()
    expect(samples).to_contain_text("step 4 ·")
    prompt = samples.locator("p").inner_text()
    expect(over_time).to_contain_text(prompt)
    over_time.get_by_role("button", name="Unpin the prompt").click()
    expect(over_time).to_be_hidden()

    # Not from its end, which is what is offered first.
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(fork.get_by_role("button", name="Fork from step 5")).to_be_visible()
    fork.get_by_label("Checkpoint", exact=True).click()
    page.get_by_role("option", name="step 0").click()
    # With another seed, which no run takes while it goes on.
    fork.get_by_label("Seed", exact=True).fill("7")
    expect(fork.get_by_role("list", name="What will differ")).to_contain_text("7")
    fork.get_by_role("button", name="Fork from step 0").click()
    page.wait_for_url(lambda url: not url.endswith("/replayed"))
    forked = server.get(f"/runs/{page.url.rsplit('/', 1)[1]}")
    assert forked["name"] == "replayed from 0"
    assert server.get(f"/runs/{forked['id']}/checkpoints")["steps"] == [0]
    assert server.get(f"/runs/{forked['id']}/spec")["spec"]["run"]["seed"] == 7
    server.end_runs()
