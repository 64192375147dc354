"""Files of every version load; a newer one is refused in so many words."""

from __future__ import annotations

from pathlib import Path

import pytest

from coloop.spec.documents import MIGRATIONS, VERSION, migrate
from coloop.spec.io import content_hash, parse, patch

VERSIONS = Path(__file__).parent / "versions"


def test_every_version_has_a_step_and_a_fixture() -> None:
    assert sorted(MIGRATIONS) == list(range(VERSION))
    assert {path.stem for path in VERSIONS.glob("*.yaml")} == {
        str(version) for version in range(VERSION + 1)
    }


@pytest.mark.parametrize("version", range(VERSION + 1))
def test_a_file_of_each_version_is_the_same_loop(version: int) -> None:
    old = parse((VERSIONS / f"{version}.yaml").read_text(encoding="utf-8"))
    new = parse((VERSIONS / f"{VERSION}.yaml").read_text(encoding="utf-8"))

    assert old.diagnostics == ()
    assert old.spec == new.spec
    assert old.spec is not None
    assert new.spec is not None
    assert content_hash(old.spec) == content_hash(new.spec)


def test_migration_leaves_what_it_was_given() -> None:
    document = {"coloop": 0, "nodes": {"a": {"type": "actor"}}}

    new, problem = migrate(document)

    assert problem is None
    assert new == {"coloop": 1, "nodes": {"a": {"kind": "actor"}}}
    assert document == {"coloop": 0, "nodes": {"a": {"type": "actor"}}}


def test_an_edit_of_an_old_file_brings_it_up_to_date() -> None:
    text = (VERSIONS / "0.yaml").read_text(encoding="utf-8")

    new = patch(text, [{"op": "set", "path": "nodes.actor.rollout.max_new_tokens", "value": 9}])

    document = parse(new).document
    assert document is not None
    assert document["coloop"] == VERSION
    assert document["nodes"]["actor"]["rollout"] == {
        "completions_per_prompt": 4,
        "max_new_tokens": 9,
    }


@pytest.mark.parametrize("nodes", [None, [], "x", {"a": 3}, {"a": {"rollout": 3}}])
def test_a_broken_old_file_is_told_not_raised(nodes: object) -> None:
    from coloop.spec.io import from_dict

    assert from_dict({"coloop": 0, "name": "x", "nodes": nodes}).diagnostics
