"""Every loop file reads, and survives each way of writing it again."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML
from tests.engine.spec.conftest import rewrite

from coloop.spec.catalog import json_schema
from coloop.spec.io import content_hash, dump, from_dict, parse, patch, to_dict
from coloop.spec.paths import apply_overrides, check_path
from coloop.spec.schedule import PhaseGroup


def test_it_reads_without_a_finding(example: Path) -> None:
    parsed = parse(example.read_text(encoding="utf-8"))

    assert parsed.diagnostics == ()
    assert parsed.spec is not None


@pytest.mark.sample(12)
def test_its_data_are_those_of_another_reader(example: Path) -> None:
    text = example.read_text(encoding="utf-8")

    assert parse(text).document == YAML(typ="safe", pure=True).load(text)


@pytest.mark.sample(19)
def test_its_canonical_text_reads_back_as_the_same_loop(example: Path) -> None:
    spec = parse(example.read_text(encoding="utf-8")).spec
    assert spec is not None

    again = parse(dump(spec))

    assert again.spec == spec
    assert again.spec is not None
    assert dump(again.spec) == dump(spec)
    assert content_hash(again.spec) == content_hash(spec)


@pytest.mark.sample(29)
def test_its_document_goes_through_json(example: Path) -> None:
    spec = parse(example.read_text(encoding="utf-8")).spec
    assert spec is not None

    again = from_dict(json.loads(json.dumps(to_dict(spec))))

    assert again.spec == spec


@pytest.mark.sample(29)
def test_no_change_leaves_every_byte(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    parsed = parse(text)
    assert parsed.spec is not None

    assert patch(text, []) == text
    assert rewrite(text, to_dict(parsed.spec)) == text


@pytest.mark.sample(6)
def test_it_fits_the_json_schema(example: Path) -> None:
    document = parse(example.read_text(encoding="utf-8")).document

    jsonschema.Draft202012Validator(json_schema()).validate(document)


def test_every_path_that_its_schedule_sets_is_known_and_hot(example: Path) -> None:
    spec = parse(example.read_text(encoding="utf-8")).spec
    assert spec is not None
    schedule = spec.schedule
    overrides = [item.set for item in _items(schedule.phases)]
    overrides += [trigger.do.set for trigger in schedule.triggers]
    paths = [anneal.path for anneal in schedule.anneal]
    paths += [anneal.complement for anneal in schedule.anneal if anneal.complement]

    for values in overrides:
        paths += values
        apply_overrides(spec, values)

    assert [
        check_path(spec, path, hot=True) for path in paths if check_path(spec, path, hot=True)
    ] == []


def _items(phases: tuple[object, ...]) -> list[object]:
    found: list[object] = []
    for item in phases:
        found.append(item)
        if isinstance(item, PhaseGroup):
            found += _items(item.phases)
    return found
