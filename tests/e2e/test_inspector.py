"""The settings of a node: what is typed wrong counts until it is mended, and forms come from the
catalog alone."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import Page, Route, expect

from coloop.spec import catalog as catalogs
from coloop.spec.base import Section, Text, Whole, setting
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.modes import MODES
from coloop.spec.nodes import NODE_CLASSES, BaseNode
from coloop.spec.ports import PORTS

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = """\
coloop: 1
name: settings
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 8, top_p: 0.9}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {lr: 3.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges: [problems.rows -> actor.prompts, actor.rollouts -> exact.rollouts,
  exact.scores -> actor.rewards]
schedule: {steps: 3}
"""


def open_node(page: Page, name: str) -> None:
    node = page.get_by_role("article", name=re.compile(rf"^{name},"))
    node.click(position={"x": 40, "y": 12})


def test_a_text_that_is_no_number_is_an_error_until_it_is_mended(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page(server.open_loop(LOOP))
    run = page.get_by_role("button", name="Run", exact=True)
    expect(page.get_by_text("No problems")).to_be_visible()
    open_node(page, "actor")
    field = page.get_by_label("Completions per prompt", exact=True)

    field.fill("abc")
    expect(page.get_by_text("1 error")).to_be_visible()
    expect(page.get_by_text(re.compile("Expected a whole number"))).to_have_count(1)
    open_node(page, "problems")
    expect(field).to_be_hidden()
    open_node(page, "actor")

    expect(field).to_have_value("abc")
    expect(run).to_be_disabled()
    expect(page.get_by_text("1 changed value hidden at this level")).to_be_visible()
    field.fill("8")
    expect(page.get_by_text("No problems")).to_be_visible()
    expect(run).to_be_enabled()


class Depth(Section):
    """How far it looks."""

    steps: Whole = setting(3, ge=1, short="{} deep")
    """Steps that it looks ahead."""


class EchoNode(BaseNode):
    """Says again what it is told."""

    kind: Literal["echo"]
    """Says again what it is told."""
    phrase: Text = setting()
    """What it says."""
    depth: Depth = setting(default_factory=Depth, section="generation")
    """How far it looks."""


@pytest.fixture
def with_echo(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The catalog with a kind of which no TypeScript knows, as Python makes it."""
    text = replace(KIND_TEXTS["template"], title="Echo", template={"phrase": "hello"}, summary=())
    monkeypatch.setitem(KIND_TEXTS, "echo", text)
    monkeypatch.setitem(PORTS, "echo", PORTS["template"])
    monkeypatch.setitem(NODE_CLASSES, "echo", EchoNode)
    online = replace(MODES["online"], kinds=("echo", *MODES["online"].kinds))
    monkeypatch.setitem(MODES, "online", online)
    catalogs._fixed.cache_clear()
    yield copy.deepcopy(catalogs.catalog().model_dump(mode="json"))
    catalogs._fixed.cache_clear()


def test_a_kind_that_only_python_knows_is_added_and_set(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    with_echo: dict[str, Any],
) -> None:
    told = {**server.get("/catalog"), "kinds": with_echo["kinds"], "modes": with_echo["modes"]}
    page = open_page()

    def answer(route: Route) -> None:
        route.fulfill(json=json.loads(json.dumps(told)))

    page.route("**/api/catalog", answer)
    page.goto(server.open_loop(LOOP))
    page.get_by_role("button", name="Echo").first.click()

    settings = page.get_by_role("complementary", name="Settings")
    expect(settings.get_by_text("Echo", exact=True)).to_be_visible()
    settings.get_by_label("Phrase", exact=True).fill("once more")
    expect(settings.get_by_role("button", name=re.compile("^Generation"))).to_contain_text("3 deep")
    settings.get_by_label("Steps", exact=True).fill("5")

    expect(page.get_by_role("article", name=re.compile("Echo"))).to_be_visible()
    text = saved_yaml(page)
    assert "kind: echo" in text
    assert "phrase: once more" in text
    assert "steps: 5" in text
