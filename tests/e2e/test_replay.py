"""A run that is over, played again on its graph."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.presets.test_loops import SHORT

from coloop.diagnostics import Change
from coloop.spec.io import patch

pytestmark = pytest.mark.e2e

LOOP = Path(__file__).resolve().parents[2] / "presets" / "loops" / "grpo-arithmetic.yaml"


def test_a_finished_run_is_replayed_step_by_step_and_at_its_end_is_what_it_was(
    headless: Callable[..., dict[str, Any]],
    open_page: Callable[..., Page],
    violations: Callable[[Page], list[str]],
    tmp_path: Path,
) -> None:
    cuts = [Change(op="set", path=path, value=value) for path, value in SHORT[LOOP.stem].items()]
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

    page.get_by_role("button", name="Leave the replay").click()
    expect(page.get_by_test_id("run-step")).to_have_text(last)
