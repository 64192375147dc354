"""Composing a loop: ports, nodes, the inspector, the text beside it, problems, files, drafts.

The text is read as the server has it once the page says that it is saved: what is proven is the
whole way from a gesture to the file.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.e2e.test_compose import add, connect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = pytest.mark.e2e

SavedYaml = Callable[[Page], str]

PRESETS = Path(__file__).resolve().parents[2] / "presets" / "loops"

LOOP = """\
# A loop that a person wrote.
coloop: 1
name: by-hand
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 8}   # short answers
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}   # kept as it is written
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""

EMPTY = LOOP[: LOOP.index("nodes:")] + "nodes: {}\nedges: []\n" + LOOP[LOOP.index("schedule:") :]
WITHOUT_SCORES = LOOP.replace("  - exact.scores -> actor.rewards\n", "")


@pytest.fixture
def editor(server: "Server", open_page: Callable[..., Page]) -> Callable[..., Page]:
    """A page with a loop open in the editor."""

    def open_editor(yaml: str = LOOP) -> Page:
        page = open_page(server.open_loop(yaml))
        expect(page.get_by_role("article").first).to_be_visible()
        expect(page.locator("[data-save]")).to_have_attribute("data-save", "saved")
        return page

    return open_editor


def node(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=re.compile(rf"^{re.escape(name)},"))


def port(page: Page, name: str) -> Locator:
    """The dot of a port: `input actor.rewards`. One without an edge is seen while the count of its
    side is pointed at, or while an edge is drawn that it can take."""
    return page.get_by_label(name, exact=True)


def point_at(page: Page, dot: Locator | str) -> Locator:
    """The dot of a port; of one without an edge the count of its side is pointed at, so that it
    is seen."""
    if isinstance(dot, str):
        side, name = dot.split(" ")
        dot = port(page, dot)
        if not dot.is_visible():
            free = re.compile(rf"^\d+ free {side}s? of {re.escape(name.split('.')[0])}:")
            page.get_by_role("button", name=free).hover()
        expect(dot).to_be_visible()
    return dot


def edge(page: Page, start: str, end: str) -> Locator:
    return page.get_by_label(f"{start} to {end}", exact=True)


def drag(
    page: Page, start: str, end: str | Locator | tuple[float, float], *, drop: bool = True
) -> None:
    """By mouse, as a hand does: point, press, move in steps, release."""
    page.mouse.move(*middle(point_at(page, start)))
    page.mouse.down()
    if isinstance(end, str):
        box = node(page, end.split(" ")[1].split(".")[0]).bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 60, box["y"] + 12, steps=8)
        end = port(page, end)
    goal = end if isinstance(end, tuple) else middle(end)
    page.mouse.move(goal[0] - 12, goal[1] - 6, steps=8)
    page.mouse.move(*goal, steps=3)
    if drop:
        page.mouse.up()


def without_places(text: str) -> str:
    """The loop without places and colours of its boxes: the first change keeps those of all."""
    return re.sub(r"^layout:.*\n(?: .*\n)*", "", text, flags=re.MULTILINE)


def middle(place: Locator) -> tuple[float, float]:
    """Where a thing is, once it stands still: the graph is fitted when it was measured."""
    box = place.bounding_box()
    for _ in range(20):
        place.page.wait_for_timeout(100)
        before, box = box, place.bounding_box()
        if box == before:
            break
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def empty_place(page: Page) -> tuple[float, float]:
    """A spot of the canvas without nodes: its upper left corner."""
    box = page.get_by_role("region", name="Graph").bounding_box()
    assert box is not None
    return box["x"] + 60, box["y"] + 40


