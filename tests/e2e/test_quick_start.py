"""The main job, as the README promises it: open, run, watch, export, train headless, open that."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(ray_server: "Server") -> "Server":
    """Its runs are on Ray."""
    return ray_server


WARM_UP, RL, EVERY = 12, 4, 2


def shorten(page: Page) -> None:
    """The same loop in less than a minute, by what a user would change in the inspector."""
    page.get_by_role("button", name=re.compile(r"^warm-up [\d,]+ steps")).click()
    page.get_by_label("Steps", exact=True).fill(str(WARM_UP))
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_label("nodes.problems.rows_per_step, Set", exact=True).fill("16")
    page.get_by_role("button", name=re.compile(r"^rl \d+ steps")).click()
    page.get_by_label("Steps", exact=True).fill(str(RL))
    for node, rows in (("problems", 8), ("held_out", 32)):
        page.get_by_role("article", name=f"{node}, Dataset").click()
        page.get_by_label("Rows per step", exact=True).fill(str(rows))
    page.get_by_role("article", name="probe, Evaluate").click()
    page.get_by_label("Every", exact=True).fill(str(EVERY))


def curves(events: list[dict[str, Any]], *names: str) -> list[tuple[object, ...]]:
    """What was measured, by step and node."""
    return [
        (event["step"], event["node"], name, event["metrics"][name])
        for event in events
        if event["type"] == "metrics" and event.get("node")
        for name in names
        if name in event["metrics"]
    ]


def test_the_quick_start_trains_in_the_browser_and_headless_from_its_export(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    watch: Callable[[Page], Callable[[], dict[str, Any]]],
    ink: Callable[[Page, str], int],
    headless: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    server.forget_loops()

    page = open_page("/")
    expect(page.get_by_label("Name of the loop")).to_have_value("grpo-arithmetic")
    shorten(page)
    text = saved_yaml(page)
    assert f"steps: {WARM_UP}" in text
    assert "# The step of the transition depends on the seed" in text

    seen = watch(page)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    run_id = page.url.rsplit("/", 1)[1]
    expect(page.get_by_test_id("run-phase")).to_have_text("rl", timeout=200_000)
    expect(page.get_by_test_id("bottleneck")).to_be_visible()
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=90_000)
    saw = seen()
    assert "actor" in saw["lit"]
    assert len(saw["lit"]) > 1
    assert "actor" in saw["rates"]
    assert len(saw["charts"]["Accuracy"]) > 2, "the curve grows while the run goes on"
    chart = page.get_by_role("figure", name="Accuracy")
    expect(chart).to_contain_text(f"step {WARM_UP + RL}")
    assert ink(page, "Accuracy") > 100

    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export").click()
    exported = tmp_path / downloading.value.suggested_filename
    downloading.value.save_as(exported)
    assert exported.name == "grpo-arithmetic.yaml"
    assert exported.read_text(encoding="utf-8") == text

    assert headless(exported, "--local", run_id="typed")["state"] == "finished"

    page.get_by_role("link", name="Runs").click()
    page.get_by_role("row", name="typed").get_by_role("link").click()
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Result")).to_contain_text("probe.accuracy")
    page.get_by_text("Charts", exact=True).click()
    expect(page.get_by_role("figure", name="Accuracy")).to_contain_text(f"step {WARM_UP + RL}")
    page.get_by_role("tab", name="Samples").click()
    expect(page.get_by_role("region", name="Texts of one prompt")).to_contain_text("+")

    watched = curves(server.events(run_id), "loss", "accuracy", "reward/mean")
    typed = curves(server.events("typed"), "loss", "accuracy", "reward/mean")
    assert [one[:3] for one in watched] == [one[:3] for one in typed]
    assert [one[3] for one in watched] == pytest.approx([one[3] for one in typed], abs=1e-3)
