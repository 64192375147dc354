"""What is drawn of every loop that comes with the product: nothing covers anything, all is read.

Boxes and text are measured where they stand, in the composer and in a run, in windows of three
sizes.
"""

import re
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import WAIT_MS
from tests.matrix import some

from coloop.runtime.run_files.events import (
    EdgeGauge,
    Gauges,
    NodeGauge,
    RunStateEvent,
    RunStateName,
    StageGauge,
    utc_now,
)
from coloop.runtime.run_files.recorder import Recorder
from coloop.spec.io import parse
from coloop.spec.ports import PORTS

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

LOOPS = Path(__file__).resolve().parents[2] / "presets" / "loops"
PRESETS = sorted(path for path in LOOPS.glob("*.yaml") if not re.search(r"-\d+x[A-Z]", path.stem))
"""Those for a laptop; the same systems at full size are drawn alike."""
WIDE = ((1440, 900), (2560, 1440))
SIZES = ((1024, 768), *(pytest.param(size, marks=pytest.mark.slow) for size in WIDE))
"""The smallest is the narrowest for boxes and texts."""
LEAST_TEXT = {"whole": 8.3, "compact": 10.8}
"""On the screen, by the kind of cards."""
MARK = 71
"""Pixels: a card as narrow is a mark, whose name goes beyond it."""
BEYOND = 9
"""Pixels by which it does, on each side."""
ROUNDING = 0.75
"""Pixels by which boxes may meet: browsers round."""

LOOK = """() => {
    const area = (element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        return [x, y, x + width, y + height];
    };
    const named = (selector, name) => [...document.querySelectorAll(selector)]
        .map((element) => [name(element), area(element)]);
    const scaleOf = (element) => {
        // Unlike offsetWidth, this is not rounded.
        const width = parseFloat(getComputedStyle(element).width);
        return width > 0 ? element.getBoundingClientRect().width / width : 1;
    };
    const isCut = (number) => {
        // One that does not fit lies on a line below, where it is not seen.
        const range = document.createRange();
        range.selectNodeContents(number);
        const [left, top, right, bottom] = area(range);
        const box = area(number);
        const isSeen = number.checkVisibility() && (top + bottom) / 2 < box[3];
        return isSeen && right - left > box[2] - box[0] + 1;
    };
    const texts = [];
    const walker = document.createTreeWalker(
        document.querySelector(".react-flow__viewport"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const holder = walker.currentNode.parentElement;
        if (walker.currentNode.textContent.trim() === "" || !holder.checkVisibility()) continue;
        const size = parseFloat(getComputedStyle(holder).fontSize);
        texts.push([walker.currentNode.textContent,
            size * scaleOf(holder.closest("div, button"))]);
    }
    return {
        nodes: named("article[aria-label]", (one) => one.getAttribute("aria-label")),
        labels: named(".loop-edge-label", (one) => one.dataset.edge),
        ports: named(".react-flow__handle svg",
            (one) => one.closest(".react-flow__handle").getAttribute("aria-label")),
        texts,
        detail: document.querySelector("[data-detail]").dataset.detail,
        canvas: area(document.querySelector("section[aria-label=Graph]")),
        over: [".canvas-tools > *", ".react-flow__attribution", "[data-over-graph]"]
            .flatMap((one) => named(one, () => one)),
        names: named(".compact-card-name", (one) => one.textContent),
        cut: [...[...document.querySelectorAll(".loop-node-name, .node-port > span")]
                .filter((one) => one.clientHeight < 10 || one.scrollWidth > one.clientWidth),
            ...[...document.querySelectorAll(".compact-card-number.tabular")].filter(isCut)]
            .map((one) => one.textContent),
    };
}"""
"""Areas on the screen as left, top, right, bottom, and the size of every text."""


def clashes(things: list[Any], others: list[Any] | None = None) -> list[str]:
    """Which of these areas lie on one another, or on one of the others."""
    pairs = (
        [(one, other) for place, one in enumerate(things) for other in things[place + 1 :]]
        if others is None
        else [(one, other) for one in things for other in others]
    )
    return [
        f"{name} on {other}"
        for (name, a), (other, b) in pairs
        if min(a[2], b[2]) - max(a[0], b[0]) > ROUNDING
        and min(a[3], b[3]) - max(a[1], b[1]) > ROUNDING
    ]


