"""What each screen looks like: pictures in both themes against those that a person has looked at.

A picture may differ in few pixels and little (another processor rounds another way); the rest is a
change of the look, which somebody is to see: `make looks` takes all pictures anew, and they are
read like code before they are committed. A failed test names the screens, and leaves of each the
new picture and one in which the pixels that differ are marked.

The server is this file's own: what other tests leave is in no list, and nothing runs beside it.
What says a time of day or a speed of this machine is covered.
"""

import base64
import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect
from tests.e2e.conftest import SHOTS, THEMES, Server, serving

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HERE = Path(__file__).parent
KEPT = HERE / "looks"
TAKEN_WITH = KEPT / "chromium.txt"
RECORDED = HERE / "recorded" / "two-halves.tar.xz"
"""A run of the preset of that name, 60 and 40 steps, with the texts of its last steps."""
TAKES_ANEW = os.environ.get("COLOOP_LOOKS") == "take"
NEAR = 24
"""Of 255: by how much a colour of a pixel may differ and still be the same."""
SHARE = 0.0002
"""Of all pixels: as many may differ, a letter or two."""
STANDS_SECONDS = 3.0
"""A screen that does not change for as long is what it is."""

IS_WHOLE = """async () => {
    await document.fonts.ready;
    await new Promise((done) => requestIdleCallback(done, { timeout: 300 }));
    return document.querySelector(".skeleton, [aria-busy=true]") === null
        && [...document.images].every((image) => image.complete);
}"""

COMPARE = """async ([kept, now, near, most]) => {
    const read = async (data) => {
        const image = new Image();
        image.src = `data:image/${data.startsWith("iVBOR") ? "png" : "webp"};base64,${data}`;
        await image.decode();
        const { width, height } = image;
        const canvas = new OffscreenCanvas(width, height);
        const pen = canvas.getContext("2d", { willReadFrequently: true });
        pen.drawImage(image, 0, 0);
        return { width, height, bytes: pen.getImageData(0, 0, width, height).data };
    };
    const [before, after] = [await read(kept), await read(now)];
    const { width, height, bytes } = after;
    if (before.width !== width || before.height !== height) return { share: 1 };
    const isFar = (at) => Math.abs(before.bytes[at] - bytes[at]) > near;
    const [one, other] = [before, after].map((image) => new Uint32Array(image.bytes.buffer));
    const differs = [];
    for (let at = 0; at < other.length; at += 1)
        if (one[at] !== other[at] && (isFar(4 * at) || isFar(4 * at + 1) || isFar(4 * at + 2)))
            differs.push(at);
    const share = differs.length / other.length;
    if (share <= most) return { share };
    const columns = differs.map((at) => at % width).sort((a, b) => a - b);
    const where = [columns[0], Math.floor(differs[0] / width),
        columns.at(-1) + 1, Math.floor(differs.at(-1) / width) + 1];
    for (let at = 0; at < bytes.length; at += 1)
        if (at % 4 < 3) bytes[at] = 160 + bytes[at] / 3;
    for (const at of differs) bytes.set([255, 0, 255], 4 * at);
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    canvas.getContext("2d").putImageData(new ImageData(bytes, width, height), 0, 0);
    return { share, where, marked: canvas.toDataURL().split(",")[1] };
}"""
"""The share of the pixels that differ; if too many: the area that holds them, and a picture of it
in which they are marked."""


def pack(picture: bytes, to: Path) -> None:
    """As WebP, a third of the PNG's size; it loses nothing."""
    from PIL import Image

    to.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").save(to, lossless=True, method=6)


