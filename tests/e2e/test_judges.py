"""A solver and its judge side by side: what was judged is read beside what the judge says of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Locator, Page, expect

from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TANGO = Path(__file__).resolve().parents[2] / "presets" / "loops" / "tango.yaml"
JUDGED_FOUR_TIMES = {
    "nodes.generator.rollout.completions_per_prompt": 1,
    "nodes.verifier.rollout.completions_per_prompt": 4,
}
CUTS = {
    "nodes.held_out.rows_per_step": 8,
    "nodes.problems.rows_per_step": 8,
    "schedule.phases.2.steps": 1,
    "schedule.phases.2.set": JUDGED_FOUR_TIMES,
    "schedule.phases.3.repeat": 1,
    "schedule.phases.3.phases.0.steps": 1,
    "schedule.phases.3.phases.1.set": JUDGED_FOUR_TIMES,
    "schedule.phases.0.steps": 1,
    "schedule.phases.1.steps": 1,
    "schedule.phases.1.learn": ["verifier.demonstrations", "verifier.rewards"],
    "schedule.phases.1.set": JUDGED_FOUR_TIMES,
}
"""The judge writes from the first step on in which anybody does: that step is always shown."""


def lines_of(text: str) -> list[str]:
    """Lines as they are read: marks of the model are no part of them, nor blanks at their ends."""
    return [re.sub("⟨\\w+⟩|<eos>", "", line).strip() for line in text.split("\n")]


def written(part: Locator) -> list[str]:
    """The text of a pane, line by line, without the numbers before them."""
    lines = part.locator("ol > li > span:last-child").all_inner_texts()
    return lines_of("\n".join(line.replace("\n", "") for line in lines))


def test_a_critique_stands_beside_the_solution_that_it_judges(
    server: "Server",
    open_page: Callable[..., Page],
    headless: Callable[..., dict[str, Any]],
    fits: Callable[[Page], None],
    tmp_path: Path,
) -> None:
    cuts = [Change(op="set", path=path, value=value) for path, value in CUTS.items()]
    loop = tmp_path / TANGO.name
    loop.write_text(patch(TANGO.read_text(encoding="utf-8"), cuts), encoding="utf-8")
    assert headless(loop, "--local", run_id="judged")["state"] == "finished"
    page = open_page("/runs/judged")
    expect(page.get_by_text("finished", exact=True)).to_be_visible()

    page.get_by_role("tab", name="Samples").click()
    solution = page.get_by_role("region", name=re.compile("^generator, text"))
    critique = page.get_by_role("region", name=re.compile("^verifier, on generator"))
    expect(critique).to_be_visible()
    folder = server.runs / "judged" / "samples"
    of_steps = [file for file in folder.glob("step-*.jsonl") if "tokens" not in file.name]
    newest = max(of_steps, key=lambda file: int(file.stem.partition("-")[2]))
    shown = page.get_by_role("region", name="Texts of one prompt")
    expect(shown).to_contain_text(f"{newest.stem.replace('-', ' ')} ·")
    rows = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    judged = {row["parents"][0]: row for row in rows if row.get("parents")}
    read = next(row for row in rows if row["node"] == "generator")
    assert written(solution) == lines_of(read["completion"])
    said = [row["completion"] for row in rows if (row.get("parents") or [""])[0] == read["id"]]
    assert read["id"] in judged
    assert written(critique) in [lines_of(one) for one in said]
    # What is said of the critiques stands on the text that they judge, too; a judge that has hardly
    # learned writes no verdict that can be read.
    assert {"exact", "agrees", "well_formed"} <= read["scores"].keys()
    for scorer in read["scores"]:
        expect(solution).to_contain_text(scorer)
    left, right = solution.bounding_box(), critique.bounding_box()
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"] + 1

    shaded = critique.locator("[data-token]")
    expect(shaded.first).to_be_visible()
    assert shaded.first.get_attribute("title")
    critique.get_by_text("KL", exact=True).click()
    expect(critique).to_contain_text("up to")
    fits(page)
