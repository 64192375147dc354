"""What a loop needs is known before a GPU is touched: from the hardware to the formula behind a
number."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

LOOP = """\
coloop: 1
name: larger
nodes:
  questions:
    kind: dataset
    source: {type: task, task: countdown}
    rows_per_step: 128
  actor:
    kind: actor
    pool: learning
    model: {type: pretrained, path: Qwen/Qwen2.5-7B}
    rollout:
      {engine: vllm, pool: writing, completions_per_prompt: 8, max_new_tokens: 1024,
       expected_tokens: 300}
    algorithm: {name: grpo, kl: {coefficient: 0.001}}
    training: {optimizer: {name: adamw, lr: 1.0e-6}}
  reference: {kind: reference, pool: learning, model: {type: pretrained, path: Qwen/Qwen2.5-7B}}
  exact: {kind: reward, source: {type: builtin, name: task}}
edges:
  - questions.rows -> actor.prompts
  - actor.rollouts -> reference.rollouts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
  - reference.log_probs -> actor.reference
schedule: {phases: [{name: rl, steps: 200, learn: [actor.rewards]}]}
hardware: {preset: 8xA100-80, pools: {learning: {gpus: 4}, writing: {gpus: 4}}}
"""
LARGE = "Qwen/Qwen2.5-32B"


@pytest.fixture
def editor(server: "Server", open_page: Callable[..., Page]) -> Page:
    """A page with the loop open in the editor."""
    page = open_page(server.open_loop(LOOP), bypass_csp=True)
    expect(page.get_by_role("article").first).to_be_visible()
    expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
    return page


def _choose_hardware(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile("^Hardware: ")).click()
    page.get_by_placeholder("Find hardware").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"Hardware: {name}")).to_be_visible()


def _choose_model(page: Page, node: str, model: str) -> None:
    page.get_by_role("article", name=re.compile(f"^{node},")).click()
    settings = page.get_by_role("complementary", name="Settings")
    group = settings.get_by_role("button", name=re.compile("^Model"))
    if group.get_attribute("aria-expanded") == "false":
        group.click()
    path = settings.get_by_role("textbox", name="Path")
    path.fill(model)
    path.press("Enter")


def _formula(page: Page, title: str) -> Locator:
    return page.get_by_role("dialog", name=f"Formula: {title}")


def _seconds(text: str) -> float:
    found = re.search(r"([\d.]+) s\b", text)
    assert found is not None, text
    return float(found[1])


def test_a_placement_beside_ones_own_and_the_formula_behind_a_number(
    editor: Page, saved_yaml: Callable[[Page], str], violations: Callable[[Page], list[str]]
) -> None:
    page = editor
    _choose_hardware(page, "8xH100")
    text = saved_yaml(page)
    page.get_by_role("button", name="Open hardware").click()

    # Both placements say step time and memory; the faster one is taken by a click, and undone.
    yours = page.get_by_role("article", name="Yours placement")
    suggested = page.get_by_role("article", name="Suggested placement")
    expect(suggested).to_contain_text("GiB on the fullest GPU")
    expect(yours).to_contain_text("GiB on the fullest GPU")
    assert _seconds(suggested.inner_text()) < _seconds(yours.inner_text())
    page.get_by_role("button", name=re.compile("^Use suggested")).click()
    expect(page.get_by_role("group", name="Pool main")).to_be_visible()
    expect(suggested).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.get_by_role("group", name="Pool writing")).to_be_visible()
    assert saved_yaml(page) == text

    # A formula by hover, with values and sources; it goes when the pointer leaves.
    pool = page.get_by_role("group", name="Pool learning")
    optimizer = pool.get_by_role("button", name=re.compile("^Optimizer of actor")).first
    optimizer.hover()
    formula = _formula(page, "Optimizer of actor")
    expect(formula).to_contain_text("× trained parameters ÷ GPUs of learning")
    expect(formula).to_contain_text("7.62B")
    expect(formula).to_contain_text("ZeRO")
    assert violations(page) == []
    page.mouse.move(2, 2)
    expect(formula).to_have_count(0)

    # The same by keyboard: arrows go from part to part, Enter goes into the formula, Escape back.
    bar = pool.get_by_role("group", name=re.compile("GiB usable")).first
    bar.get_by_role("button").first.focus()
    for _ in range(bar.get_by_role("button").count()):
        page.keyboard.press("ArrowRight")
        if optimizer.evaluate("button => button.matches(':focus')"):
            break
    expect(formula).to_be_visible()
    page.keyboard.press("Enter")
    expect(formula).to_be_focused()
    page.keyboard.press("Escape")
    expect(formula).to_have_count(0)
    expect(optimizer).to_be_focused()

    # Behind a stage's time there are steps, each of which opens.
    page.get_by_role("button", name=re.compile("^actor.learn: ")).first.click()
    formula = _formula(page, "actor.learn")
    formula.get_by_role("button", name=re.compile("^passes over tokens")).click()
    expect(formula).to_contain_text("= tokens learned ÷ GPUs of learning × a token")
    page.keyboard.press("Escape")
    page.get_by_role("region", name="Hardware of the loop").wait_for()


def test_a_larger_model_is_fitted_by_one_click(
    editor: Page, saved_yaml: Callable[[Page], str], violations: Callable[[Page], list[str]]
) -> None:
    page = editor
    _choose_hardware(page, "8xH100")
    bar = page.get_by_role("region", name="Hardware and memory")
    expect(bar.get_by_role("img", name=re.compile("of 71.3 GiB usable"))).to_have_count(8)
    before = bar.inner_text()

    # The slider re-solves; what it finds is applied, and undone in one step.
    text = saved_yaml(page)
    slider = page.get_by_role("slider", name="Memory budget")
    slider.fill("0.8")
    page.get_by_role("button", name="Apply").click()
    expect(slider).to_have_value("0.8")
    assert saved_yaml(page) != text
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(slider).to_have_value("0.9")
    assert saved_yaml(page) == text

    # A model of four times the size: the bars move, and the settings say what it takes.
    for node in ("actor", "reference"):
        _choose_model(page, node, LARGE)
    settings = page.get_by_role("complementary", name="Settings")
    expect(settings).to_contain_text("32.8B parameters; takes up to")
    expect(bar.get_by_role("img", name=re.compile("over budget"))).not_to_have_count(0)
    assert bar.inner_text() != before
    large = saved_yaml(page)

    # What would fit, each with memory and step time, and what would not, with the reason.
    page.get_by_role("button", name="Open hardware").click()
    ways = page.get_by_role("list", name="Ways to make it fit")
    way = ways.get_by_role("listitem").filter(has_text="Run on 8xB200")
    expect(way).to_contain_text(re.compile(r"fits in 1\d\d GiB, step [\d.]+ s"))
    others = page.get_by_role("list", name="Ways that do not help")
    expect(others).to_contain_text("Offload optimizer states to host memory")
    expect(others).to_contain_text(re.compile(r"still [\d.]+ GiB over"))
    expect(others).to_contain_text("the loop has pools of its own")
    assert violations(page) == []
    way.get_by_role("button", name="Take: Run on 8xB200").click()
    expect(page.get_by_role("button", name="Hardware: 8xB200")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.get_by_role("button", name="Hardware: 8xH100")).to_be_visible()
    assert saved_yaml(page) == large


def test_own_figures_and_a_price(
    editor: Page, saved_yaml: Callable[[Page], str], violations: Callable[[Page], list[str]]
) -> None:
    page = editor
    page.get_by_role("button", name=re.compile("^Hardware: ")).click()
    page.get_by_role("button", name=re.compile("^Your own GPU")).click()
    form = page.get_by_role("dialog", name="GPU and price")
    form.get_by_role("textbox", name="Price of a GPU for an hour").fill("2.5")
    form.get_by_role("textbox", name=re.compile("^Memory bandwidth")).fill("2000")
    assert violations(page) == []
    form.get_by_role("button", name="Apply").click()
    written = saved_yaml(page)
    assert "price_per_gpu_hour: 2.5" in written
    assert re.search(r"figures:\s*\{?\s*bandwidth: 2000", written)

    # The cost is beside the step time; its formula names the price, and the figure as one's own.
    page.get_by_role("button", name="Open hardware").click()
    page.get_by_role("button", name=re.compile("^costs ")).click()
    formula = _formula(page, "Cost of the whole run")
    expect(formula).to_contain_text("= GPU-hours × price of a GPU for an hour")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^actor.generate: ")).first.click()
    formula = _formula(page, "actor.generate")
    formula.get_by_role("button", name=re.compile("^until the longest row ends")).click()
    formula.get_by_role("button", name=re.compile("^part 1")).first.click()
    formula.get_by_role("button", name=re.compile("^a token of each row")).click()
    formula.get_by_role("button", name=re.compile("^memory traffic")).click()
    expect(formula).to_contain_text("your own figure")


def test_a_model_that_is_not_known_has_no_numbers(editor: Page) -> None:
    page = editor
    _choose_model(page, "actor", "Qwen/Qwen2.5-7X")
    settings = page.get_by_role("complementary", name="Settings")
    refusal = settings.get_by_role("note")
    expect(refusal).to_contain_text("No parameters, memory or times")
    expect(refusal).to_contain_text("Did you mean")
    expect(settings).not_to_contain_text("takes up to")
    expect(page.get_by_role("region", name="Predicted step")).to_contain_text("Time not known")
