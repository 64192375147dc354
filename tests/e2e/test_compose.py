"""From an empty canvas to a run, by form only: what a new user would compose first."""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error, Locator, Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

STEPS, PROMPTS, ANSWERS = 2, 4, 2


def begin(page: Page, name: str, mode: str = "Online") -> None:
    """A new loop without nodes, by the keyboard."""
    page.get_by_role("button", name="New loop").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type(name)
    page.get_by_role("radio", name=re.compile(f"^{mode} .")).check()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of the loop")).to_have_value(name)
    expect(page.get_by_text("An empty loop")).to_be_visible()


def node(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=re.compile(rf"^{name},"))


def choose(page: Page, label: str, option: str) -> None:
    """What a list offers; its options may have a line of help below."""
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=re.compile(rf"^{re.escape(option)}")).first.click()
    expect(page.get_by_role("listbox")).to_be_hidden()


def unfold(page: Page, part: str) -> None:
    """Open a part of the settings; one that was opened by hand stays open for other nodes. One in
    which a problem is found opens by itself: a press in that moment finds none to open, or closes
    it."""
    name = re.compile(f"^{part} ?")
    shut = page.get_by_role("button", name=name, expanded=False)
    opened = page.get_by_role("button", name=name, expanded=True)
    expect(shut.or_(opened).first).to_be_visible()
    for _ in range(3):
        if opened.count() > 0:
            return
        with suppress(Error):
            shut.first.click(timeout=2_000)
    expect(opened.first).to_be_visible()


def call(page: Page, name: str) -> None:
    page.get_by_label("Name of the node").fill(name)
    page.keyboard.press("Enter")
    expect(node(page, name)).to_be_visible()


def leave(page: Page) -> None:
    """Press the empty canvas: nothing is chosen, and no field has the keys."""
    box = page.get_by_role("region", name="Graph").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 8, box["y"] + 8)


def add(page: Page, words: str, name: str) -> None:
    """By the keyboard: the first that is found."""
    leave(page)
    page.keyboard.press("a")
    expect(page.get_by_placeholder("Add a node")).to_be_focused()
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    expect(page.get_by_placeholder("Add a node")).to_be_hidden()
    call(page, name)


def connect(page: Page, *edges: str) -> None:
    for edge in edges:
        choose(page, "Connect to", edge)
        page.get_by_role("button", name="Connect", exact=True).click()


def compose(page: Page) -> None:
    graph = page.get_by_role("region", name="Graph")
    page.get_by_role("button", name="Dataset").drag_to(graph, target_position={"x": 160, "y": 120})
    dropped, canvas = node(page, "dataset").bounding_box(), graph.bounding_box()
    assert dropped is not None
    assert canvas is not None
    assert dropped["x"] < canvas["x"] + 160 < dropped["x"] + dropped["width"]
    assert dropped["y"] < canvas["y"] + 120 < dropped["y"] + dropped["height"]
    call(page, "problems")
    choose(page, "Task", "countdown")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))

    add(page, "grpo", "actor")
    page.get_by_label("Completions per prompt", exact=True).fill(str(ANSWERS))
    page.get_by_label("Max new tokens", exact=True).fill("4")
    page.get_by_role("button", name="Set KL").click()
    connect(page, "problems.rows → actor.prompts")

    add(page, "reward", "right")
    choose(page, "Reward name", "task")
    connect(page, "actor.rollouts → right.rollouts", "right.scores → actor.rewards")

    add(page, "reward", "short")
    choose(page, "Source, type", "python")
    expect(page.get_by_label("Code", exact=True)).to_contain_text("def reward(prompts")
    connect(page, "actor.rollouts → short.rollouts", "short.scores → actor.rewards")

    add(page, "kl", "start")
    connect(page, "actor.rollouts → start.rollouts", "start.log_probs → actor.reference")

    add(page, "dataset", "held_out")
    choose(page, "Task", "countdown")
    choose(page, "Split", "test")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))

    add(page, "probe", "probe")
    connect(page, "held_out.rows → probe.rows", "right.scores → probe.scores")
    page.get_by_label("Every", exact=True).fill("1")

    leave(page)
    page.get_by_label("Steps", exact=True).fill(str(STEPS))


def run_to_its_end(page: Page) -> str:
    """Runs the loop that is open; the run's id."""
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=200_000)
    return page.url.rsplit("/", 1)[1]


def test_a_loop_is_composed_by_form_from_an_empty_canvas_and_runs(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
) -> None:
    page = open_page("/loops")
    begin(page, "by-form")

    compose(page)

    expect(page.get_by_text("No problems")).to_be_visible()
    text = saved_yaml(page)
    assert "task: countdown" in text
    assert "split: test" in text
    first = run_to_its_end(page)

    for name in ("problems", "actor", "right", "short", "start", "probe"):
        expect(node(page, name)).to_contain_text(re.compile(r"\d"))
    learned = [event for event in server.events(first) if event["type"] == "metrics"]
    assert any("accuracy" in event["metrics"] for event in learned), "the probe measured"
    kl = [event["metrics"]["kl"] for event in learned if "kl" in event["metrics"]]
    assert len(kl) == STEPS, "the reference was read at every step"

    page.get_by_role("button", name="Run again").click()
    page.get_by_role("menuitem", name=re.compile("another seed")).click()
    page.wait_for_url(re.compile(rf"/runs/(?!{first}$)"))
    second = page.url.rsplit("/", 1)[1]
    server.end_runs()
    seeds = {server.get(f"/runs/{run}/spec")["spec"]["run"]["seed"] for run in (first, second)}
    assert len(seeds) == 2


