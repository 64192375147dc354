"""From a finished run to the picture of it beside its control, over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = """\
coloop: 1
name: compared
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 4}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-3}}
  digits:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", on_no_match: 0, scale: [0, 9]}
  probe: {kind: evaluate, instead_of: problems, every: 2, greedy: true, metrics: [score]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> digits.rollouts
  - digits.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - digits.scores -> probe.scores
schedule: {steps: 8}
hardware: {preset: cpu}
run: {seed: 0, best: probe.score}
"""


@pytest.fixture(scope="module")
def run_id(server: "Server", eventually: Callable[..., Any]) -> str:
    """A finished run."""
    found: str = server.post("/runs", {"yaml": LOOP})["id"]
    eventually(lambda: server.get(f"/runs/{found}")["state"] == "finished", seconds=150)
    return found


def test_a_finished_run_is_compared_with_its_control_over_seeds(
    run_id: str,
    server: "Server",
    open_page: Callable[..., Page],
    violations: Callable[[Page], list[str]],
    fits: Callable[[Page], None],
) -> None:
    page = open_page(f"/runs/{run_id}", bypass_csp=True)
    page.get_by_role("button", name="Run a control").click()
    form = page.get_by_role("region", name="New control")
    expect(form).to_contain_text("The scores of digits reach other rows of the step")

    # By keyboard: the kinds are radios, the seeds a field, and Return starts.
    form.get_by_role("radio", name="Scores of other rows").focus()
    page.keyboard.press("Space")
    form.get_by_text("to the loop").click()
    expect(form.get_by_role("list", name="What will differ")).to_contain_text("digits_shuffled")
    form.get_by_label("Seeds").fill("2")
    page.keyboard.press("Enter")

    runs = page.get_by_role("region", name="Runs")
    expect(runs.get_by_role("link")).to_have_count(4, timeout=30_000)
    expect(runs.get_by_text("finished")).to_have_count(4, timeout=150_000)
    row = page.get_by_role("row", name="Scores of other rows")
    [verdict] = server.get(f"/runs/{run_id}/controls")["comparisons"]
    expect(row).to_contain_text("yes" if verdict["leads"] else "no")
    figure = page.get_by_role("figure")
    expect(figure).to_contain_text("Whole loop")
    expect(figure).to_contain_text("Scores of other rows")
    expect(figure).to_contain_text("±")
    expect(figure.locator("canvas")).to_be_visible()
    assert violations(page) == []
    fits(page)

    # The run and its report say how it stands beside the control.
    page.get_by_role("link", name="The run", exact=True).click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("shuffled")
    page.get_by_role("button", name="Report").click()
    control = page.get_by_role("table", name="Controls").get_by_role("row").nth(1)
    expect(control).to_contain_text("Scores of other rows")
    expect(page.get_by_role("table", name="Seeds").get_by_role("row")).to_have_count(3)
    assert violations(page) == []
