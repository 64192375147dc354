"""Loops of many nodes: seen whole and read, closed to few cards, searched, followed, and dragged.

Each journey prints how many clicks and keys it took.
"""

import re
import statistics
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.test_canvas import LOOPS, check
from tests.e2e.test_few_clicks import Hand

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

EIGHTEEN = ("tango", "genprm", "deepseek-grm", "marti-chain")
LEAST_TEXT = 10.9
"""Pixels of the window; 11, with what rounding takes."""

NAMES = """() => [...document.querySelectorAll(".compact-card")].map((card) => {
    const name = card.querySelector(".compact-card-name");
    const scale = card.getBoundingClientRect().width / parseFloat(getComputedStyle(card).width);
    return {
        name: name.textContent,
        size: parseFloat(getComputedStyle(name).fontSize) * scale,
        width: card.getBoundingClientRect().width,
        isCut: [...name.querySelectorAll("span")]
            .some((word) => word.scrollWidth > word.clientWidth),
    };
})"""


def tell(*lines: str) -> None:
    sys.stdout.write("\n  ".join(lines) + "\n")


def opened(open_page: Callable[..., Page], server: "Server", name: str, **options: Any) -> Page:
    text = (LOOPS / f"{name}.yaml").read_text(encoding="utf-8")
    page = open_page(server.open_loop(text), arranged=False, **options)
    expect(page.get_by_role("article").first).to_be_visible()
    return page


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=re.compile(f"^{name},"))


@pytest.mark.slow
def test_eighteen_nodes_are_whole_and_their_names_are_read(
    open_page: Callable[..., Page], server: "Server"
) -> None:
    for name in EIGHTEEN:
        page = opened(open_page, server, name)
        check(page)
        names = page.evaluate(NAMES)
        assert len(names) == 18
        narrowest = min(one["width"] for one in names)
        tell(f"{name}: 18 nodes at 1440x900, cards of {narrowest:.0f} px and more")
        assert min(one["size"] for one in names) >= LEAST_TEXT
        assert [one["name"] for one in names if one["isCut"]] == []


def test_nodes_are_grouped_closed_and_found_again(
    open_page: Callable[..., Page], server: "Server", saved_yaml: Callable[[Page], str]
) -> None:
    page = opened(open_page, server, "tango")
    hand = Hand(page)
    judging = ("verifier", "verifier_start", "agrees", "well_formed")
    for place, name in enumerate(judging):
        at = {"x": 30, "y": 12}
        card(page, name).click(modifiers=["Shift"] if place else [], position=at)
        hand.done.append(f"choose {name}")
    page.keyboard.press("Control+g")
    hand.done.append("Ctrl+G")
    expect(page.get_by_role("region", name="Group Group")).to_be_visible()

    hand.click(page.get_by_role("button", name="Collapse Group"))
    group = page.get_by_role("article", name="Group, group of 4")
    expect(group).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(15)
    # What teaches the verifier, and what it teaches with, still ends at the card.
    ends = group.get_by_role("img", name=re.compile("verifier|agrees|well_formed"))
    assert ends.count() >= 4
    assert "$groups" in saved_yaml(page)
    page.reload()
    expect(group).to_be_visible()

    page.keyboard.press("Control+f")
    hand.done.append("Ctrl+F")
    hand.type("well_formed")
    page.keyboard.press("Enter")
    hand.done.append("Enter")
    expect(page.get_by_role("search", name="Find a node")).to_contain_text("1 of")
    expect(page.get_by_label("Name of the node")).to_have_value("well_formed")
    expect(group).not_to_have_attribute("data-dimmed", "true")
    expect(card(page, "problems")).to_have_attribute("data-dimmed", "true")
    page.keyboard.press("Escape")
    expect(card(page, "problems")).not_to_have_attribute("data-dimmed", "true")

    hand.click(page.get_by_role("button", name="Expand Group"))
    expect(page.get_by_role("article")).to_have_count(18)
    tell(f"{len(hand.done)} clicks and keys:", *hand.done)


