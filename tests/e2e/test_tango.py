"""Tango, a solver and the judge of its steps, as it is watched: its rhythm, both learners on one
chart, and what the judge wrote beside the solution that it judged.

The run was recorded: `presets/loops/tango.yaml` with few steps and 16 rows in each.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parent / "recorded" / "tango.tar.xz"


def test_tango_shows_its_rhythm_both_learners_and_a_critique_beside_the_solution(
    server: "Server", open_page: Callable[..., Page], fits: Callable[[Page], None]
) -> None:
    shutil.unpack_archive(RECORDED, server.runs)
    server.get("/runs")  # looks for new folders
    page = open_page("/runs/tango")
    expect(page.get_by_text("finished", exact=True)).to_be_visible()

    page.get_by_text("Charts", exact=True).click()
    # One chart for both, each with a curve of its own.
    for title in ("Reward", "Loss"):
        chart = page.get_by_role("figure", name=re.compile(f"^{title}"))
        expect(chart).to_contain_text("generator")
        expect(chart).to_contain_text("verifier")

    # A step verdict on each line of the solution, and a final one.
    page.get_by_role("tab", name="Samples").click()
    solution = page.get_by_role("region", name="generator, text")
    expect(solution).to_contain_text("exact")
    critique = page.get_by_role("region", name=re.compile("^verifier, on generator"))
    expect(critique).to_contain_text(re.compile(r"\d[a-z.][+-]"))
    expect(critique).to_contain_text("agrees")
    for one in (solution, critique):
        box = one.bounding_box()
        assert box is not None
        assert box["height"] > 100
    left, right = solution.bounding_box(), critique.bounding_box()
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]

    page.get_by_role("tab", name="Schedule").click()
    group = page.get_by_role("region", name="Group, 3 times")
    expect(group.get_by_role("button", name=re.compile("^generate 3 steps"))).to_be_visible()
    expect(group.get_by_role("button", name=re.compile("^verify 1 step"))).to_be_visible()
    fits(page)


def test_the_strip_of_tango_shows_three_steps_of_the_solver_and_one_of_the_judge(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    tango = server.get("/presets/loops/tango")["yaml"]
    page = open_page(server.open_loop(tango), arranged=False)
    strip = page.get_by_role("region", name="Schedule at a glance")
    rhythm = strip.get_by_role("img", name="generator learns in 3 steps, verifier learns in 1 step")

    for width, height in ((1440, 900), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        expect(rhythm).to_be_visible()
        expect(strip).to_contain_text("generate × 3, verify × 1")
        rounds = strip.get_by_text("15 rounds of 3 + 1", exact=True)
        expect(rounds).to_be_visible()
        is_whole = "text => text.scrollWidth <= text.clientWidth"
        assert rounds.evaluate(is_whole), "the count of steps is cut"
