"""Loops of another shape than the quick start, from the browser and headless."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(ray_server: "Server") -> "Server":
    """Its runs are on Ray."""
    return ray_server


LOOPS = Path(__file__).resolve().parents[2] / "presets" / "loops"

SHORT: Mapping[str, Mapping[str, object]] = {
    "two-halves": {
        "nodes.sums.rows_per_step": 6,
        "nodes.held_out.rows_per_step": 16,
        "nodes.probe.every": 4,
        "schedule.phases.0.steps": 12,
        "schedule.phases.1.steps": 8,
        "schedule.triggers": [],
    },
    "spin": {
        "nodes.gold.source.size": 64,
        "nodes.gold.rows_per_step": 16,
        "nodes.held_out.rows_per_step": 16,
        "nodes.iterations.capacity": 64,
        "nodes.iterations.rows_per_step": 16,
        "nodes.probe.every": 4,
        "schedule.phases.0.steps": 4,
        "schedule.phases.1.repeat": 2,
        "schedule.triggers": [],
    },
    "grpo-two-pools": {
        "nodes.problems.rows_per_step": 24,
        "nodes.held_out.rows_per_step": 16,
        "nodes.probe.every": 100,
        "schedule.phases.0": {"name": "warm-up", "steps": 2, "learn": ["actor.demonstrations"]},
        "schedule.phases.1.steps": 16,
        "schedule.triggers": [],
    },
}


def short(name: str) -> str:
    """The preset with fewer rows and steps, comments and all else as they are."""
    changes = [Change(op="set", path=path, value=value) for path, value in SHORT[name].items()]
    return patch((LOOPS / f"{name}.yaml").read_text(encoding="utf-8"), changes)


def run_in_browser(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=200_000)


def test_two_halves_shows_two_learners_alive_at_once_each_with_its_own_curve(
    server: "Server",
    open_page: Callable[..., Page],
    watch: Callable[[Page], Callable[[], dict[str, Any]]],
    ink: Callable[[Page, str], int],
) -> None:
    page = open_page(server.open_loop(short("two-halves")))
    seen = watch(page)

    run_in_browser(page)

    saw = seen()
    assert any({"tens", "units"} <= set(moment.split()) for moment in saw["together"])
    assert saw["phases"][-2:] == ["warm-up", "together"]
    for title in ("Loss", "Reward"):
        chart = page.get_by_role("figure", name=title, exact=False).first
        expect(chart).to_contain_text("tens")
        expect(chart).to_contain_text("units")
        assert len(saw["charts"][title]) > 2
    loss = [
        (event["node"], event["metrics"]["loss"])
        for event in server.events(page.url.rsplit("/", 1)[1])
        if event["type"] == "metrics" and "loss" in event["metrics"]
    ]
    tens, units = ([value for node, value in loss if node == one] for one in ("tens", "units"))
    assert len(tens) == len(units) == 20
    assert tens != units


@pytest.mark.slow
def test_spin_runs_from_the_browser_through_its_repeated_phases(
    server: "Server",
    open_page: Callable[..., Page],
    watch: Callable[[Page], Callable[[], dict[str, Any]]],
) -> None:
    page = open_page(server.open_loop(short("spin")))
    seen = watch(page)

    run_in_browser(page)

    saw = seen()
    assert {"opponent", "iterations", "policy"} <= set(saw["lit"])
    phases = [
        (event["phase"], event["round"])
        for event in server.events(page.url.rsplit("/", 1)[1])
        if event["type"] == "phase" and event["state"] == "started"
    ]
    assert phases == [("warm-up", 1), ("collect", 1), ("train", 1), ("collect", 2), ("train", 2)]


BOTH_AT_WORK = """() => {
    const progress = document.querySelector('[aria-label="Progress"]')?.textContent ?? "";
    return progress.includes("actor.generate") && progress.includes("actor.learn");
}"""


def test_two_pools_write_and_learn_at_once_and_the_timeline_shows_it(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page(server.open_loop(short("grpo-two-pools")))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")

    page.wait_for_function(BOTH_AT_WORK, timeout=200_000)
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=200_000)

    events = server.events(page.url.rsplit("/", 1)[1])
    spans: dict[str, dict[int, list[int]]] = {"actor.generate": {}, "actor.learn": {}}
    pools = {}
    for event in events:
        if event.get("stage") in spans and "evaluation" not in event:
            spans[event["stage"]].setdefault(event["step"], []).append(event["seq"])
            pools[event["stage"]] = event.get("pool")
    written, learned = spans["actor.generate"], spans["actor.learn"]
    ahead = [step for step in written if step - 1 in learned and step > 3]
    assert sum(written[step][0] < learned[step - 1][1] for step in ahead) > len(ahead) / 2
    assert pools == {"actor.generate": "write", "actor.learn": "train"}
    late = [
        event["metrics"]["staleness/max"]
        for event in events
        if event["type"] == "metrics" and "staleness/max" in event["metrics"]
    ]
    assert max(late) == 1


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("spin", "local"),
        pytest.param("spin", "ray", marks=pytest.mark.slow),
        pytest.param("two-halves", "local", marks=pytest.mark.slow),
        pytest.param("two-halves", "ray", marks=pytest.mark.slow),
    ],
)
def test_the_same_loop_runs_headless_and_opens_in_the_browser(
    name: str,
    cluster: str,
    open_page: Callable[..., Page],
    headless: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    spec = tmp_path / f"{name}.yaml"
    spec.write_text(short(name), encoding="utf-8")

    ended = headless(spec, *(["--local"] if cluster == "local" else []), run_id=f"{name}-{cluster}")

    assert ended["state"] == "finished"
    page = open_page(f"/runs/{name}-{cluster}")
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    page.get_by_text("Charts", exact=True).click()
    expect(page.get_by_role("figure", name="Accuracy")).to_contain_text("probe")
