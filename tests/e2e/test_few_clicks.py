"""From an empty canvas to a co-training scheme of one's own in few clicks.

A solver, a judge of its own that learns, a reward in Python, a held-out probe and two steps of the
solver to one of the judge, on rows of one's own file. Each click and each drag counts as one, and
so does a text that is typed.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.test_compose import node
from tests.e2e.test_editor import middle

pytestmark = pytest.mark.e2e

MOST = 45
SUMS = [
    {"question": f"{one}+{other}=", "solution": str(one + other)}
    for one in range(20)
    for other in range(10)
]
TRAIN = [row for place, row in enumerate(SUMS) if place % 3 > 0]
HELD_OUT = SUMS[::3]
SHORT = """\
def reward(prompts, completions, **columns):
    return [1.0 if len(said) < 4 else 0.0 for said in completions]
"""
DROP = """([target, name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    const box = target.getBoundingClientRect();
    const at = { clientX: box.x + box.width / 2, clientY: box.y + 20 };
    for (const type of ["dragenter", "dragover", "drop"])
        target.dispatchEvent(new DragEvent(type, {
            bubbles: true, cancelable: true, dataTransfer: transfer, ...at }));
}"""


@dataclass
class Hand:
    """Does what a user does, and counts it."""

    page: Page
    done: list[str] = field(default_factory=list)

    def click(self, target: Locator) -> None:
        target.click()
        self.done.append(f"click {str(target).partition('selector=')[2]}")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.done.append(f"type {text!r}")

    def fill(self, label: str, text: str) -> None:
        """Press a field, and type over what is in it."""
        box = self.page.get_by_label(label, exact=True)
        box.click()
        box.fill(text)
        self.done += [f"click {label}", f"type {text!r}"]

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.done.append(f"press {key}")

    def drop_file(self, name: str, rows: list[dict[str, str]], on: Locator) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        self.page.evaluate(DROP, [on.element_handle(), name, text])
        self.done.append(f"drop {name}")

    def wire(self, start: str, to: tuple[float, float]) -> None:
        """Drag from a port in use to a place."""
        self.page.mouse.move(*middle(self.page.get_by_label(start, exact=True).first))
        self.page.mouse.down()
        self.page.mouse.move(to[0] - 12, to[1] - 6, steps=8)
        self.page.mouse.move(*to, steps=3)
        self.page.mouse.up()
        self.done.append(f"drag {start}")


def below(page: Page, right: float = 60) -> tuple[float, float]:
    """A place of the graph on which nothing stands."""
    box = page.get_by_role("region", name="Graph").bounding_box()
    assert box is not None
    return box["x"] + right, box["y"] + box["height"] - 110


def test_a_co_training_scheme_takes_at_most_45_clicks(
    open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    page = open_page("/loops", arranged=False)
    hand = Hand(page)

    hand.click(page.get_by_role("button", name="New loop"))
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    hand.type("mine")
    hand.press("Enter")
    expect(page.get_by_text("An empty loop")).to_be_visible()
    graph = page.get_by_role("region", name="Graph")

    hand.drop_file("train.jsonl", TRAIN, graph)
    expect(node(page, "dataset")).to_be_visible()
    hand.click(
        page.get_by_role("region", name="Blocks").get_by_role("button", name="Solver and judge")
    )
    expect(node(page, "judge")).to_be_visible()

    hand.wire("output solver.rollouts", below(page))
    expect(page.get_by_placeholder("What goes with solver.rollouts?")).to_be_focused()
    hand.click(page.get_by_role("option", name=re.compile("^Reward")))
    expect(node(page, "reward")).to_be_visible()
    hand.click(page.get_by_label("Source, type", exact=True))
    hand.click(page.get_by_role("option", name=re.compile("^python")))
    hand.click(page.get_by_label("Code", exact=True))
    hand.press("Control+a")
    page.keyboard.insert_text(SHORT)
    hand.done.append("type the reward")
    suggested = page.get_by_role("list", name="Suggested connections")
    hand.click(suggested.get_by_role("button", name=re.compile("reward.scores → solver.rewards")))

    hand.wire("output exact.scores", below(page, 480))
    hand.click(page.get_by_role("option", name=re.compile("^Held-out probe")))
    expect(node(page, "probe")).to_be_visible()
    hand.drop_file("held-out.jsonl", HELD_OUT, node(page, "held_out"))

    hand.click(page.get_by_role("button", name="Show the lower panel"))
    hand.click(page.get_by_role("button", name="Take turns"))
    hand.fill("Steps", "2")

    expect(page.get_by_role("button", name="No problems")).to_be_visible()
    text = saved_yaml(page)
    for line in (
        "columns: {prompt: question, answer: solution, target: solution}",
        "dataset.rows -> solver.prompts",
        "reward.scores -> solver.rewards",
        "exact.scores -> probe.scores",
        "instead_of: dataset",
        "path: uploads/held-out.jsonl",
        "{name: solver, steps: 2, learn: [solver.rewards]}",
        "{name: judge, steps: 1, learn: [judge.rewards]}",
    ):
        assert line in text, text
    told = "\n".join([*hand.done, f"{len(hand.done)} clicks, drags and texts"])
    sys.stdout.write(f"{told}\n")
    assert len(hand.done) <= MOST
