"""How the canvas feels: frames while two hundred nodes are moved and zoomed and one is dragged, and
while a node is dragged that stands among three hundred edges.

In headless Chromium without a GPU, so everything is painted by the processor.
"""

import shutil
import statistics
from collections.abc import Callable
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, sync_playwright
from tests.bench.results import Goal, Result, Table
from tests.bench.server import BEARER, TOKEN, serve

from coloop.spec.text.emit import to_yaml

CHAINS = 50
DENSE_CHAINS = 25
"""Of four nodes and twelve edges each."""
MOVES = 60
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LONGEST_FRAME_MILLISECONDS = 50
FRAME_MILLISECONDS = 16.7
"""At 60 frames a second."""
WATCH = """() => {
    const frames = (window.frames_ = []);
    let last = performance.now();
    const look = (now) => { frames.push(now - last); last = now; requestAnimationFrame(look); };
    requestAnimationFrame(look);
}"""

IN_SIGHT = """() => {
    const canvas = document.querySelector("main").getBoundingClientRect();
    const nodes = [...document.querySelectorAll("article")];
    for (const [index, node] of nodes.entries()) {
        const box = node.getBoundingClientRect();
        const x = box.x + box.width / 2;
        for (const y of [box.y + box.height / 16, box.y + box.height / 8]) {
            const isInside = x > canvas.x + 50 && x < canvas.right - 150
                && y > canvas.y + 100 && y < canvas.bottom - 150;
            const hit = isInside ? document.elementFromPoint(x, y) : null;
            if (node.contains(hit) && !hit.closest(".nodrag")) return [index, x, y];
        }
    }
}"""
"""A node of which the head can be taken hold of: its number, and where."""


def run() -> Result:
    found = chromium()
    if found is None:
        return Result(title="Canvas of 200 nodes", text="no Chromium; `make chromium` installs it")
    with serve() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = _opened(browser, url, chained_nodes(CHAINS))
        times = {
            "nothing": _frames(page, _rest),
            "moving the canvas": _frames(page, _pan),
            "zooming": _frames(page, _zoom),
            "dragging a node": _frames(_closer(page), _drag),
        }
        nodes = page.get_by_role("article").count()
        page.close()
        page = _opened(browser, url, dense_nodes(DENSE_CHAINS))
        among_edges = {
            "dragging a node, whole cards": _frames(_closer(page), _drag),
            "dragging a node, compact cards": _frames(_from_afar(page), _drag),
        }
        browser.close()
    worst = max(statistics.median(frames) for name, frames in times.items() if name != "nothing")
    slowest = max(map(statistics.median, among_edges.values()))
    return Result(
        title="Canvas of 200 nodes",
        tables=(
            _table(f"Milliseconds between frames; {nodes} nodes on the page.", times),
            _table("The same among 100 nodes with 300 edges.", among_edges),
        ),
        goals=(
            Goal(
                wanted=f"median frame below {LONGEST_FRAME_MILLISECONDS} ms while it is used",
                found=f"{worst:.1f} ms",
                is_reached=worst < LONGEST_FRAME_MILLISECONDS,
            ),
            Goal(
                wanted="60 frames a second while a node is dragged among 300 edges",
                found=f"{slowest:.1f} ms",
                is_reached=slowest < 1.1 * FRAME_MILLISECONDS,
            ),
        ),
        data=times | among_edges,
    )


def _table(title: str, times: dict[str, list[float]]) -> Table:
    return Table(
        title=title,
        head=("while", "median", "95th of 100", "slowest"),
        rows=tuple(
            (
                name,
                f"{statistics.median(frames):.1f} ms",
                f"{sorted(frames)[int(0.95 * len(frames))]:.1f} ms",
                f"{max(frames):.1f} ms",
            )
            for name, frames in times.items()
        ),
    )


