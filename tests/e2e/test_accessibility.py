"""Every screen against axe-core's rules: names, roles, contrast, headings, focus.

The rules come from the front end's own packages and are put into the page by the test.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

AXE = Path(__file__).resolve().parents[2] / "frontend/node_modules/axe-core/axe.min.js"
DOCKS = ("Problems", "YAML", "Schedule", "Memory", "Data")
LOOK = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) =>
        `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, open_page: Callable[..., Page]) -> Callable[[str], Page]:
    """Open an address in one of the two colour schemes."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; `make web` installs it")

    def open_it(path: str) -> Page:
        page = open_page(path, color_scheme=request.param, bypass_csp=True)
        page.add_script_tag(path=str(AXE))
        return page

    return open_it


def violations(page: Page) -> list[str]:
    found: list[str] = page.evaluate(LOOK)
    return found


def test_the_editor_can_be_used_by_everyone(page: Callable[[str], Page], server: "Server") -> None:
    text = server.get("/presets/loops/two-halves")["yaml"]
    editor = page(server.open_loop(text))
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


def test_lists_and_the_gallery_can_be_used_by_everyone(page: Callable[[str], Page]) -> None:
    found = {}
    for path in ("/loops", "/runs"):
        listed = page(path)
        expect(listed.get_by_role("heading", level=1)).to_be_visible()
        found[path] = violations(listed)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}
