"""Every screen against axe-core's rules: names, roles, contrast, headings, focus.

Pages of runs and of the hardware panel are looked at where other journeys have them open: a run
that goes on, a finished one and its replay, a failed one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

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
