"""A scheme that is in no paper, composed by form only: proposer, solver, verifier and debate judge.

    sums -> ask -> proposer -> proposed -> solver -> verifier
                                             └-> claims (pairs of answers) -> judge

The solver is rewarded for right answers and by the judge, who is told two answers and says which is
better; verifier and judge, two roles of one model, for being right; the proposer for sums that the
solver gets right half of the time. All four begin with demonstrations that templates write.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.test_compose import begin, call, choose, connect, leave, node, run_to_its_end, unfold
from tests.presets.test_loops import readings, weights_in

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

LEARNERS = ("proposer", "solver", "verifier", "judge")
WARM_UP, PLAY, SUMS = 40, 4, 16

SUM = """\
import random

def write(prompt, **columns):
    return {"prompt": prompt, "target": f"{random.randrange(10)}+{random.randrange(10)}="}
"""
PROPOSED = """\
import re

def write(completion, **columns):
    found = re.fullmatch(r"(\\d)\\+(\\d)=", completion.strip())
    if found is None:
        return None
    return {"prompt": completion.strip(), "answer": str(int(found[1]) + int(found[2]))}
"""
VERDICT = """\
import random

def write(prompt, answer, **columns):
    said = random.choice([answer, str(random.randrange(19))])
    return {"prompt": f"{prompt}{said}?", "target": "yes" if said == answer else "no"}
"""
DEBATE = """\
import random

def write(prompt, answer, **columns):
    said = [answer, str((int(answer) + random.randrange(1, 19)) % 19)]
    random.shuffle(said)
    return {"prompt": f"{prompt}{said[0]} or {said[1]}?", "target": "AB"[said.index(answer)]}
