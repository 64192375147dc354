"""Every screen against axe-core's rules: names, roles, contrast, headings, focus.

Pages of runs and of the hardware panel are looked at where other journeys have them open: a run
that goes on, a finished one and its replay, a failed one.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.test_compose import unfold

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Violations = Callable[[Page], list[str]]

DOCKS = ("Problems", "YAML", "Schedule", "Memory", "Data")


def test_the_editor_can_be_used_by_everyone(
    open_page: Callable[..., Page], server: "Server", violations: Violations
) -> None:
    text = server.get("/presets/loops/two-halves")["yaml"]
    editor = open_page(server.open_loop(text), bypass_csp=True)
    expect(editor.get_by_role("article").first).to_be_visible()

    editor.get_by_role("article", name="tens, Actor").click()
    found: dict[str, Any] = {"a node": violations(editor)}
    for dock in DOCKS:
        tab = editor.get_by_role("tab", name=dock)
        if tab.get_attribute("aria-selected") != "true":
            tab.click()
        found[dock] = violations(editor)

    editor.get_by_role("link", name="Rewards").click()
    expect(editor.get_by_role("button", name="Run preview")).to_be_visible()
    found["rewards"] = violations(editor)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_lists_and_the_gallery_can_be_used_by_everyone(
    open_page: Callable[..., Page], violations: Violations
) -> None:
    found = {}
    for path in ("/loops", "/runs"):
        listed = open_page(path, bypass_csp=True)
        expect(listed.get_by_role("heading", level=1)).to_be_visible()
        found[path] = violations(listed)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_what_composes_a_loop_can_be_used_by_everyone(
    open_page: Callable[..., Page], violations: Violations
) -> None:
    page = open_page("/loops", bypass_csp=True)
    page.get_by_role("button", name="New loop").click()
    page.get_by_role("radio", name=re.compile("^Co-training")).check()
    found: dict[str, Any] = {"a new loop": violations(page)}
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("An empty loop")).to_be_visible()
    page.get_by_role("button", name="Dataset").first.click()
    found["blocks"] = violations(page)
    page.get_by_role("region", name="Blocks").get_by_role("button", name="Solver and judge").click()
    expect(page.get_by_role("article", name="judge, Verifier")).to_be_visible()
    page.get_by_role("article", name="solver, Actor").click(button="right")
    page.get_by_role("menuitem", name="Save as block").click()
    expect(page.get_by_role("dialog", name="Save as block")).to_be_visible()
    found["a block of one's own"] = violations(page)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("article", name="judge, Verifier").click(position={"x": 60, "y": 15})
    unfold(page, "Reading")
    expect(page.get_by_label("Insert prompt").first).to_be_visible()
    found["columns of a template"] = violations(page)
    page.get_by_role("tab", name="Data").click()
    expect(page.get_by_label("Use prompt as")).to_be_visible(timeout=90_000)
    found["columns of the rows"] = violations(page)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}
