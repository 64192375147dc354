"""What each screen looks like: pictures in both themes against those that a person has looked at.

A picture may differ in few pixels and little (another processor rounds another way); the rest is a
change of the look, which somebody is to see: `make looks` takes all pictures anew, and they are
read like code before they are committed. A failed test leaves the new picture, and one in which the
pixels that differ are marked. What says a time of day or a speed of this machine is covered.
"""

import base64
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.conftest import SHOTS, THEMES

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HERE = Path(__file__).parent
KEPT = HERE / "looks"
TAKEN_WITH = KEPT / "chromium.txt"
RECORDED = HERE / "recorded" / "two-halves.tar.xz"
"""A run of the preset of that name, 60 and 40 steps, with the texts of its last steps."""
TAKES_ANEW = os.environ.get("COLOOP_LOOKS") == "take"
NEAR = 24
"""Of 255: by how much a colour of a pixel may differ and still be the same."""
SHARE = 0.002
"""Of all pixels: as many may differ, a word and a half of text."""

COMPARE = """async ([kept, now, near]) => {
    const read = async (data) => {
        const image = new Image();
        image.src = `data:image/${data.startsWith("iVBOR") ? "png" : "webp"};base64,${data}`;
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.width = image.width;
        canvas.height = image.height;
        const pen = canvas.getContext("2d");
        pen.drawImage(image, 0, 0);
        return [canvas, pen, pen.getImageData(0, 0, image.width, image.height)];
    };
    const [, , before] = await read(kept);
    const [canvas, pen, after] = await read(now);
    if (before.width !== after.width || before.height !== after.height) return [1, now];
    let differing = 0;
    for (let at = 0; at < after.data.length; at += 4) {
        const isFar = (c) => Math.abs(before.data[at + c] - after.data[at + c]) > near;
        const isOther = [0, 1, 2].some(isFar);
        if (isOther) differing += 1;
        const ink = isOther ? [255, 0, 255] : [0, 1, 2].map((c) => 160 + after.data[at + c] / 3);
        after.data.set(ink, at);
    }
    pen.putImageData(after, 0, 0);
    return [differing / (before.width * before.height), canvas.toDataURL().split(",")[1]];
}"""

See = Callable[..., None]


@pytest.fixture(params=THEMES)
def theme(request: pytest.FixtureRequest, chromium: Browser) -> str:
    """Letters are drawn by Chromium: pictures of another one differ everywhere."""
    major = chromium.version.partition(".")[0]
    if TAKES_ANEW:
        KEPT.mkdir(exist_ok=True)
        TAKEN_WITH.write_text(f"{major}\n", encoding="utf-8")
    elif (taken := TAKEN_WITH.read_text(encoding="utf-8").strip()) != major:
        pytest.skip(f"the pictures were taken with Chromium {taken}, this is {major}; `make looks`")
    return str(request.param)


@pytest.fixture
def at(theme: str, open_page: Callable[..., Page]) -> Callable[..., Page]:
    """Open an address in this theme."""
    return lambda path, **options: open_page(
        path, color_scheme=theme, timezone_id="UTC", locale="en-US", **options
    )


@pytest.fixture
def see(theme: str, chromium: Browser) -> Iterator[See]:
    """Take a picture of a page that stands still and compare it; `covered` is what no two machines
    show alike. All pictures of a test are taken before it fails."""
    wrong: list[str] = []
    judge = chromium.new_page()

    def see(page: Page, name: str, *covered: Locator) -> None:
        page.mouse.move(0, 0)
        page.wait_for_load_state("networkidle")
        page.evaluate("document.fonts.ready")
        picture = page.screenshot(
            animations="disabled",
            caret="hide",
            mask=[page.locator("time"), *covered],
            mask_color="#888888",
        )
        data = base64.b64encode(picture).decode()
        kept = KEPT / theme / f"{name}.webp"
        if TAKES_ANEW:
            kept.parent.mkdir(parents=True, exist_ok=True)
            pack(picture, kept)
            return
        if not kept.exists():
            wrong.append(f"{name}: there is no picture of it; `make looks` takes one")
            return
        before = base64.b64encode(kept.read_bytes()).decode()
        share, marked = judge.evaluate(COMPARE, [before, data, NEAR])
        if share > SHARE:
            SHOTS.mkdir(parents=True, exist_ok=True)
            for kind, content in (("now", picture), ("differs", base64.b64decode(marked))):
                (SHOTS / f"look-{name}-{theme}-{kind}.png").write_bytes(content)
            wrong.append(f"{name}: {share:.2%} of the picture is another")

    yield see
    judge.close()
    assert wrong == []


@pytest.fixture(scope="module")
def recorded(server: "Server") -> str:
    """The address of a run that was recorded."""
    with tarfile.open(RECORDED) as packed:
        packed.extractall(server.runs, filter="data")
    run = server.post("/runs/import", {"path": str(server.runs / "two-halves")})
    return f"/runs/{run['id']}"


