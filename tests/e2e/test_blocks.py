"""Building blocks as a user meets them: inserted in one step, joined, saved from a selection."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.test_compose import begin, leave, node
from tests.e2e.test_editor import drag

pytestmark = pytest.mark.e2e


def blocks(page: Page):
    return page.get_by_role("region", name="Blocks")


def test_a_block_is_inserted_joined_and_undone_as_one_step(
    open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    page = open_page("/loops")
    begin(page, "from-blocks")
    page.get_by_role("button", name="Dataset").first.click()
    expect(node(page, "dataset")).to_be_visible()

    blocks(page).get_by_role("button", name="Solver and judge").click()

    for name in ("solver", "exact", "judge", "agrees"):
        expect(node(page, name)).to_be_visible()
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    assert "dataset.rows -> solver.prompts" in saved_yaml(page)
    node(page, "judge").click(position={"x": 60, "y": 15})
    expect(page.get_by_label("Name of the node")).to_have_value("judge")

    leave(page)
    page.keyboard.press("Control+z")
    expect(node(page, "judge")).to_be_hidden()
    expect(node(page, "solver")).to_be_hidden()
    expect(node(page, "dataset")).to_be_visible()
    assert "solver" not in saved_yaml(page)


def test_a_selection_is_saved_as_a_block_inserted_and_deleted(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/loops")
    begin(page, "own-blocks")
    blocks(page).get_by_role("button", name="Solver, exact reward").click()
    expect(node(page, "exact")).to_be_visible()

    node(page, "solver").click(button="right", position={"x": 60, "y": 15})
    page.get_by_role("menuitem", name="Save as block").click()
    dialog = page.get_by_role("dialog", name="Save as block")
    dialog.get_by_label("Title").fill("My solver")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()

    blocks(page).get_by_role("button", name=re.compile("^Blocks")).click()
    own = blocks(page).get_by_role("button", name="My solver", exact=True)
    own.drag_to(page.get_by_role("region", name="Graph"), target_position={"x": 120, "y": 60})
    expect(node(page, "solver_2")).to_be_visible()

    own.hover()
    blocks(page).get_by_role("button", name="Delete the block My solver").click()
    expect(own).to_be_hidden()
    expect(node(page, "solver_2")).to_be_visible()


def test_a_wire_that_is_dropped_offers_blocks_that_take_it(open_page: Callable[..., Page]) -> None:
    page = open_page("/loops")
    begin(page, "by-wire")
    page.get_by_role("button", name="Dataset").first.click()
    box = node(page, "dataset").bounding_box()
    assert box is not None

    drag(page, "output dataset.rows", (box["x"] + 320, box["y"] + 40))
    expect(page.get_by_placeholder("What goes with dataset.rows?")).to_be_focused()
    expect(page.get_by_role("option", name="Preference pairs", exact=False)).to_be_hidden()
    page.keyboard.type("debate")
    page.keyboard.press("Enter")

    expect(node(page, "rebut")).to_be_visible()
    expect(page.get_by_role("button", name="No problems")).to_be_visible()


def test_a_new_loop_of_co_training_begins_with_a_block(open_page: Callable[..., Page]) -> None:
    page = open_page("/loops")
    page.get_by_role("button", name="New loop").click()
    page.keyboard.type("co")
    page.get_by_role("radio", name=re.compile("^Co-training")).check()
    for name in ("Solver and judge", "Proposer and solver", "Debate"):
        expect(page.get_by_role("radio", name=re.compile(f"^{name}"))).to_be_visible()
    expect(page.get_by_role("radio", name=re.compile("^Tool loop"))).to_be_hidden()
    page.get_by_role("radio", name=re.compile("^Debate")).check()
    page.keyboard.press("Enter")

    expect(node(page, "rebut")).to_be_visible()
    expect(page.get_by_label("Mode of the loop")).to_have_text("Online")
