"""A judge by URL, composed by form only, that a server on this machine answers."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import serving as serving_page
from tests.e2e.test_compose import (
    add,
    begin,
    choose,
    connect,
    leave,
    node,
    run_to_its_end,
    unfold,
)
from tests.engine.chat_service import judged_by, prompt_of
from tests.engine.web_service import WebService, serving
from tests.forked import drivers

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

STEPS, PROMPTS, ANSWERS = 2, 2, 2
CRITERIA = {"right": "the result is right", "short": "there is no more than the result"}


def rated(text: str) -> str:
    """The verdict of the server: a longer question is answered better."""
    return json.dumps({"right": len(text) % 11, "short": 5})


@pytest.fixture(scope="module")
def judge() -> Iterator[WebService]:
    with serving(judged_by(rated)) as web:
        yield web


@pytest.fixture(scope="module")
def server(judge: WebService, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Server"]:
    """A service whose runs may call the judge."""
    folder = tmp_path_factory.mktemp("judged")
    with TemporaryDirectory() as sockets, drivers(Path(sockets)) as driver:
        told = {
            "COLOOP_LAUNCHER": "process",
            "COLOOP_DRIVER": json.dumps(driver),
            "COLOOP_ALLOWED_REMOTES": judge.host,
        }
        with serving_page(folder, **told) as server:
            yield server


def compose_solver(page: Page) -> None:
    add(page, "dataset", "problems")
    choose(page, "Task", "arithmetic")
    page.get_by_label("Rows per step", exact=True).fill(str(PROMPTS))

    add(page, "grpo", "solver")
    page.get_by_label("Completions per prompt", exact=True).fill(str(ANSWERS))
    page.get_by_label("Max new tokens", exact=True).fill("4")
    connect(page, "problems.rows → solver.prompts")


def compose_judge(page: Page, url: str) -> None:
    add(page, "verifier", "critic")
    choose(page, "Method", "generative")
    unfold(page, "Generation")
    choose(page, "Engine", "chat")
    page.get_by_role("button", name="Set Chat").click()
    page.get_by_label("URL, Chat, Rollout", exact=True).fill(url)
    page.get_by_label("Name of the model", exact=True).fill("judge-1")

    unfold(page, "Reading")
    page.get_by_label("Text", exact=True).fill(
        "{{ prompt }} {{ completion }}\n{{ criteria }}\n{{ answer_format }}"
    )
    for number, (name, text) in enumerate(CRITERIA.items(), 1):
        page.get_by_role("button", name="Add to Rubric").click()
        place = f"Criterion, {number}, Rubric, Read"
        page.get_by_label(f"Name, {place}", exact=True).fill(name)
        page.get_by_label(f"Text, {place}", exact=True).fill(text)
    connect(page, "solver.rollouts → critic.rollouts", "critic.scores → solver.rewards")
    page.get_by_role("tab", name="Problems").click()
    page.get_by_role("button", name="Add aggregate: mean").first.click()


def test_a_judge_by_url_is_composed_by_form_and_judges(
    server: "Server",
    judge: WebService,
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    fits: Callable[[Page], None],
    violations: Callable[[Page], list[str]],
) -> None:
    page = open_page("/loops", bypass_csp=True)
    begin(page, "judged-by-url")
    compose_solver(page)
    compose_judge(page, f"http://{judge.host}/v1")

    # What a model on another machine has no use for is not offered, at any level.
    page.get_by_role("radiogroup", name="Level of detail").get_by_text("Expert").click()
    expect(page.get_by_label("Top k", exact=True)).to_be_visible()
    for name in ("Max num seqs", "Pool of generation", "On sync"):
        expect(page.get_by_label(name, exact=True)).to_have_count(0)
    for section in ("Model", "Learning"):
        expect(page.get_by_role("button", name=re.compile(f"^{section}( |$)"))).to_have_count(0)
    page.get_by_role("radiogroup", name="Level of detail").get_by_text("Simple").click()
    expect(node(page, "critic")).to_contain_text("judge-1")
    fits(page)
    assert violations(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})

    leave(page)
    page.get_by_label("Steps", exact=True).fill(str(STEPS))
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    text = saved_yaml(page)
    assert "engine: chat" in text
    assert "aggregate: mean" in text
    run = run_to_its_end(page)

    events = server.events(run)
    metrics = [e["metrics"] for e in events if e["type"] == "metrics" and e.get("node") == "critic"]
    assert [one["service/requests"] for one in metrics] == [PROMPTS * ANSWERS] * STEPS
    assert [one["rubric/short"] for one in metrics] == [5.0] * STEPS
    assert all(one["parse/none"] == 0 for one in metrics)
    asked = prompt_of(judge.asked[-1])
    assert "right: the result is right\nshort: there is no more than the result" in asked
    page.get_by_role("tab", name="Samples").click()
    critique = page.get_by_role("region", name=re.compile("^critic, on solver"))
    expect(critique).to_contain_text('"short": 5')
    expect(critique).to_contain_text("critic.short 5")
