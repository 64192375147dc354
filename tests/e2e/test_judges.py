"""A solver and its judge side by side: what was judged is read beside what the judge says of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.presets.test_loops import JUDGED_FOUR_TIMES, SHORT

from coloop.diagnostics import Change
from coloop.spec.io import patch

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

TANGO = Path(__file__).resolve().parents[2] / "presets" / "loops" / "tango.yaml"
CUTS = {
    **SHORT["tango"],
    "schedule.phases.0.steps": 1,
    "schedule.phases.1.steps": 1,
    "schedule.phases.1.learn": ["verifier.demonstrations", "verifier.rewards"],
    "schedule.phases.1.set": JUDGED_FOUR_TIMES,
}
"""The judge writes from the first step on in which anybody does: that step is always shown."""


def test_a_critique_stands_beside_the_solution_that_it_judges(
    server: "Server", open_page: Callable[..., Page], shoot: Callable[[Page, str], None]
) -> None:
    cuts = [Change(op="set", path=path, value=value) for path, value in CUTS.items()]
    page = open_page(server.open_loop(patch(TANGO.read_text(encoding="utf-8"), cuts)))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=200_000)

    page.get_by_role("tab", name="Samples").click()
    page.get_by_label("Writer", exact=True).click()
    page.get_by_role("option", name="verifier").click()
    page.get_by_role("button", name="Sample 1", exact=True).click()

    def part(title: str) -> Locator:
        heading = page.get_by_role("heading", name=title, exact=True)
        return page.locator("section", has=heading).last

    detail, answer = part("Prompt"), part("Completion")
    judged = detail.locator("pre").inner_text()
    folder = server.runs / page.url.rsplit("/", 1)[1] / "samples"
    newest = max(folder.glob("step-*.jsonl"), key=lambda file: int(file.stem.partition("-")[2]))
    rows = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    solutions = {
        f"{row['prompt']}{row['completion']}\n?" for row in rows if row["node"] == "generator"
    }
    said = {(row["prompt"], row["completion"]) for row in rows if row["node"] == "verifier"}
    assert judged in solutions
    left, right = detail.bounding_box(), answer.bounding_box()
    assert (judged, answer.locator("pre").inner_text()) in said
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    shoot(page, "tango-critique")