def check(page: Page) -> None:
    """What stands on the canvas of this page, once it has come to rest."""
    expect(page.get_by_role("article").first).to_be_visible()
    until = time.monotonic() + WAIT_MS / 1000
    before, seen = None, page.evaluate(LOOK)
    while seen != before or wrong_in(seen):
        assert time.monotonic() < until, wrong_in(seen) or "it moves without end"
        page.wait_for_timeout(100)
        before, seen = seen, page.evaluate(LOOK)


def wrong_in(seen: dict[str, Any]) -> list[object]:
    """What lies on something else, is cut, too small to be read, or out of sight."""
    least = LEAST_TEXT[seen["detail"]]
    left, top, right, bottom = seen["canvas"]
    outside = [
        name
        for name, box in seen["nodes"]
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom
    ]
    unnamed = []
    for (card, box), (name, words) in zip(seen["nodes"], seen["names"], strict=False):
        beyond = BEYOND if box[2] - box[0] <= MARK else 0
        inside = [box[0] - beyond <= words[0], words[2] <= box[2] + beyond]
        inside += [box[1] - ROUNDING <= words[1], words[3] <= box[3] + ROUNDING]
        has_room = words[3] - words[1] >= 11 and words[2] - words[0] >= min(24, 4 * len(name))
        if card.partition(",")[0] != name or not has_room or not all(inside):
            unnamed.append(name)
    found = {
        "nodes on nodes": clashes(seen["nodes"]),
        "labels on labels": clashes(seen["labels"]),
        "labels on nodes": clashes(seen["labels"], seen["nodes"]),
        "labels on ports": clashes(seen["labels"], seen["ports"]),
        "too small": [text for text in seen["texts"] if text[1] < least],
        "cut": seen["cut"],
        "under tools": clashes(seen["nodes"], seen["over"]),
        "outside": outside,
        "names": unnamed,
    }
    return [what for what in found.items() if what[1]]


def write_run(folder: Path, text: str) -> None:
    """A run folder as one that ended left it, with a rate on every edge, node and stage."""
    spec = parse(text).spec
    assert spec is not None
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    recorder = Recorder(folder, folder.name)
    recorder.record(RunStateEvent(state=RunStateName.RUNNING, step=0))
    rate = EdgeGauge(rows_per_second=44_400.0, rows=256)
    busy = NodeGauge(busy=0.42)
    stage = StageGauge(
        seconds=0.2, share=0.4, wall_samples_per_second=44_400.0, wall_tokens_per_second=98_700.0
    )
    recorder.show(
        Gauges(
            at=utc_now(),
            run=folder.name,
            state=RunStateName.FINISHED,
            step=3,
            step_seconds=0.374,
            nodes=dict.fromkeys(spec.nodes, busy),
            stages={
                f"{name}.{verb}": stage
                for name, node in spec.nodes.items()
                for verb in PORTS[node.kind].stages
            },
            edges={edge.key: rate for edge in spec.edges},
            bottleneck=f"{next(iter(spec.nodes))}.load",
        )
    )
    recorder.record(RunStateEvent(state=RunStateName.FINISHED, step=3))
    recorder.close()


