"""How the text of a loop feels: from key to paint, a paste of 1 MB, how soon the text is open.

Beside each row stands what a bare `<textarea>` with the same text takes on a page of its own, in
the same browser and turn by turn: what of it is the browser's, and what the machine's other work.
A key is measured from its own time stamp to the end of the frame that shows it, so the next frame
is waited for in every row. In headless Chromium without a GPU.
"""

import statistics
from collections.abc import Callable
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright
from tests.bench.bench_canvas import chained_nodes, chromium
from tests.bench.results import Goal, Result, Table
from tests.bench.server import BEARER, TOKEN, serve

from coloop.spec.text.emit import to_yaml

KEYS = 60
PAUSE_MILLISECONDS = 60
OPENED = 7
PASTED = 3
MOST_MILLISECONDS = 32.0
TYPED = "# rates of learning, tried by hand; "

LINES = {"40 lines": (2, 40), "2,000 lines": (50, 2000)}
"""Chains of nodes, and the lines that comments fill it up to."""

WATCH = """() => {
    window.took_ = [];
    const painted = (then) =>
        requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => then(performance.now()); port2.postMessage(0); });
    let began = 0;
    document.addEventListener("keydown", (event) => { began = event.timeStamp; }, true);
    document.addEventListener("input", () => {
        const from = began;
        painted((now) => window.took_.push(now - from));
    }, true);
    window.painted_ = painted;
}"""
"""Milliseconds from the key that wrote something to the end of the frame that shows it."""

OPEN = """() => new Promise((done) => {
    const began = performance.now();
    document.querySelector("[role=tab][id$=yaml]").click();
    const look = () => document.querySelector(".cm-content")
        ? window.painted_((now) => done(now - began)) : requestAnimationFrame(look);
    look();
})"""

BARE = """(text) => {
    document.body.innerHTML = "<textarea wrap=off style='width: 100%; height: 300px'></textarea>";
    document.querySelector("textarea").value = text;
}"""

REOPEN = """(text) => new Promise((done) => {
    document.querySelector("textarea").remove();
    const began = performance.now();
    const area = document.createElement("textarea");
    area.wrap = "off";
    area.style = "width: 100%; height: 300px";
    area.value = text;
    document.body.append(area);
    window.painted_((now) => done(now - began));
})"""

Times = dict[str, tuple[list[float], list[float]]]


def run() -> Result:
    """Milliseconds of the editor beside those of a bare text area."""
    found = chromium()
    if found is None:
        return Result(title="Text of a loop", text="no Chromium; `make chromium` installs it")
    times: Times = {}
    with serve() as url, sync_playwright() as playwright:
        client = httpx.Client(base_url=url, timeout=60, trust_env=False, headers=BEARER)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, (chains, lines) in LINES.items():
            text = text_of(chains, lines)
            loop = client.post("/api/loops", json={"yaml": text}).json()
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            page, bare = context.new_page(), context.new_page()
            page.goto(f"{url}/loops/{loop['id']}?token={TOKEN}")
            bare.goto(f"{url}/api/health")
            bare.evaluate(BARE, text)
            open_text(page)
            for one in (page, bare):
                one.evaluate(WATCH)
            times |= in_turn(f"a key in {name}", page, bare, keys)
            if lines > 1000:
                times[f"opening {name}"] = opened(page, bare, text)
                times |= in_turn("pasting 1 MB", page, bare, pasted)
            context.close()
        browser.close()
    key = statistics.median(times["a key in 2,000 lines"][0])
    return Result(
        title="Text of a loop",
        tables=(
            Table(
                title="Milliseconds to paint: the editor, and a bare text area.",
                head=("what", "median", "95th percentile", "bare: median", "bare: 95th"),
                rows=tuple(
                    (name, *_both(editor), *_both(control))
                    for name, (editor, control) in times.items()
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"a key in 2,000 lines below {MOST_MILLISECONDS:.0f} ms, typically",
                found=f"{key:.1f} ms",
                is_reached=key < MOST_MILLISECONDS,
            ),
        ),
        data=times,
    )


def text_of(chains: int, lines: int) -> str:
    """A loop, with what somebody tried before left in comments until it has so many lines."""
    text = to_yaml(chained_nodes(chains))
    wanted = lines - text.count("\n")
    tried = [f"# {line}" for line in text.splitlines()] * (1 + wanted // text.count("\n"))
    return text + "\n".join(tried[:wanted]) + "\n"


def open_text(page: Page) -> None:
    page.bring_to_front()
    page.get_by_role("article").first.wait_for()
    tab = page.get_by_role("tab", name="YAML")
    if not tab.is_visible():
        page.get_by_role("button", name="Show the lower panel").click()
    tab.click()
    page.get_by_label("Loop as YAML").wait_for()
    page.wait_for_timeout(3000)


def in_turn(name: str, page: Page, bare: Page, measure: Callable[[Page], list[float]]) -> Times:
    """Editor and bare area by turns, so that other work on the machine meets both."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(PASTED):
        for times, one in zip(found, (page, bare), strict=True):
            one.bring_to_front()
            times += measure(one)
    return {name: found}


def area_of(page: Page) -> Any:
    return page.locator(".cm-content, textarea").first


def keys(page: Page) -> list[float]:
    """In the middle of the text, as fast as a quick typist."""
    area_of(page).evaluate(
        """(area) => {
            area.focus();
            if (area.setSelectionRange === undefined) {
                const box = area.closest(".cm-scroller");
                box.scrollTop = box.scrollHeight / 2;
            } else {
                const middle = area.value.indexOf("\\n", area.value.length / 2);
                area.setSelectionRange(middle, middle);
            }
        }"""
    )
    page.wait_for_timeout(200)
    if (line := page.locator(".cm-line")).count() > 0:
        line.nth(line.count() // 2).click()
        page.keyboard.press("End")
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    page.evaluate("() => { window.took_.length = 0; }")
    for number in range(KEYS // PASTED):
        page.keyboard.press(TYPED[number % len(TYPED)])
        page.wait_for_timeout(PAUSE_MILLISECONDS)
    times: list[float] = page.evaluate("() => window.took_")
    page.wait_for_timeout(1500)
    return times


def opened(page: Page, bare: Page, text: str) -> tuple[list[float], list[float]]:
    other = page.get_by_role("tab", name="Schedule")
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(OPENED):
        page.bring_to_front()
        other.click()
        page.wait_for_timeout(300)
        found[0].append(page.evaluate(OPEN))
        bare.bring_to_front()
        found[1].append(bare.evaluate(REOPEN, text))
    return found


def pasted(page: Page) -> list[float]:
    """Into the end of the text; taken back afterwards."""
    line = "# a line that somebody kept from a run of long ago: reward 0.713, length 214\n"
    page.evaluate("(text) => navigator.clipboard.writeText(text)", line * (1_000_000 // len(line)))
    area_of(page).focus()
    page.keyboard.press("Control+End")
    page.evaluate("() => { window.took_.length = 0; }")
    page.keyboard.press("Control+v")
    page.wait_for_function("() => window.took_.length > 0", timeout=120_000)
    times: list[float] = page.evaluate("() => window.took_")
    page.keyboard.press("Control+z")
    page.wait_for_timeout(1000)
    return times


def _both(times: list[float]) -> tuple[str, str]:
    last = sorted(times)[min(len(times) - 1, int(0.95 * len(times)))]
    return f"{statistics.median(times):.1f} ms", f"{last:.1f} ms"