def _opened(browser: Browser, url: str, spec: dict[str, Any]) -> Page:
    client = httpx.Client(base_url=url, timeout=60, trust_env=False, headers=BEARER)
    loop = client.post("/api/loops", json={"yaml": to_yaml(spec)}).json()
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(f"{url}/loops/{loop['id']}?token={TOKEN}")
    page.get_by_role("article").first.wait_for()
    page.wait_for_timeout(3000)
    return page


def _closer(page: Page) -> Page:
    """To a node, so near that cards are whole."""
    articles = page.get_by_role("article")
    box = articles.nth(articles.count() // 2).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(MOVES):
        if page.locator("[data-detail=whole]").count():
            break
        page.keyboard.down("Control")
        page.mouse.wheel(0, -300)
        page.keyboard.up("Control")
        page.wait_for_timeout(300)
    page.wait_for_timeout(1000)
    return page


def _from_afar(page: Page) -> Page:
    page.get_by_role("button", name="Show everything").first.click()
    page.locator("[data-detail=compact]").wait_for()
    page.wait_for_timeout(1000)
    return page


def chromium() -> str | None:
    """Where a browser is; None: nowhere."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def chained_nodes(chains: int) -> dict[str, Any]:
    """Chains of data, writer, reward and probe, side by side."""
    task = {"type": "task", "task": "arithmetic"}
    nodes: dict[str, Any] = {}
    edges = []
    for number in range(chains):
        data, actor = f"data_{number}", f"actor_{number}"
        exact, probe = f"exact_{number}", f"probe_{number}"
        nodes[data] = {"kind": "dataset", "source": task, "rows_per_step": 8}
        nodes[actor] = {
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"completions_per_prompt": 4, "max_new_tokens": 8},
            "algorithm": {"rewards": {"name": "grpo"}},
        }
        nodes[exact] = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
        nodes[probe] = {"kind": "evaluate", "every": 10, "metrics": ["score"]}
        edges += [
            f"{data}.rows -> {actor}.prompts",
            f"{actor}.rollouts -> {exact}.rollouts",
            f"{exact}.scores -> {actor}.rewards",
            f"{exact}.scores -> {probe}.scores",
        ]
    return {
        "coloop": 1,
        "name": "chains",
        "nodes": nodes,
        "edges": edges,
        "schedule": {"steps": 10},
        "hardware": {"preset": "cpu"},
    }


def dense_nodes(chains: int) -> dict[str, Any]:
    """The same chains, each with eight edges more to those that come next: 12 edges a chain."""
    spec = chained_nodes(chains)
    for number in range(chains):
        following = [(number + step) % chains for step in range(1, 5)]
        spec["edges"] += [
            *(f"actor_{number}.rollouts -> exact_{other}.rollouts" for other in following),
            *(f"exact_{number}.scores -> probe_{other}.scores" for other in following[:3]),
            f"data_{number}.rows -> actor_{following[0]}.prompts",
        ]
    return spec


def _frames(page: Page, act: Callable[[Page], None]) -> list[float]:
    page.evaluate(WATCH)
    act(page)
    frames: list[float] = page.evaluate("() => window.frames_")
    return frames[1:]


def _rest(page: Page) -> None:
    page.wait_for_timeout(1000)


def _pan(page: Page) -> None:
    page.mouse.move(700, 300)
    page.mouse.down(button="middle")
    for step in range(MOVES):
        page.mouse.move(700 + 4 * step, 300 + step)
    page.mouse.up(button="middle")


def _zoom(page: Page) -> None:
    page.mouse.move(700, 300)
    for step in range(MOVES):
        page.keyboard.down("Control")
        page.mouse.wheel(0, 40 if step % 20 < 10 else -40)
        page.keyboard.up("Control")


def _drag(page: Page) -> None:
    index, x, y = page.evaluate(IN_SIGHT)
    node = page.get_by_role("article").nth(index)
    before = node.bounding_box()
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(MOVES):
        page.mouse.move(x + 2 * step, y + step)
    page.mouse.up()
    after = node.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] > before["x"] + MOVES, "the node was not dragged"