@pytest.fixture(scope="module")
def runs(server: "Server") -> dict[str, str]:
    """A run of every preset: its graph with all footers and rates. By name, its address."""
    found = {}
    for preset in PRESETS:
        folder = server.runs / f"drawn-{preset.stem.replace('.', '-')}"
        write_run(folder, preset.read_text(encoding="utf-8"))
        found[preset.stem] = f"/runs/{folder.name}"
    server.get("/runs")  # looks for new folders
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_nothing_lies_on_anything_in_the_composer(
    size: tuple[int, int], server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page("/", viewport={"width": size[0], "height": size[1]})
    for preset in PRESETS:
        page.goto(server.open_loop(preset.read_text(encoding="utf-8")))

        check(page)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_nothing_lies_on_anything_in_a_run(
    size: tuple[int, int], runs: dict[str, str], open_page: Callable[..., Page]
) -> None:
    page = open_page("/", viewport={"width": size[0], "height": size[1]})
    for path in runs.values():
        page.goto(path)
        rates = page.locator(".loop-edge-label").or_(page.locator("[data-detail=compact]"))
        expect(rates.first).to_be_visible()

        check(page)


TALL = (
    "nodes: {"
    + ", ".join(
        f"d{n}: {{kind: dataset, source: {{type: task, task: arithmetic}}}}" for n in range(24)
    )
    + "}"
)
FIRST_SIGHTS = some(
    product(
        ("tango", "grpo-arithmetic", "cooper", "many"),
        ((1440, 900), (1024, 768)),
        ("light", "dark"),
    ),
    kept=[("tango", (1024, 768), "dark"), ("cooper", (1440, 900), "light")],
)


@pytest.mark.parametrize("sight", FIRST_SIGHTS, ids=str)
def test_all_of_a_graph_is_seen_and_read_at_first_sight(
    sight: tuple[str, tuple[int, int], Literal["light", "dark"]],
    server: "Server",
    runs: dict[str, str],
    open_page: Callable[..., Page],
) -> None:
    name, size, theme = sight
    page = open_page(
        "/",
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        arranged=False,
    )
    if name == "many":
        many = f"coloop: 1\nname: many\n{TALL}\nedges: []\nschedule: {{steps: 1}}\n"
        page.goto(server.open_loop(many))
        check(page)
        expect(page.get_by_role("article")).to_have_count(24)
        return
    page.goto(server.open_loop((LOOPS / f"{name}.yaml").read_text(encoding="utf-8")))
    check(page)
    # Beside the settings, which are open as long as nobody closed them.
    expect(page.get_by_role("complementary", name="Settings")).to_be_visible()
    expect(page.get_by_role("article", name=re.compile("^probe,"))).to_be_visible()
    page.goto(runs[name])
    expect(page.get_by_text("44.4k/s").first).to_be_attached()
    check(page)


@pytest.mark.slow
def test_a_compact_card_is_chosen_and_opened_by_a_closer_look(
    open_page: Callable[..., Page], server: "Server"
) -> None:
    tango = (LOOPS / "tango.yaml").read_text(encoding="utf-8")
    page = open_page(server.open_loop(tango), arranged=False)
    graph = page.locator("[data-detail]")
    expect(graph).to_have_attribute("data-detail", "compact")
    card = page.get_by_role("article", name=re.compile("^verifier_start,"))
    expect(card.locator(".compact-card")).to_have_attribute("title", re.compile("^verifier_start"))

    card.click()
    expect(page.get_by_label("Name of the node")).to_have_value("verifier_start")
    for _ in range(2):
        page.get_by_role("button", name="Zoom in").click()
    expect(graph).to_have_attribute("data-detail", "whole")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Show everything").click()
    expect(graph).to_have_attribute("data-detail", "compact")
    check(page)


IN_GRAPH = "document.activeElement?.closest('.react-flow') !== null"
FOCUSED = "document.activeElement?.getAttribute('data-id') ?? ''"


@pytest.mark.slow
def test_the_graph_is_one_stop_of_the_tab_key_and_arrows_lead_on(
    open_page: Callable[..., Page], server: "Server"
) -> None:
    page = open_page(server.open_loop(server.get("/presets/loops/two-halves")["yaml"]))
    expect(page.get_by_role("article").first).to_be_visible()

    stops = []
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate(IN_GRAPH):
            stops.append(page.evaluate(FOCUSED))
    assert [stop for stop in stops if stop] == ["sums"] * stops.count("sums")
    page.locator('.react-flow__node[data-id="sums"]').focus()
    page.keyboard.press("Shift+ArrowRight")
    edge = page.evaluate(FOCUSED)
    assert edge.startswith("sums.rows")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) in {"ask_tens", "ask_units"}
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FOCUSED) == "sums"