"""


def add(page: Page, title: str, name: str) -> None:
    """From the list of nodes: it stands right of the chosen one, and is chosen."""
    page.get_by_role("button", name=title, exact=True).first.click()
    call(page, name)


def fill(page: Page, **values: str) -> None:
    for label, value in values.items():
        page.get_by_label(label.replace("_", " ").capitalize(), exact=True).fill(value)


def fix(page: Page, title: str) -> None:
    page.get_by_role("button", name=title).first.click()


def level(page: Page, name: str) -> None:
    page.get_by_role("radiogroup", name="Level of detail").get_by_text(name).click()


def learn_at(page: Page, rate: str) -> None:
    page.get_by_label("Learning rate, Optimizer, Training", exact=True).fill(rate)


def write(page: Page, name: str, code: str, *edges: str) -> None:
    """A template in Python."""
    add(page, "Template", name)
    level(page, "Advanced")
    page.get_by_label("Code", exact=True).click()
    page.keyboard.insert_text(code)
    fix(page, "Remove text")
    level(page, "Simple")
    connect(page, *edges)


def compose_proposer(page: Page) -> None:
    add(page, "Dataset", "sums")
    choose(page, "Task", "arithmetic")
    choose(page, "Digits, type", "number")
    expect(page.get_by_role("textbox", name="Digits", exact=True)).to_have_value("2")
    page.get_by_role("textbox", name="Digits", exact=True).fill("1")
    fill(page, rows_per_step=str(SUMS))

    add(page, "Template", "ask")
    fix(page, "Connect sums.rows to rows")
    fill(page, text="like {{ prompt }}>")

    add(page, "Actor", "proposer")
    fill(page, completions_per_prompt="2", max_new_tokens="6")
    learn_at(page, "2e-3")
    connect(page, "ask.rows → proposer.prompts")
    write(page, "shown_sums", SUM, "ask.rows → shown_sums.rows")
    connect(page, "shown_sums.rows → proposer.demonstrations")
    node(page, "proposer").click(position={"x": 60, "y": 15})
    fix(page, "Add sft for demonstrations")
    write(page, "proposed", PROPOSED, "proposer.rollouts → proposed.rows")


def compose_solver(page: Page) -> None:
    add(page, "Actor", "solver")
    fill(page, completions_per_prompt="4", max_new_tokens="4")
    learn_at(page, "2e-3")
    connect(page, "proposed.rows → solver.prompts", "sums.rows → solver.demonstrations")
    fix(page, "Add sft for demonstrations")

    add(page, "Reward", "exact")
    fix(page, "Connect solver.rollouts to rollouts")
    connect(page, "exact.scores → solver.rewards")


def compose_verifier(page: Page) -> None:
    add(page, "Verifier", "verifier")
    choose(page, "Method", "generative")
    fill(page, completions_per_prompt="2", max_new_tokens="4")
    unfold(page, "Reading")
    fill(page, text="{{ prompt }}{{ completion }}?")
    connect(page, "solver.rollouts → verifier.rollouts")

    add(page, "Reward", "agrees")
    choose(page, "Reward name", "agreement")
    choose(page, "Scorers, 1", "verifier")
    choose(page, "Scorers, 2", "exact")
    connect(page, "verifier.scores → agrees.scores", "exact.scores → agrees.scores")
    connect(page, "agrees.scores → verifier.rewards")
    write(page, "shown_verdicts", VERDICT, "sums.rows → shown_verdicts.rows")
    connect(page, "shown_verdicts.rows → verifier.demonstrations")
    node(page, "verifier").click(position={"x": 60, "y": 15})
    fix(page, "Add grpo for rewards")
    fix(page, "Add sft for demonstrations")
    fix(page, "Set Training")
    unfold(page, "Optimizer")
    learn_at(page, "2e-3")


def compose_judge(page: Page) -> None:
    """Its pairs have the right answer in `chosen`, so that what it says is its own reward."""
    add(page, "Pairs", "claims")
    choose(page, "Method", "all")
    connect(page, "solver.rollouts → claims.rollouts", "exact.scores → claims.scores")

    add(page, "Verifier", "judge")
    choose(page, "Method", "generative")
    fill(page, text="{{ prompt }}{{ a.completion }} or {{ b.completion }}?", verdict="(A|B)")
    fill(page, completions_per_prompt="2", max_new_tokens="2")
    unfold(page, "Values")
    for word, letter in (("yes", "A"), ("no", "B")):
        page.get_by_label(f"Name of {word}, Values, Read", exact=True).fill(letter)
        page.keyboard.press("Enter")
    unfold(page, "Model")
    choose(page, "Model, type", "shared")
    choose(page, "With", "verifier")
    connect(page, "claims.pairs → judge.comparisons")
    connect(page, "judge.scores → judge.rewards", "judge.scores → solver.rewards")
    write(page, "shown_debates", DEBATE, "sums.rows → shown_debates.rows")
    connect(page, "shown_debates.rows → judge.demonstrations")
    node(page, "judge").click(position={"x": 60, "y": 15})
    fix(page, "Add grpo for rewards")
    fix(page, "Add sft for demonstrations")
    page.get_by_role("tab", name="Problems").click()
    fix(page, "Add aggregate: mean")


def reward_the_proposer(page: Page) -> None:
    add(page, "Reward", "middling")
    choose(page, "Reward name", "band")
    connect(page, "proposer.rollouts → middling.rollouts", "exact.scores → middling.scores")
    fix(page, "Add aggregate: mean")
    connect(page, "middling.scores → proposer.rewards")


def schedule(page: Page) -> None:
    """All four imitate, then all four learn from rewards."""
    page.get_by_role("tab", name="Schedule").click()
    page.get_by_role("button", name="Phase", exact=True).click()
    fill(page, name="play", steps=str(PLAY))
    for learner in LEARNERS:
        page.get_by_role("checkbox", name=f"{learner}.demonstrations").uncheck()
    page.get_by_role("button", name=re.compile("^train")).click()
    fill(page, name="warm-up", steps=str(WARM_UP))
    for learner in LEARNERS:
        page.get_by_role("checkbox", name=f"{learner}.rewards").uncheck()
    leave(page)
    unfold(page, "Checkpoint")
    fill(page, checkpoint_every=str(WARM_UP))


def test_a_scheme_of_ones_own_is_composed_by_form_and_all_its_learners_learn(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
) -> None:
    page = open_page("/loops")
    begin(page, "arena")
    compose_proposer(page)
    compose_solver(page)
    compose_verifier(page)
    compose_judge(page)
    reward_the_proposer(page)
    schedule(page)
    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    assert "with: verifier" in saved_yaml(page)

    run = run_to_its_end(page)

    for learner in LEARNERS:
        expect(node(page, learner)).to_contain_text(re.compile(r"\d"))
        expect(page.get_by_role("figure", name=re.compile("^Reward"))).to_contain_text(learner)
    events: list[dict[str, Any]] = server.events(run)
    losses = {name: len(values) for name, values in readings(events, "loss")}
    assert losses == dict.fromkeys(LEARNERS, WARM_UP + PLAY)
    for name, unread in readings(events, "parse/none"):
        assert min(unread) < 1, f"no verdict of {name} was read"
    steps = server.runs / run / "checkpoints"
    for owner in ("proposer", "solver", "verifier"):
        imitating = weights_in(steps / f"step-{WARM_UP}" / owner)
        after = weights_in(steps / f"step-{WARM_UP + PLAY}" / owner)
        assert imitating
        assert imitating != after
