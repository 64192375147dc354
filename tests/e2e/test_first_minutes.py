"""The first minutes: the gallery, what a preset teaches, the tour, and help where it is needed."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_a_new_user_finds_spin_reads_about_it_and_takes_the_tour_by_keyboard(
    open_page: Callable[..., Page], violations: Callable[[Page], list[str]]
) -> None:
    page = open_page("/loops", bypass_csp=True)
    missed: list[str] = []
    page.on("response", lambda answer: missed.append(answer.url) if answer.status == 404 else None)
    offline = page.get_by_role("button", name=re.compile("^Offline"))
    offline.press("Enter")
    expect(offline).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("/")
    page.keyboard.type("self-play")
    expect(page.get_by_role("article")).to_have_count(1)
    page.get_by_role("button", name="SPIN", exact=True).press("Enter")

    about = page.get_by_role("region", name="About this loop")
    expect(about).to_contain_text("Self-play with a snapshot")
    expect(about).to_contain_text("0.693")
    expect(about).to_contain_text(re.compile(r"at least \d"))
    about.get_by_role("button", name=re.compile("^opponent")).press("Enter")
    expect(page.get_by_role("article", name=re.compile("^opponent,"))).to_be_visible()
    expect(about).to_be_hidden()
    page.keyboard.press("Escape")
    assert violations(page) == []

    about.get_by_role("button", name="Take the tour").press("Enter")
    for step in range(1, 8):
        expect(page.get_by_role("dialog", name=re.compile(f"step {step} of 7"))).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Next|Done"))).to_be_focused()
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.reload()
    expect(about).to_be_visible()
    expect(about.get_by_role("button", name="Take the tour")).to_have_count(0)
    about.get_by_role("button", name="Close about").press("Enter")
    expect(about).to_be_hidden()
    page.get_by_role("button", name="About this loop").press("Enter")
    expect(about).to_be_visible()
    assert missed == []


def test_a_problem_says_why_and_a_learner_shows_its_formulas(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    text = server.get("/presets/loops/grpo-arithmetic")["yaml"]
    page = open_page(server.open_loop(text.replace("mini_batch: 64", "mini_batch: 60")))

    page.get_by_role("tab", name="Problems").click()
    page.get_by_role("button", name="Why?").first.click()
    help_ = page.get_by_role("dialog", name="Why?")
    expect(help_).to_contain_text("numbers.divisibility")
    expect(help_).to_contain_text("mini_batch: 60")
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()

    page.get_by_role("article", name=re.compile("^actor,")).click()
    page.get_by_role("button", name="Formulas and curves").click()
    learns = page.get_by_role("dialog", name="What actor learns")
    expect(learns.locator("math").first).to_be_visible()
    strength = learns.locator("math[aria-label='β = 0.001']")
    expect(strength).to_be_visible()
    expect(learns).to_contain_text("Groups without variance")