@pytest.fixture
def preset(server: "Server", at: Callable[..., Page]) -> Callable[..., Page]:
    """A page with a preset's loop open in the editor."""

    def open_preset(name: str, old: str = "", new: str = "", **options: object) -> Page:
        text = server.get(f"/presets/loops/{name}")["yaml"]
        assert old in text
        page = at(server.open_loop(text.replace(old, new)), **options)
        expect(page.get_by_role("article").first).to_be_visible()
        expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
        return page

    return open_preset


def pack(picture: bytes, to: Path) -> None:
    """As WebP, a third of the PNG's size; it loses nothing."""
    from PIL import Image

    Image.open(io.BytesIO(picture)).convert("RGB").save(to, lossless=True, method=6)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=re.compile(rf"^{name},"))


def test_how_a_loop_is_begun(server: "Server", at: Callable[..., Page], see: See) -> None:
    server.forget_loops()
    page = at("/loops", arranged=False)
    expect(page.get_by_role("article").first).to_be_visible()
    see(page, "gallery")
    page.get_by_role("button", name="New loop").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    see(page, "new-loop")
    page.keyboard.type("empty")
    page.keyboard.press("Enter")
    expect(page.get_by_text("An empty loop")).to_be_visible()
    expect(page.get_by_label("Description", exact=True)).to_be_visible()
    see(page, "empty", page.get_by_role("region", name="Hardware and memory"))


def test_how_a_loop_is_composed(preset: Callable[..., Page], see: See) -> None:
    page = preset("tango-qwen2.5-7b-8xH200", arranged=False)
    expect(page.get_by_role("region", name="About this loop")).to_be_visible()
    expect(page.get_by_role("region", name="Predicted step")).to_be_visible()
    expect(page.get_by_text("No problems")).to_be_visible()
    see(page, "editor")
    card(page, "verifier").click()
    expect(page.get_by_label("Name of the node")).to_have_value("verifier")
    see(page, "inspector")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    see(page, "commands")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1024, "height": 768})
    see(page, "editor-narrow")


def test_what_is_wrong_and_why(preset: Callable[..., Page], see: See) -> None:
    page = preset("grpo-qwen2.5-7b-8xH100", "mini_batch: 256", "mini_batch: 250")
    page.get_by_role("tab", name="Problems").click()
    expect(page.get_by_role("button", name="Why?").first).to_be_visible()
    see(page, "problems")
    page.get_by_role("button", name="Why?").first.click()
    expect(page.get_by_role("dialog", name="Why?")).to_be_visible()
    see(page, "why")


def test_where_a_loop_runs(preset: Callable[..., Page], see: See) -> None:
    page = preset("genrm-gemma-2-9b-8xH100", arranged=False)
    page.get_by_role("button", name="Open hardware").click()
    expect(page.get_by_role("article", name="Suggested placement")).to_contain_text("fits")
    tried = page.get_by_text("tried in")
    see(page, "hardware", tried)
    page.get_by_role("slider", name="Memory budget").last.fill("1")
    changes = page.get_by_role("region", name="What the budget changes")
    expect(changes).to_be_visible()
    expect(changes.get_by_text("Looking for settings")).to_have_count(0)
    see(page, "budget", tried)


def test_what_a_loop_reads_and_how_it_is_judged(preset: Callable[..., Page], see: See) -> None:
    page = preset("grpo-two-rewards")
    page.get_by_role("tab", name="Data").click()
    expect(page.get_by_role("region", name="Rows").get_by_role("row").nth(3)).to_be_visible(
        timeout=90_000
    )
    about = page.get_by_role("region", name="About this loop")
    see(page, "data", page.get_by_role("region", name="Hardware and memory"), about)
    page.get_by_role("link", name="Rewards").click()
    expect(page.get_by_role("button", name="Run preview")).to_be_visible()
    see(page, "rewards")


def test_how_a_run_is_watched(recorded: str, at: Callable[..., Page], see: See) -> None:
    page = at(recorded)
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    expect(page.get_by_role("figure").first).to_contain_text("step 100")
    page.get_by_role("tab", name="Samples").click()
    expect(page.get_by_role("region", name="Texts of one prompt")).to_contain_text("step 100")
    see(page, "run")
    page.get_by_role("button", name="Report").click()
    expect(page.get_by_role("dialog").get_by_role("row").nth(3)).to_be_visible()
    see(page, "report")
    page.keyboard.press("Escape")
    page.get_by_text("Replay", exact=True).click()
    page.get_by_role("slider", name="Step that is shown").fill("80")
    expect(page.get_by_test_id("replay-step")).to_have_text("80")
    expect(page.get_by_role("region", name="Texts of one prompt")).to_contain_text("step 80")
    see(page, "replay")