def compose_ppo(page: Page) -> None:
    """PPO as it began: a policy, a critic, a reward model and a reference."""
    add(page, "dataset", "preferences")
    choose(page, "Task", "preference")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))

    add(page, "ppo", "policy")
    choose(page, "Algorithm name, Rewards, Algorithm", "ppo")
    page.get_by_role("button", name="Set KL").click()
    page.get_by_label("Completions per prompt", exact=True).fill("1")
    page.get_by_label("Max new tokens", exact=True).fill("8")
    connect(page, "preferences.rows → policy.prompts")

    add(page, "reward", "rm")
    choose(page, "Source, type", "model")
    unfold(page, "Model")
    choose(page, "Model, type", "copy")
    choose(page, "Of", "policy")
    connect(page, "preferences.pairs → rm.pairs", "policy.rollouts → rm.rollouts")
    connect(page, "rm.scores → policy.rewards")
    page.get_by_role("button", name="Set Training").click()
    page.get_by_role("tab", name="Problems").click()
    page.get_by_role("button", name="Add bradley_terry for pairs").first.click()

    add(page, "reference", "start")
    connect(page, "policy.rollouts → start.rollouts", "start.log_probs → policy.reference")

    add(page, "critic", "critic")
    unfold(page, "Model")
    choose(page, "Model, type", "copy")
    choose(page, "Of", "rm")
    connect(page, "policy.rollouts → critic.rollouts", "critic.values → policy.values")
    connect(page, "policy.returns → critic.returns")

    leave(page)
    page.get_by_label("Steps", exact=True).fill(str(STEPS))


def test_the_four_models_of_ppo_are_composed_from_an_empty_canvas_and_seen_at_work(
    server: "Server",
    open_page: Callable[..., Page],
    watch: Callable[[Page], Callable[[], dict[str, Any]]],
    fits: Callable[[Page], None],
) -> None:
    page = open_page("/loops")
    begin(page, "four-models")

    compose_ppo(page)

    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    seen = watch(page)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    expect(page.get_by_text("finished", exact=True)).to_be_visible(timeout=200_000)
    models = {"policy", "rm", "start", "critic"}
    assert models <= set(seen()["lit"])
    for name in models:
        expect(node(page, name)).to_contain_text(re.compile(r"\d"))
    events = server.events(page.url.rsplit("/", 1)[1])
    metrics = [event for event in events if event["type"] == "metrics"]
    losses = Counter(event["node"] for event in metrics if "loss" in event["metrics"])
    assert losses == {"policy": STEPS, "rm": STEPS, "critic": STEPS}
    assert any("kl" in event["metrics"] for event in metrics), "the reference was read"
    fits(page)


def test_an_offline_loop_is_composed_by_its_mode_and_runs(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
) -> None:
    page = open_page("/loops")
    begin(page, "from-pairs", mode="Offline")
    expect(page.get_by_label("Mode of the loop")).to_have_text("Offline")
    expect(page.get_by_role("button", name="Critic")).to_be_hidden()

    add(page, "dataset", "preferences")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))
    add(page, "policy", "policy")
    expect(page.get_by_text("Settings of other modes are left out.")).to_be_visible()
    connect(page, "preferences.pairs → policy.pairs")
    add(page, "kl", "start")
    connect(page, "preferences.pairs → start.pairs", "start.log_probs → policy.reference")
    leave(page)
    page.get_by_label("Steps", exact=True).fill(str(STEPS))

    expect(page.get_by_text("No problems")).to_be_visible()
    text = saved_yaml(page)
    assert "mode: offline" in text
    assert "name: dpo" in text
    run = run_to_its_end(page)
    told = [one["metrics"] for one in server.events(run) if one["type"] == "metrics"]
    assert sum("loss" in metrics for metrics in told) == STEPS, "it learned at every step"


def test_a_reward_model_is_composed_by_its_mode_runs_and_is_exported(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
) -> None:
    page = open_page("/loops")
    begin(page, "from-choices", mode="Reward modeling")
    expect(page.get_by_label("Mode of the loop")).to_have_text("Reward modeling")

    add(page, "dataset", "preferences")
    choose(page, "Task", "preference")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))
    add(page, "reward", "rm")
    expect(page.get_by_label("Source, type")).to_have_text("model")
    connect(page, "preferences.pairs → rm.pairs")
    leave(page)
    page.get_by_label("Steps", exact=True).fill(str(STEPS))

    expect(page.get_by_text("No problems")).to_be_visible()
    text = saved_yaml(page)
    assert "mode: reward_modeling" in text
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert Path(download.value.path()).read_text(encoding="utf-8") == text
    run = run_to_its_end(page)
    told = [one["metrics"] for one in server.events(run) if one["type"] == "metrics"]
    assert sum("loss" in metrics for metrics in told) == STEPS, "it learned at every step"
