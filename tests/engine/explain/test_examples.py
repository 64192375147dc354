"""Help that is true: the checker says of each example what its page says."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from coloop.explain.codes import Document, Edit, Page, all_codes, changed, explain, page_of
from coloop.plan.run_check import check_run
from coloop.runtime.health.symptoms import BY_CODE, Look
from coloop.spec.diagnostics import CODES
from coloop.spec.io import parse
from coloop.validate import validate

OF_A_SERVER = {"foreign.not_allowed"}
"""Findings that the service adds; its own tests show them."""
OF_A_MODEL = {"memory.guessed"}
"""What wants a model that transformers knows and cannot build."""
ENDLESS = {"learning.untaught"}
"""What only the end of a run tells."""


def pages(*, where: str) -> list[str]:
    found = [(code, page_of(code)) for code in all_codes()]
    return [code for code, page in found if page is not None and getattr(page, where)]


def written(document: Document) -> str:
    stream = io.StringIO()
    yaml = YAML()
    yaml.representer.ignore_aliases = lambda _: True
    yaml.dump(document, stream)
    return stream.getvalue()


def codes_of(text: str, root: Path) -> set[str]:
    """What the checks and the compiler say of a loop."""
    parsed = parse(text)
    if parsed.spec is None:
        return {one.code for one in parsed.diagnostics}
    report = validate(parsed.spec, root=root)
    return {one.code for one in (*parsed.diagnostics, *report.diagnostics)}


def refused(text: str) -> set[str]:
    """What the compiler says of a sound loop."""
    parsed = parse(text)
    assert parsed.spec is not None
    return {one.code for one in check_run(parsed.spec).refusals}


def write(files: Mapping[str, str], root: Path) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")


def codes_of_loop(page: Page, edits: tuple[Edit, ...], root: Path) -> set[str]:
    assert page.loop is not None
    text = written(changed(page.loop, *edits))
    found = codes_of(text, root)
    return found | refused(text) if page == page_of("run.not_yet_runnable") else found


def get(code: str) -> Page:
    page = page_of(code)
    assert page is not None
    return page


@pytest.mark.sample(30)
@pytest.mark.parametrize("code", [c for c in pages(where="loop") if not get(c).confined])
def test_the_wrong_loop_of_a_page_has_its_finding_and_the_right_one_has_not(
    code: str, tmp_path: Path
) -> None:
    page, wrong, right = get(code), tmp_path / "wrong", tmp_path / "right"
    wrong.mkdir()
    right.mkdir()
    write({**page.files, **{name: one.whole for name, one in page.files_of.items()}}, wrong)
    write(page.right_files, right)

    assert code in codes_of_loop(page, page.wrong, wrong)
    assert code not in codes_of_loop(page, page.right, right)


@pytest.mark.parametrize("code", pages(where="fixed"))
def test_the_wrong_text_of_a_page_has_its_finding_and_the_fixed_one_has_not(
    code: str, tmp_path: Path
) -> None:
    page = get(code)
    wrong = page.text_of.whole if page.text_of is not None else page.text
    assert wrong is not None
    assert page.fixed is not None

    assert code in codes_of(wrong, tmp_path)
    assert code not in codes_of(page.fixed, tmp_path)


@pytest.mark.parametrize("code", pages(where="readings"))
def test_the_readings_of_an_alert_raise_it_and_sound_ones_do_not(code: str) -> None:
    page, symptom = get(code), BY_CODE[code]
    start = {**page.first, **page.best}

    def look(now: Mapping[str, float]) -> Look:
        return Look(now=now, start=start, first=page.first, recent=now, best=start, reasons={})

    assert symptom.shows(look(page.readings)) is not None
    assert symptom.shows(look(page.sound)) is None


def test_every_finding_and_symptom_has_an_example() -> None:
    wanted = (CODES.keys() | BY_CODE.keys()) - OF_A_SERVER - OF_A_MODEL - ENDLESS

    without = [code for code in wanted if (found := explain(code)) is None or found.example is None]

    assert sorted(without) == []


def test_the_two_sides_of_an_example_look_different() -> None:
    found = {code: explain(code) for code in all_codes()}
    same = [
        code
        for code, one in found.items()
        if one is not None and one.example is not None and one.example.wrong == one.example.right
    ]

    assert same == []
