"""The README's pictures, taken from the real page: `make pictures`.

Three stills and a short animation: two learners that are taught by one joint reward, at work. The
run is that of the preset, shorter.
"""

import io
import re
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.conftest import BROWSERS, CHROMIUM_OPTIONS
from tests.e2e.conftest import (
    FINAL,
    PAGE,
    ROOT,
    Server,
    environment,
    signed_in,
)

from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

DOCS = ROOT / "docs"
SMALL = (960, 600)
FRAMES = 40
FRAME_MS = 400
STEPS = {"schedule.phases.0.steps": 400, "schedule.phases.1.steps": 150}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(data=Path(folder) / "data", environment=environment(PAGE))
        server.start()
        found = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=found, args=[*CHROMIUM_OPTIONS])
        try:
            editor(server, browser)
            hardware(server, browser)
            run(server, browser)
        finally:
            browser.close()
            server.stop()


def editor(server: Server, browser: Browser) -> None:
    page = signed_in(browser, server).new_page()
    page.goto(server.open_loop(preset(server, "tango-qwen2.5-7b-8xH200")))
    page.get_by_role("article", name=re.compile("^generator,")).click()
    expect(page.get_by_label("Name of the node")).to_have_value("generator")
    keep(page, "editor")


def hardware(server: Server, browser: Browser) -> None:
    page = signed_in(browser, server).new_page()
    page.goto(server.open_loop(preset(server, "grpo-qwen2.5-7b-8xH100")))
    expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
    page.get_by_role("button", name="Open hardware").click()
    page.get_by_role("slider", name="Memory budget").last.fill("1")
    expect(page.get_by_role("region", name="What the budget changes")).to_contain_text("off")
    keep(page, "hardware")


def run(server: Server, browser: Browser) -> None:
    """The run in frames as it goes on, each of as many steps; then its end, in the dark."""
    cuts = [Change(op="set", path=path, value=value) for path, value in STEPS.items()]
    id_ = server.post("/runs", {"yaml": patch(preset(server, "two-halves"), cuts)})["id"]
    page = signed_in(browser, server, reduced_motion="no-preference").new_page()
    page.goto(f"/runs/{id_}")
    frames: list[Image.Image] = []
    between = sum(STEPS.values()) / FRAMES
    while (now := server.get(f"/runs/{id_}"))["state"] not in FINAL:
        if (now["step"] or 0) >= (len(frames) + 1) * between:
            frames.append(shot(page))
        page.wait_for_timeout(100)
    assert now["state"] == "finished", now
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    frames += [shot(page)] * 5
    small = [frame.resize(SMALL, Image.Resampling.LANCZOS) for frame in frames]
    small[0].save(
        DOCS / "co-training.webp",
        save_all=True,
        append_images=small[1:],
        duration=FRAME_MS,
        loop=0,
        quality=70,
        method=6,
    )
    dark = signed_in(browser, server, color_scheme="dark").new_page()
    dark.goto(f"/runs/{id_}")
    expect(dark.get_by_role("figure").first).to_contain_text("step")
    keep(dark, "run")


def preset(server: Server, name: str) -> str:
    text: str = server.get(f"/presets/loops/{name}")["yaml"]
    return text


def shot(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def keep(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)
    shot(page).save(DOCS / f"{name}.webp", lossless=True, method=6)


if __name__ == "__main__":
    main()
