"""Memory and time in sight: bars, the budget slider, what it changes, locks, and placement."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PRESETS = Path(__file__).resolve().parents[2] / "presets" / "loops"


@pytest.fixture
def preset(server: "Server", open_page: Callable[..., Page]) -> Callable[[str], Page]:
    """A page with a preset's loop open in the editor."""

    def open_preset(name: str) -> Page:
        text = (PRESETS / f"{name}.yaml").read_text("utf-8")
        page = open_page(server.open_loop(text), bypass_csp=True)
        expect(page.get_by_role("article").first).to_be_visible()
        expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
        return page

    return open_preset


def _step(page: Page) -> str:
    return page.get_by_role("region", name="Predicted step").inner_text()


def test_a_budget_is_tried_applied_and_undone(
    preset: Callable[[str], Page],
    saved_yaml: Callable[[Page], str],
    violations: Callable[[Page], list[str]],
) -> None:
    """Open the preset, see the bars, move the slider, watch settings and step time, apply, undo."""
    page = preset("grpo-qwen2.5-7b-8xH100")
    bar = page.get_by_role("region", name="Hardware and memory")
    expect(bar.get_by_role("img", name=re.compile("of 71.3 GiB usable"))).to_have_count(8)
    before, text = _step(page), saved_yaml(page)
    slider = page.get_by_role("slider", name="Memory budget")

    # The step changes as the slider moves; Escape puts everything back.
    slider.fill("1")
    expect(page.get_by_role("region", name="Predicted step")).to_contain_text(
        re.compile(r"−1\.\d\d s")
    )
    slider.press("Escape")
    expect(slider).to_have_value("0.9")
    assert _step(page) == before

    # The panel says what changes and what it costs; a lock keeps a setting.
    slider.fill("1")
    page.get_by_role("button", name="See changes").click()
    changes = page.get_by_role("region", name="What the budget changes")
    row = changes.get_by_role("listitem").filter(has_text="Gradient checkpointing")
    expect(row).to_contain_text(re.compile(r"on → off\s*−1\.\d\d s"))
    assert violations(page) == []
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("slider", name="Memory budget")).to_have_value("1")
    page.get_by_role("button", name="Close", exact=True).click()
    applied = saved_yaml(page)
    assert "memory_budget: 1" in applied
    assert "gradient_checkpointing" not in applied

    # All of it is one step of the history.
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.get_by_role("slider", name="Memory budget")).to_have_value("0.9")
    assert saved_yaml(page) == text


def test_a_placement_is_taken_and_roles_are_moved(
    preset: Callable[[str], Page], saved_yaml: Callable[[Page], str]
) -> None:
    page = preset("genrm-gemma-2-9b-8xH100")
    page.get_by_role("button", name="Open hardware").click()
    expect(page.get_by_role("article", name="Suggested placement")).to_contain_text("fits")
    page.get_by_role("button", name=re.compile("^Use suggested")).click()
    expect(page.get_by_role("group", name="Pool solver")).to_contain_text(re.compile(r"GPU 0-\d"))

    # A role is moved by the mouse and by its menu.
    chip = page.get_by_role("button", name="verifier learn, in verifier: move").first
    chip.drag_to(page.get_by_role("group", name="Pool solver"))
    expect(page.get_by_role("button", name="verifier learn, in solver: move").first).to_be_visible()
    page.get_by_role("button", name="verifier learn, in solver: move").first.press("Enter")
    page.get_by_role("menuitem", name="To verifier").press("Enter")
    expect(
        page.get_by_role("button", name="verifier learn, in verifier: move").first
    ).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()

    # Hardware that is not here is asked about before a start.
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog", name="Hardware not available")
    expect(dialog).to_contain_text("needs 8 GPUs")
    dialog.get_by_role("button", name="Choose hardware").click()
    page.get_by_placeholder("Find hardware").fill("8xH200")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Hardware: 8xH200")).to_be_visible()
    assert "8xH200" in saved_yaml(page)


def test_what_another_machine_makes_untrue_is_not_exported(
    preset: Callable[[str], Page], saved_yaml: Callable[[Page], str]
) -> None:
    """What the preset says of itself at its head goes, its name follows; undo brings both back."""
    page = preset("grpo-qwen2.5-7b-8xH100")
    text = saved_yaml(page)

    page.get_by_role("button", name="Hardware: 8xH100").click()
    page.get_by_placeholder("Find hardware").fill("8xH200")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Hardware: 8xH200")).to_be_visible()
    changed = saved_yaml(page)
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.get_by_role("button", name="Hardware: 8xH100")).to_be_visible()

    assert "on eight H100s" in text
    assert "name: grpo-qwen2.5-7b-8xH200" in changed
    assert "H100" not in changed
    assert saved_yaml(page) == text


def test_what_a_budget_cannot_meet_is_promised_no_time(preset: Callable[[str], Page]) -> None:
    """Below what fits the bar says the least that does; above it the step is told again."""
    page = preset("grpo-qwen2.5-7b-8xH100")
    step = page.get_by_role("region", name="Predicted step")
    slider = page.get_by_role("slider", name="Memory budget")

    slider.fill("0.38")
    expect(step).to_contain_text("Does not fit")
    expect(step).to_contain_text(re.compile(r"The smallest that fits is \d+% of each GPU, \d+ GiB"))
    expect(step).not_to_contain_text(re.compile(r"[−+]\d"))
    least = re.search(r"(\d+)% of each", step.inner_text())
    assert least is not None

    page.get_by_role("button", name="See changes").click()
    changes = page.get_by_role("region", name="What the budget changes")
    over = re.search(r"[\d.]+ GiB over", changes.get_by_role("status").inner_text())
    assert over is not None
    expect(page.get_by_role("alert")).to_contain_text(f"{over[0]} budget on GPU 0-7")
    page.get_by_role("button", name=re.compile("^See ")).click()
    expect(page.locator("#ways-to-fit")).to_be_focused()

    slider = page.get_by_role("slider", name="Memory budget")
    slider.fill(f"{int(least[1]) / 100}")
    expect(changes.get_by_role("status")).to_contain_text("Fits:")
    expect(page.get_by_role("button", name="Apply")).to_have_attribute("aria-disabled", "false")