def test_a_row_is_followed_from_its_prompt_to_the_loss(
    open_page: Callable[..., Page], server: "Server"
) -> None:
    page = opened(open_page, server, "tango")
    hand = Hand(page)
    card(page, "candidate").click(button="right", position={"x": 30, "y": 12})
    hand.done.append("right click")
    hand.click(page.get_by_role("menuitem", name="Follow a row"))

    way = page.get_by_role("region", name="The way of a row")
    expect(way).to_contain_text("from problems")
    for name, is_on_it in (
        ("problems", True),
        ("candidate_exact", True),
        ("exam", True),
        ("generator", False),
        ("held_out", False),
    ):
        dimmed = card(page, name).get_attribute("data-dimmed")
        assert (dimmed is None) == is_on_it, name
    page.keyboard.press("Escape")
    expect(way).to_be_hidden()
    tell(f"{len(hand.done)} clicks:", *hand.done)


def many_nodes(groups: int) -> str:
    """As many actors, each with rows, a reward, a reference and an evaluation: five nodes each."""
    nodes, edges = [], []
    for n in range(groups):
        nodes += [
            f"  rows_{n}: {{kind: dataset, source: {{type: task, task: arithmetic}}}}",
            f"  actor_{n}: {{kind: actor, model: {{type: scratch, architecture: tiny-qwen3}}}}",
            f"  start_{n}: {{kind: reference, model: {{type: snapshot, of: actor_{n}}}}}",
            f"  exact_{n}: {{kind: reward, source: {{type: builtin, name: exact_match}}}}",
            f"  probe_{n}: {{kind: evaluate, metrics: [accuracy], every: 10}}",
        ]
        edges += [
            f"  - rows_{n}.rows -> actor_{n}.prompts",
            f"  - actor_{n}.rollouts -> exact_{n}.rollouts",
            f"  - actor_{n}.rollouts -> start_{n}.rollouts",
            f"  - exact_{n}.scores -> actor_{n}.rewards",
            f"  - exact_{n}.scores -> probe_{n}.scores",
        ]
    lines = ["coloop: 1", "name: hundred", "nodes:", *nodes, "edges:", *edges]
    return "\n".join([*lines, "schedule: {steps: 10}", ""])


FRAMES = """() => {
    window.frames_seen = [];
    let last = performance.now();
    const tick = (now) => {
        window.frames_seen.push(now - last);
        last = now;
        window.frames_request = requestAnimationFrame(tick);
    };
    window.frames_request = requestAnimationFrame(tick);
}"""


def frames_while_dragging(page: Page, x: float, y: float) -> list[float]:
    """Milliseconds from frame to frame while the pressed pointer goes to and fro."""
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 8, y + 8)
    page.evaluate(FRAMES)
    for step in range(60):
        page.mouse.move(x + 2 * step, y + step)
    page.mouse.up()
    return list(page.evaluate("cancelAnimationFrame(frames_request), frames_seen.slice(1)"))


@pytest.mark.slow
def test_a_hundred_nodes_are_dragged_as_fast_as_the_machine_draws(
    open_page: Callable[..., Page], server: "Server"
) -> None:
    empty = open_page(server.open_loop("coloop: 1\nname: empty\nnodes: {}\nedges: []\n"))
    expect(empty.get_by_text("An empty loop")).to_be_visible()
    free = statistics.median(frames_while_dragging(empty, 300, 700))
    empty.close()

    page = open_page(server.open_loop(many_nodes(20)), arranged=False)
    expect(page.get_by_role("article")).to_have_count(100, timeout=90_000)
    page.wait_for_timeout(1500)
    box = card(page, "actor_3").bounding_box()
    assert box is not None
    frames = frames_while_dragging(page, box["x"] + box["width"] / 2, box["y"] + 8)
    median = statistics.median(frames)
    tell(
        f"100 nodes: {1000 / median:.0f} frames a second while one is dragged, "
        f"{1000 / free:.0f} on an empty canvas; slowest frame {max(frames):.0f} ms"
    )
    # 60 a second where the machine draws as many; a busy one draws an empty canvas slower as well.
    assert median <= max(1000 / 60 + 2, 2.5 * free)
