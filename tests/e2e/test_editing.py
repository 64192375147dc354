"""Editing as people do it who know the editor: by keys alone, across tabs and files, by frames."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.test_editor import edge, middle, node, without_places
from tests.e2e.test_looks import RECORDED

from coloop.spec.io import parse

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PRESETS = Path(__file__).resolve().parents[2] / "presets" / "loops"
CLIPBOARD = ["clipboard-read", "clipboard-write"]


MIDDLE = """(line) => {
    const { x, y } = line.getPointAtLength(line.getTotalLength() / 2);
    const at = new DOMPoint(x, y).matrixTransform(line.getScreenCTM());
    return [at.x, at.y];
}"""


def on_line(line: Locator) -> tuple[float, float]:
    """A place of the window at which an edge is, once it stands still."""
    middle(line)
    x, y = line.locator(".loop-edge").first.evaluate(MIDDLE)
    return x, y


def drop(page: Page, file: Path) -> None:
    """A file or a folder, as it comes from outside of the browser."""
    hand = page.context.new_cdp_session(page)
    carried = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    for moment in ("dragEnter", "dragOver", "drop"):
        hand.send("Input.dispatchDragEvent", {"type": moment, "x": 600, "y": 300, "data": carried})


def has_focus(place: Locator) -> bool:
    return bool(place.evaluate("element => element === document.activeElement"))


def tab_to(page: Page, place: Locator) -> None:
    """As often as it takes, on a page of so many controls."""
    for _ in range(60):
        if has_focus(place):
            return
        page.keyboard.press("Tab")
    pytest.fail("the Tab key does not lead there")


def add(page: Page, words: str, name: str) -> None:
    keys = page.keyboard
    keys.press("a")
    expect(page.get_by_placeholder("Add a node")).to_be_focused()
    keys.type(words)
    keys.press("Enter")
    keys.press("F2")
    expect(page.get_by_label("Name of the node")).to_be_focused()
    keys.type(name)
    keys.press("Enter")
    expect(node(page, name)).to_be_visible()


def connect(page: Page, start: str, end: str) -> None:
    keys, wish = page.keyboard, page.get_by_label("Connect to", exact=True)
    if not has_focus(wish):
        keys.press("c")
    expect(wish).to_be_focused()
    keys.press("Enter")
    expect(page.get_by_role("listbox")).to_be_visible()
    keys.type(f"{start} → {end}")
    keys.press("Enter")
    expect(wish).to_contain_text(f"{start} → {end}")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(wish).to_be_focused()
    keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_label(f"{start} to {end}", exact=True)).to_be_attached()


def fill(page: Page, label: str, value: str) -> None:
    """A field of what is selected; of the loop where nothing is."""
    page.keyboard.press("e")
    tab_to(page, page.get_by_label(label, exact=True))
    page.keyboard.press("Control+a")
    page.keyboard.type(value)
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")


def test_a_loop_is_composed_and_started_by_keyboard_only(
    server: "Server", open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    page = open_page("/loops")
    keys = page.keyboard
    tab_to(page, page.get_by_role("button", name="New loop"))
    keys.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    keys.type("by-keys")
    keys.press("Enter")
    expect(page.get_by_text("An empty loop")).to_be_visible()

    add(page, "dataset", "problems")
    fill(page, "Rows per step", "4")
    add(page, "grpo", "actor")
    connect(page, "problems.rows", "actor.prompts")
    keys.press("Escape")
    add(page, "reward", "exact")
    connect(page, "actor.rollouts", "exact.rollouts")
    connect(page, "exact.scores", "actor.rewards")
    keys.press("Escape")
    keys.press("b")
    was = node(page, "exact").bounding_box()
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    now = node(page, "exact").bounding_box()
    assert was is not None
    assert now is not None
    assert now["y"] > was["y"]
    keys.press("Escape")
    fill(page, "Steps", "2")

    assert re.search(r"steps: 2", saved_yaml(page))
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    keys.press("Control+Enter")
    page.wait_for_url("**/runs/*")
    server.end_runs()


def test_what_is_taken_out_of_a_loop_comes_in_again(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    tmp_path: Path,
) -> None:
    text = (PRESETS / "grpo-arithmetic.yaml").read_text(encoding="utf-8")
    page = open_page(server.open_loop(text), permissions=CLIPBOARD)
    expect(node(page, "actor")).to_be_visible()
    was_open = page.url

    with page.expect_download() as picture:
        page.keyboard.press("Control+Shift+E")
    file = tmp_path / picture.value.suggested_filename
    picture.value.save_as(file)
    assert file.suffix == ".png"
    drop(page, file)
    page.wait_for_url(lambda url: url != was_open)
    assert saved_yaml(page) == text

    was_open = page.url
    shutil.unpack_archive(RECORDED, tmp_path)
    drop(page, tmp_path / "two-halves")
    page.wait_for_url(lambda url: url != was_open)
    expect(page.get_by_label("Name of the loop")).to_have_value("two-halves")
    ran = (tmp_path / "two-halves" / "spec.yaml").read_text(encoding="utf-8")
    assert saved_yaml(page) == ran
    page.go_back()
    expect(node(page, "actor")).to_be_visible()

    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    expect(page.get_by_text(re.compile(r"Copied \d+ nodes as YAML"))).to_be_visible()
    other = open_page(
        server.open_loop("coloop: 1\nname: other\nnodes: {}\nedges: []\nschedule: {steps: 1}\n"),
        beside=page,
    )
    expect(other.get_by_text("An empty loop")).to_be_visible()
    other.keyboard.press("Control+v")
    expect(node(other, "actor")).to_be_visible()
    expect(other.get_by_label("actor.rollouts to exact.rollouts", exact=True)).to_be_attached()

    # As it stands below `nodes:` in a text editor.
    other.evaluate("navigator.clipboard.writeText('  actor:\\n    kind: dataset\\n')")
    other.keyboard.press("Control+v")
    expect(node(other, "actor_2")).to_be_visible()
    assert re.search(r"actor_2: *\{kind: dataset|actor_2:\n +kind: dataset", saved_yaml(other))


def test_a_node_is_placed_in_a_pool_by_dragging_it_into_the_frame(
    server: "Server", open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    text = (PRESETS / "grpo-two-pools.yaml").read_text(encoding="utf-8")
    page = open_page(server.open_loop(text))
    frame = page.get_by_role("region", name=re.compile("^Pool train, 1 worker"))
    expect(frame).to_be_visible()
    exact = node(page, "exact")
    exact.scroll_into_view_if_needed()
    box, goal = exact.bounding_box(), frame.bounding_box()
    assert box is not None
    assert goal is not None

    page.mouse.move(box["x"] + 60, box["y"] + 12)
    page.mouse.down()
    middle = goal["x"] + goal["width"] / 2, goal["y"] + goal["height"] / 2
    page.mouse.move(middle[0] - box["width"] / 2 + 60, middle[1] - box["height"] / 2 + 12, steps=8)
    expect(frame).to_contain_text("Place in pool train")
    page.mouse.up()

    undo = page.get_by_role("button", name="Undo: Place exact in pool train")
    expect(undo).to_be_visible()
    assert re.search(
        r"exact: \{kind: reward.*pool: train|exact:\n.*\n? +pool: train", saved_yaml(page)
    )
    undo.click()
    expect(page.get_by_role("button", name="Nothing to undo")).to_be_visible()
    assert "exact: {kind: reward, source: {type: builtin, name: exact_match}}\n" in saved_yaml(page)

    page.keyboard.press("p")
    page.keyboard.press("n")
    page.keyboard.type("Why two pools: texts may be old.")
    page.keyboard.press("Escape")
    saved = saved_yaml(page)
    assert "pool: train" in saved.split("exact:")[1]
    assert "Why two pools" in saved.split("layout:")[1]


def test_a_node_is_put_in_an_edge_and_several_are_set_and_lined_up_at_once(
    server: "Server", open_page: Callable[..., Page], saved_yaml: Callable[[Page], str]
) -> None:
    text = (PRESETS / "grpo-arithmetic.yaml").read_text(encoding="utf-8")
    page = open_page(server.open_loop(text), arranged=False)
    expect(node(page, "actor")).to_be_visible()
    line = edge(page, "held_out.rows", "probe.rows")

    def undo(label: str) -> None:
        page.get_by_role("button", name=f"Undo: {label}").click()
        expect(page.get_by_role("button", name="Nothing to undo")).to_be_visible()
        assert without_places(saved_yaml(page)) == text

    # From the list onto the line; then by the key of a line that is chosen.
    page.mouse.move(*middle(page.get_by_role("button", name="Template")))
    page.mouse.down()
    page.mouse.move(*on_line(line), steps=8)
    page.mouse.up()
    for way in ("dropped", "key"):
        if way == "key":
            page.mouse.click(*on_line(line))
            page.keyboard.press("i")
            expect(page.get_by_placeholder("What goes between?")).to_be_focused()
            page.keyboard.type("templ")
            page.keyboard.press("Enter")
        expect(node(page, "template")).to_be_visible()
        changed = saved_yaml(page)
        assert "- held_out.rows -> template.rows\n  - template.rows -> probe.rows" in changed
        assert "held_out.rows -> probe.rows" not in changed
        undo("Add template")

    page.keyboard.press("1")  # all of it in sight
    middle(node(page, "problems"))
    node(page, "problems").click(position={"x": 60, "y": 12})
    node(page, "held_out").click(position={"x": 60, "y": 12}, modifiers=["Shift"])
    page.get_by_label("Rows per step", exact=True).fill("24")
    wanted = re.sub(r"rows_per_step: (32|256)", "rows_per_step: 24", text)
    assert without_places(saved_yaml(page)) == wanted
    undo("Change 2 nodes")

    page.get_by_role("button", name="Align right sides").click()
    spec = parse(saved_yaml(page)).spec
    assert spec is not None
    assert spec.layout["problems"][0] == spec.layout["held_out"][0]
    assert spec.layout["problems"][1] != spec.layout["held_out"][1]
    undo("Align right sides")