@pytest.fixture(scope="module", autouse=True)
def same_chromium(chromium: Browser) -> None:
    """Letters are drawn by Chromium: pictures of another one differ everywhere."""
    major = chromium.version.partition(".")[0]
    if TAKES_ANEW:
        KEPT.mkdir(exist_ok=True)
        TAKEN_WITH.write_text(f"{major}\n", encoding="utf-8")
    elif (taken := TAKEN_WITH.read_text(encoding="utf-8").strip()) != major:
        pytest.skip(f"the pictures were taken with Chromium {taken}, this is {major}; `make looks`")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A machine without GPU, on which nothing runs; how fast its processor is is the same on all
    that have AVX2."""
    told = {"CUDA_VISIBLE_DEVICES": "", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    with serving(tmp_path_factory.mktemp("looks"), **told) as server:
        yield server


@dataclass(eq=False)
class Screen:
    """A page, and what it has asked for and not got."""

    page: Page
    asked: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._asks)
        self.page.on("requestfinished", self._has_got)
        self.page.on("requestfailed", self._has_got)

    def _asks(self, request: Request) -> None:
        self.asked.append(request)

    def _has_got(self, request: Request) -> None:
        self.asked.remove(request)

    def is_whole(self) -> bool:
        return bool(self.page.evaluate(IS_WHOLE)) and not self.asked


@pytest.fixture
def at(open_page: Callable[..., Page]) -> Callable[..., Screen]:
    """Open an address."""

    def at(path: str, **options: Any) -> Screen:
        page = open_page("about:blank", timezone_id="UTC", locale="en-US", **options)
        screen = Screen(page)
        page.goto(path)
        return screen

    return at


See = Callable[..., None]


@pytest.fixture
def see(chromium: Browser, eventually: Callable[..., Any]) -> Iterator[See]:
    """Take pictures of a screen in both themes and compare them; `covered` is what no two machines
    show alike. A screen that is not yet as it is expected may still get there, until it is whole
    and stands still. All pictures of a test are taken before it fails."""
    wrong: list[str] = []
    judge = chromium.new_page()

    def take(screen: Screen, covered: tuple[Locator, ...]) -> bytes:
        eventually(screen.is_whole)
        return screen.page.screenshot(
            animations="disabled",
            caret="hide",
            mask=[screen.page.locator("time"), *covered],
            mask_color="#888888",
        )

    def see_in(theme: str, screen: Screen, name: str, covered: tuple[Locator, ...]) -> None:
        kept = KEPT / theme / f"{name}.webp"
        before = base64.b64encode(kept.read_bytes()).decode() if kept.exists() else None
        picture, since = b"", 0.0
        while not picture or time.monotonic() - since < STANDS_SECONDS:
            last, picture = picture, take(screen, covered)
            if picture != last:
                since = time.monotonic()
                now = base64.b64encode(picture).decode()
                if not TAKES_ANEW and before:
                    found = judge.evaluate(COMPARE, [before, now, NEAR, SHARE])
                    if found["share"] <= SHARE:
                        return
            screen.page.wait_for_timeout(200)
        if TAKES_ANEW:
            pack(picture, kept)
            return
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"look-{name}-{theme}-now.png"
        path.write_bytes(picture)
        if before is None:
            wrong.append(f"{name}, {theme}: no picture of it is kept; {path} is new")
            return
        if "marked" in found:
            marked = path.with_name(f"look-{name}-{theme}-differs.png")
            marked.write_bytes(base64.b64decode(found["marked"]))
        wrong.append(
            f"{name}, {theme}: {found['share']:.2%} of the picture is another,"
            f" within {found.get('where', 'another size')}; see {path} and {kept}"
        )

    def see(screen: Screen, name: str, *covered: Locator) -> None:
        screen.page.mouse.move(0, 0)
        for theme in THEMES:
            screen.page.emulate_media(color_scheme=theme)
            see_in(theme, screen, name, covered)

    yield see
    judge.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def preset(server: Server, at: Callable[..., Screen]) -> Callable[..., Screen]:
    """A page with a preset's loop open in the editor."""

    def open_preset(name: str, old: str = "", new: str = "", **options: object) -> Screen:
        text = server.get(f"/presets/loops/{name}")["yaml"]
        assert old in text
        screen = at(server.open_loop(text.replace(old, new)), **options)
        expect(screen.page.get_by_role("article").first).to_be_visible()
        expect(screen.page.locator("[data-save]")).to_have_attribute("data-save", "saved")
        return screen

    return open_preset


def test_how_a_loop_is_begun(at: Callable[..., Screen], see: See) -> None:
    screen = at("/loops", arranged=False)
    page = screen.page
    expect(page.get_by_role("article").first).to_be_visible()
    see(screen, "gallery")
    page.get_by_role("button", name="New loop").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    see(screen, "new-loop")
    page.keyboard.type("empty")
    page.keyboard.press("Enter")
    expect(page.get_by_text("An empty loop")).to_be_visible()
    expect(page.get_by_label("Description", exact=True)).to_be_visible()
    expect(page.get_by_text("Not finished")).to_be_visible()
    see(screen, "empty", page.get_by_role("region", name="Hardware and memory"))