def test_ports_are_connected_by_dragging_from_one_to_the_other(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor(WITHOUT_SCORES)

    drag(page, "output exact.scores", "input actor.rewards")

    expect(edge(page, "exact.scores", "actor.rewards")).to_be_attached()
    assert "- exact.scores -> actor.rewards" in saved_yaml(page)


@pytest.mark.slow
def test_a_connection_that_is_not_legal_is_refused_with_the_reason(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor(WITHOUT_SCORES)
    before = saved_yaml(page)

    drag(page, "output exact.scores", "input actor.prompts", drop=False)

    expect(page.get_by_text("prompts takes Rows, scores gives Scores.")).to_be_visible()
    page.mouse.up()
    expect(edge(page, "exact.scores", "actor.prompts")).not_to_be_attached()
    assert saved_yaml(page) == before


@pytest.mark.slow
def test_an_edge_dropped_on_the_empty_canvas_offers_what_fits_and_connects_it(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()

    drag(page, "output exact.scores", empty_place(page))
    expect(page.get_by_placeholder("What goes with exact.scores?")).to_be_focused()
    page.keyboard.type("filt")
    page.keyboard.press("Enter")

    expect(node(page, "filter")).to_be_visible()
    assert re.search(r"exact\.scores -> filter\.\w+", saved_yaml(page))


@pytest.mark.slow
def test_a_node_is_added_by_search_and_by_dragging_from_the_list(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()

    page.mouse.dblclick(*empty_place(page))
    expect(page.get_by_placeholder("Add a node")).to_be_focused()
    page.keyboard.type("templ")
    page.keyboard.press("Enter")
    expect(node(page, "template")).to_be_visible()
    page.get_by_role("button", name="Buffer").drag_to(
        page.get_by_role("region", name="Graph"), target_position={"x": 120, "y": 300}
    )

    expect(node(page, "buffer")).to_be_visible()
    text = saved_yaml(page)
    assert "kind: template" in text
    assert "kind: buffer" in text


def test_delete_undo_and_redo_take_a_node_with_its_edges(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    node(page, "exact").click()

    page.keyboard.press("Delete")
    expect(node(page, "exact")).not_to_be_attached()
    assert "exact" not in saved_yaml(page)
    page.keyboard.press("Control+z")
    expect(node(page, "exact")).to_be_visible()
    expect(edge(page, "exact.scores", "actor.rewards")).to_be_attached()
    restored = saved_yaml(page)
    page.keyboard.press("Control+Shift+z")

    expect(node(page, "exact")).not_to_be_attached()
    assert "exact" not in saved_yaml(page)
    assert "- actor.rollouts -> exact.rollouts" in restored
    assert "# kept as it is written" in restored


@pytest.mark.slow
def test_a_new_name_is_taken_over_by_everything_that_mentions_the_node(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    node(page, "actor").click()

    page.get_by_label("Name of the node").fill("pupil")
    page.keyboard.press("Enter")

    expect(node(page, "pupil")).to_be_visible()
    text = saved_yaml(page)
    assert "- problems.rows -> pupil.prompts" in text
    assert "- exact.scores -> pupil.rewards" in text
    assert "actor:" not in text
    assert "# short answers" in text


def test_an_edit_in_the_inspector_changes_its_line_and_nothing_else(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    node(page, "problems").click()

    page.get_by_label("Rows per step", exact=True).fill("12")

    text = without_places(saved_yaml(page))
    assert text == LOOP.replace("rows_per_step: 8", "rows_per_step: 12")
    page.get_by_role("tab", name="YAML").click()
    expect(page.get_by_label("Loop as YAML")).to_contain_text("rows_per_step: 12")


def test_an_edit_is_one_request(editor: Callable[..., Page], saved_yaml: SavedYaml) -> None:
    page = editor()
    node(page, "problems").click()
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(f"{sent.method} {urlsplit(sent.url).path}"))

    page.get_by_label("Rows per step", exact=True).fill("12")
    assert "rows_per_step: 12" in saved_yaml(page)
    page.wait_for_load_state("networkidle")

    edits = [
        re.sub("loops/[^/]+", "loops/ID", request)
        for request in asked
        if " /api/" in request and request != "GET /api/runs"  # polled by the page
    ]
    assert edits == ["PUT /api/loops/ID/document"]


@pytest.mark.slow
def test_what_a_check_finds_moves_no_list_from_under_a_press(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    held: list[Route] = []
    page.route("**/api/loops/*/document", lambda asked: held.append(asked))
    node(page, "problems").click()
    with page.expect_request("**/api/loops/*/document"):
        page.get_by_label("Rows per step", exact=True).fill("0")
    page.get_by_label("Task", exact=True).click()
    page.mouse.move(*middle(page.get_by_role("option", name=re.compile("^countdown"))))
    page.mouse.down()

    for asked in held:
        asked.continue_()
    page.unroute("**/api/loops/*/document")
    expect(page.locator("[aria-label='1 problem of problems']")).to_be_visible()
    page.mouse.up()

    expect(page.get_by_label("Task", exact=True)).to_have_text("countdown")
    expect(page.get_by_text("at least 1 is expected")).to_be_visible()
    assert "task: countdown" in saved_yaml(page)


AT_THE_LOWER_EDGE = """() => {
    const box = document.querySelector(".cm-focused .cm-scroller");
    const line = document.querySelector(".cm-focused .cm-activeLine").getBoundingClientRect();
    box.scrollTop += line.bottom - box.getBoundingClientRect().bottom;
}"""
"""The text is scrolled until the line of the cursor is the last one in sight."""

LINE_IS_IN_SIGHT = """() => {
    const line = document.querySelector(".cm-focused .cm-activeLine").getBoundingClientRect();
    const box = document.querySelector(".cm-focused .cm-scroller").getBoundingClientRect();
    return line.top >= box.top && line.bottom <= box.bottom + 1;
}"""


def select_in_text(page: Page, text: str) -> None:
    """Select the first place of the YAML panel that reads so, by its search."""
    page.get_by_role("tab", name="YAML").click()
    page.get_by_label("Loop as YAML").click()  # waits until the panel stands still
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+f")
    page.get_by_label("Find", exact=True).press_sequentially(text)
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Loop as YAML")).to_be_focused()


def test_an_edit_of_the_text_changes_the_graph_and_is_one_step_back(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()

    select_in_text(page, "completions_per_prompt: 4")
    page.keyboard.insert_text("completions_per_prompt: 6")
    node(page, "actor").click()
    expect(page.get_by_label("Completions per prompt", exact=True)).to_have_value("6")
    edited = saved_yaml(page)
    page.get_by_role("button", name="Undo: Edit text").click()

    expect(page.get_by_label("Completions per prompt", exact=True)).to_have_value("4")
    assert edited == LOOP.replace("completions_per_prompt: 4", "completions_per_prompt: 6")
    assert without_places(saved_yaml(page)) == LOOP


@pytest.mark.slow
def test_text_that_does_not_read_keeps_the_last_graph_until_it_does(
    editor: Callable[..., Page], server: "Server", saved_yaml: SavedYaml
) -> None:
    text = "# kept\n" * 30 + LOOP
    page = editor(text)

    select_in_text(page, "kind: reward")
    page.evaluate(AT_THE_LOWER_EDGE)
    page.keyboard.insert_text("kind: rewrd")
    expect(page.get_by_text("The text has errors.")).to_be_visible()
    expect(node(page, "exact")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("rewrd")
    page.wait_for_function(LINE_IS_IN_SIGHT)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    page.reload()
    expect(page.get_by_text("The text has errors.")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("rewrd")
    page.get_by_role("button", name="Discard", exact=True).click()

    expect(page.get_by_text("The text has errors.")).to_be_hidden()
    expect(page.get_by_role("alert")).to_be_hidden()
    assert without_places(saved_yaml(page)) == text


def test_a_problem_has_a_badge_on_its_node_and_a_fix_of_one_click(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor(LOOP.replace("exact_match", "exact_mach"))
    expect(page.get_by_role("button", name=re.compile("problems? of exact"))).to_be_visible()
    expect(page.get_by_role("button", name="1 error")).to_be_visible()

    page.get_by_role("button", name="1 error").click()
    page.get_by_role("tabpanel").get_by_role("button", name=re.compile("exact_match")).last.click()

    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(page.get_by_role("button", name=re.compile("problems? of exact"))).to_be_hidden()
    assert without_places(saved_yaml(page)) == LOOP


@pytest.mark.slow
def test_run_is_off_with_the_reason_while_there_are_errors(editor: Callable[..., Page]) -> None:
    page = editor(LOOP.replace("  - problems.rows -> actor.prompts\n", ""))
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_disabled()

    run.hover(force=True)

    expect(page.get_by_role("tooltip")).to_contain_text("Not finished: ")
    run.click(force=True)
    assert "/loops/" in page.url


@pytest.mark.slow
def test_a_file_is_imported_as_a_loop_of_its_own(
    editor: Callable[..., Page], saved_yaml: SavedYaml, tmp_path: Path
) -> None:
    page = editor()
    was_open = page.url
    file = tmp_path / "mine.yaml"
    file.write_text(LOOP.replace("by-hand", "imported"), encoding="utf-8")

    page.get_by_label("YAML files").set_input_files(file)

    expect(page.get_by_label("Name of the loop")).to_have_value("imported")
    assert page.url != was_open
    assert saved_yaml(page) == file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_file_of_an_older_version_is_imported_as_the_present_one(
    editor: Callable[..., Page], saved_yaml: SavedYaml, tmp_path: Path
) -> None:
    page = editor()
    file = tmp_path / "old.yaml"
    old = LOOP.replace("coloop: 1", "coloop: 0").replace("by-hand", "old").replace("kind:", "type:")
    old = old.replace("completions_per_prompt", "group_size")
    file.write_text(old, encoding="utf-8")

    page.locator("input[type=file]").first.set_input_files(file)

    expect(page.get_by_label("Name of the loop")).to_have_value("old")
    node(page, "actor").click(position={"x": 40, "y": 12})
    expect(page.get_by_label("Completions per prompt", exact=True)).to_have_value("4")
    expect(page.get_by_text("No problems")).to_be_visible()


@pytest.mark.slow
def test_a_file_that_is_no_loop_is_refused_with_its_line(
    editor: Callable[..., Page], tmp_path: Path
) -> None:
    page = editor()
    was_open = page.url
    file = tmp_path / "broken.yaml"
    file.write_text("coloop: 1\nnodes: {a: [}\n", encoding="utf-8")

    page.get_by_label("YAML files").set_input_files(file)

    expect(page.get_by_text("broken.yaml could not be opened.")).to_be_visible()
    expect(page.get_by_text(re.compile("Line 2"))).to_be_visible()
    assert page.url == was_open


@pytest.mark.slow
def test_a_preset_is_looked_at_and_becomes_a_loop_with_the_first_change(
    editor: Callable[..., Page], server: "Server", saved_yaml: SavedYaml
) -> None:
    page = editor()
    was_open = page.url
    loops = server.get("/loops")

    page.get_by_role("button", name="Presets").click()
    gallery = page.get_by_role("dialog", name="Presets")
    expect(gallery.get_by_role("listitem")).to_have_count(len(list(PRESETS.glob("*.yaml"))))
    gallery.get_by_label("Search presets").fill("two-halves")
    expect(gallery.get_by_role("listitem")).to_have_count(1)
    gallery.get_by_role("article", name="two-halves").get_by_role("button").click()

    expect(page.get_by_label("Name of the loop")).to_have_value("two-halves")
    expect(gallery).to_be_hidden()
    assert page.url != was_open
    expect(page.locator("[data-save]")).to_have_attribute("data-save", "preset")
    assert server.get("/loops") == loops

    page.get_by_label("Seed", exact=True).fill("77")

    assert "seed: 77" in saved_yaml(page)
    assert len(server.get("/loops")) == len(loops) + 1
    page.reload()
    expect(page.get_by_label("Seed", exact=True)).to_have_value("77")


@pytest.mark.slow
def test_an_earlier_version_is_read_and_restored(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    seed = page.get_by_label("Seed", exact=True)
    first = seed.input_value()
    seed.fill("77")
    assert "seed: 77" in saved_yaml(page)

    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="History of this loop").click()
    dialog = page.get_by_role("dialog", name="History")
    dialog.get_by_role("button", name="Created").click()
    expect(dialog.get_by_text("seed set to 77")).to_be_visible()
    dialog.get_by_text("Text", exact=True).click()
    expect(dialog.get_by_role("list", name="Changes since version 1")).to_contain_text("seed: 77")
    dialog.get_by_role("button", name="Restore", exact=True).click()

    expect(dialog).to_be_hidden()
    expect(seed).to_have_value(first)
    assert "seed: 77" not in saved_yaml(page)
    page.get_by_role("button", name="Undo: Restore version 1").click()
    assert "seed: 77" in saved_yaml(page)


@pytest.mark.slow
def test_what_was_done_is_there_after_the_page_is_loaded_again(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor()
    node(page, "exact").click()
    page.get_by_label("Name of the node").fill("judge")
    page.keyboard.press("Enter")
    text = saved_yaml(page)

    page.reload()

    expect(node(page, "judge")).to_be_visible()
    assert saved_yaml(page) == text


@pytest.mark.slow
def test_a_loop_is_the_same_on_every_page_and_no_edit_is_in_conflict(
    server: "Server", open_page: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    """An empty loop gets nodes, the rewards are looked at at once, and the next edit is of what is
    there."""
    page = open_page(server.open_loop(EMPTY))
    expect(page.get_by_text("An empty loop")).to_be_visible()
    for words, name in (("dataset", "problems"), ("grpo", "actor"), ("reward", "exact")):
        add(page, words, name)
    connect(page, "exact.scores → actor.rewards")

    page.get_by_role("link", name="Rewards").click()
    expect(page.get_by_label("Weight of exact as a number")).to_be_visible()
    page.go_back()
    for name in ("problems", "actor", "exact"):
        expect(node(page, name)).to_be_visible()
    node(page, "problems").click()
    page.get_by_label("Rows per step", exact=True).fill("24")

    text = saved_yaml(page)
    expect(page.get_by_role("button", name="Keep mine")).to_have_count(0)
    assert "rows_per_step: 24" in text
    assert all(f"kind: {kind}" in text for kind in ("dataset", "actor", "reward"))


@pytest.mark.slow
def test_work_that_the_server_did_not_take_is_there_after_the_page_is_loaded_again(
    editor: Callable[..., Page], server: "Server", saved_yaml: SavedYaml
) -> None:
    page = editor()
    page.route(re.compile(r"/api/(spec|check|loops)"), lambda route: route.abort())
    node(page, "problems").click()
    page.get_by_label("Rows per step", exact=True).fill("24")
    expect(page.locator("[data-save]")).to_have_attribute("data-save", "offline")

    page.unroute_all()
    page.reload()

    node(page, "problems").click()
    expect(page.get_by_label("Rows per step", exact=True)).to_have_value("24")
    text = without_places(saved_yaml(page))
    assert text == LOOP.replace("rows_per_step: 8", "rows_per_step: 24")


@pytest.mark.slow
def test_every_shortcut_is_on_the_sheet_of_the_keyboard(editor: Callable[..., Page]) -> None:
    page = editor()

    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_contain_text("Add a node")
    expect(sheet).to_contain_text("Undo")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Type a command or the name of a node")).to_be_focused()
    page.keyboard.type("arrange")
    expect(page.get_by_role("option", name=re.compile("Arrange"))).to_be_visible()


@pytest.mark.slow
def test_a_phase_is_added_to_the_schedule_and_taught_a_port(
    editor: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = editor((PRESETS / "grpo-arithmetic.yaml").read_text(encoding="utf-8"))

    page.get_by_role("button", name="Phase", exact=True).click()
    page.get_by_label("Name", exact=True).fill("polish")
    page.get_by_label("Steps", exact=True).fill("5")
    page.get_by_role("checkbox", name="actor.rewards").check()

    expect(page.get_by_role("button", name=re.compile("^polish 5 steps"))).to_be_visible()
    text = saved_yaml(page)
    assert re.search(r"name: polish", text)
    assert "# The step of the transition depends on the seed" in text
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


@pytest.mark.slow
def test_a_new_loop_is_asked_what_it_begins_as_by_keyboard_alone(
    server: "Server", open_page: Callable[..., Page], saved_yaml: SavedYaml
) -> None:
    page = open_page("/loops")
    button = page.get_by_role("button", name="New loop")
    asked = page.get_by_role("dialog", name="New loop")
    loops = len(server.get("/loops"))

    button.press("Enter")
    expect(asked.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    expect(button).to_be_focused()
    assert len(server.get("/loops")) == loops

    page.keyboard.press("Enter")
    expect(asked.get_by_label("Name", exact=True)).to_be_focused()
    expect(asked.get_by_role("radio")).to_have_count(4)
    page.keyboard.type("mine")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")
    expect(asked.get_by_role("radio", name=re.compile("^From a preset"))).to_be_checked()
    page.keyboard.press("Tab")
    expect(asked.get_by_label("Preset", exact=True)).to_be_focused()
    page.keyboard.type("Superv")
    page.keyboard.press("Enter")
    expect(asked.get_by_label("Preset", exact=True)).to_contain_text("Supervised")
    asked.get_by_role("button", name="Create").press("Enter")

    expect(page.get_by_label("Name of the loop")).to_have_value("mine")
    theirs = (PRESETS / "sft-arithmetic.yaml").read_text(encoding="utf-8")
    assert saved_yaml(page) == theirs.replace("name: sft-arithmetic", "name: mine", 1)