def test_how_a_loop_is_composed(preset: Callable[..., Screen], see: See) -> None:
    screen = preset("tango-qwen2.5-7b-8xH200", arranged=False)
    page = screen.page
    expect(page.get_by_role("region", name="About this loop")).to_be_visible()
    expect(page.get_by_role("region", name="Predicted step")).to_be_visible()
    expect(page.get_by_text("No problems")).to_be_visible()
    see(screen, "editor")
    page.get_by_role("article", name=re.compile("^verifier,")).click()
    expect(page.get_by_label("Name of the node")).to_have_value("verifier")
    see(screen, "inspector")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    see(screen, "commands")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1024, "height": 768})
    see(screen, "editor-narrow")


def test_what_is_wrong_and_why(preset: Callable[..., Screen], see: See) -> None:
    screen = preset("grpo-qwen2.5-7b-8xH100", "mini_batch: 256", "mini_batch: 250")
    page = screen.page
    page.get_by_role("tab", name="Problems").click()
    expect(page.get_by_role("button", name="Why?").first).to_be_visible()
    expect(page.get_by_role("region", name="Predicted step")).to_be_visible()
    see(screen, "problems")
    page.get_by_role("button", name="Why?").first.click()
    expect(page.get_by_role("dialog", name="Why?")).to_be_visible()
    see(screen, "why")


def test_where_a_loop_runs(preset: Callable[..., Screen], see: See) -> None:
    screen = preset("genrm-gemma-2-9b-8xH100", arranged=False)
    page = screen.page
    page.get_by_role("button", name="Open hardware").click()
    expect(page.get_by_role("article", name="Suggested placement")).to_contain_text("fits")
    tried = page.get_by_text("tried in")
    see(screen, "hardware", tried)
    page.get_by_role("button", name=re.compile("^solver.generate: ")).first.click()
    formula = page.get_by_role("dialog", name=re.compile("^Formula: "))
    formula.get_by_role("button", name=re.compile("^prompts")).click()
    see(screen, "formula", tried)
    page.keyboard.press("Escape")
    page.get_by_role("slider", name="Memory budget").last.fill("1")
    changes = page.get_by_role("region", name="What the budget changes")
    expect(changes).to_be_visible()
    expect(changes.get_by_text("Looking for settings")).to_have_count(0)
    see(screen, "budget", tried)


def test_what_a_loop_reads_and_how_it_is_judged(preset: Callable[..., Screen], see: See) -> None:
    screen = preset("grpo-two-rewards")
    page = screen.page
    page.get_by_role("tab", name="Data").click()
    rows = page.get_by_role("region", name="Rows").get_by_role("row")
    expect(rows.nth(3)).to_be_visible(timeout=90_000)
    about = page.get_by_role("region", name="About this loop")
    see(screen, "data", page.get_by_role("region", name="Hardware and memory"), about)
    page.get_by_role("link", name="Rewards").click()
    expect(page.get_by_role("button", name="Run preview")).to_be_visible()
    see(screen, "rewards")


def test_how_a_run_is_watched(server: Server, at: Callable[..., Screen], see: See) -> None:
    shutil.unpack_archive(RECORDED, server.runs)
    server.get("/runs")  # looks for new folders
    screen = at("/runs/two-halves")
    page = screen.page
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Samples").click()
    texts = page.get_by_role("region", name="Texts of one prompt")
    expect(texts).to_contain_text("step 100")
    expect(page.get_by_role("region", name="Result")).to_contain_text("How to run it again")
    see(screen, "result")
    page.get_by_text("Charts", exact=True).click()
    expect(page.get_by_role("figure").first).to_contain_text("step 100")
    see(screen, "run")
    page.get_by_text("Replay", exact=True).click()
    page.get_by_role("slider", name="Step that is shown").fill("80")
    expect(page.get_by_test_id("replay-step")).to_have_text("80")
    expect(texts).to_contain_text("step 80")
    see(screen, "replay")
    page.get_by_role("button", name="Report").click()
    expect(page.get_by_role("table", name="Every evaluation")).to_be_visible()
    see(screen, "report")
