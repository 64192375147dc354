"""The content hash follows meaning, not writing."""

from __future__ import annotations

import pytest

from coloop.spec.io import content_hash, dump, load, parse


def hashed(text: str) -> str:
    """The hash of a text."""
    found = parse(text)
    assert found.spec is not None, [d.describe() for d in found.diagnostics]
    return content_hash(found.spec)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# A small loop.\n", ""),
        ("3.0e-4", "0.0003"),
        ("temperature: 1.0", "temperature: 1"),
        ("{steps: 3}", "{steps: 3}\nlayout: {actor: [1, 2]}"),
        ("name: small", "description: words\nname: small"),
        ("    rollout:", "    note: words\n    rollout:"),
        ("problems.rows -> actor.prompts", "{from: problems.rows, to: actor.prompts}"),
        ("problems.rows -> actor.prompts", "problems.rows->actor.prompts"),
        ("rows_per_step: 32", "rows_per_step: 32, shuffle: true"),
        ("{steps: 3}", "{steps: 3, max_staleness: 0}"),
        ("{steps: 3}", "{steps: 3}\nmode: online\nrun: {seed: 0}"),
        ("{steps: 3}", "{steps: 3}\nmode: offline"),
    ],
)
def test_another_way_of_writing_has_the_same_hash(small: str, old: str, new: str) -> None:
    assert small.replace(old, new) != small

    assert hashed(small.replace(old, new)) == hashed(small)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.0e-4", "3.1e-4"),
        ("{name: grpo}", "{name: rloo}"),
        ("{name: grpo}", "{name: grpo, clip_low: null}"),
        ("weight: 0.9", "weight: 0.8"),
        ("name: small ", "name: other "),
        ("exact:", "same:"),
    ],
)
def test_another_meaning_has_another_hash(small: str, old: str, new: str) -> None:
    assert hashed(small.replace(old, new)) != hashed(small)


def test_the_hash_is_sha256_in_hex(small: str) -> None:
    assert len(hashed(small)) == 64
    assert set(hashed(small)) <= set("0123456789abcdef")


def test_a_loop_loads_from_text_and_from_a_file(small: str, tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "loop.yaml"
    path.write_text(dump(load(small)), encoding="utf-8")

    assert load(path) == load(small)


def test_what_cannot_be_loaded_raises_with_its_findings(small: str, tmp_path: object) -> None:
    from pathlib import Path

    from coloop.errors import SpecUnreadable

    with pytest.raises(SpecUnreadable, match="did you mean `actor`"):
        load(small.replace("kind: actor", "kind: actr"))
    with pytest.raises(SpecUnreadable, match="cannot be read"):
        load(Path(str(tmp_path)) / "nothing.yaml")


WITH_WORDS = """
coloop: 1
name: words
nodes:
  problems:
    kind: dataset
    source: {type: inline, rows: [{prompt: a, target: b, note: x, layout: 1, description: d}]}
    columns: {note: layout}
  ask:
    kind: template
    note: for people
    text: "{{ prompt }}"
    columns: {description: "{{ note }}"}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
edges: [problems.rows -> ask.rows, ask.rows -> actor.demonstrations]
schedule:
  phases: [{name: one, steps: 3, learn: [actor], note: for people, set: {nodes.actor.note: x}}]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("note: x,", "note: y,"),
        ("layout: 1", "layout: 2"),
        ("description: d}", "description: e}"),
        ("{note: layout}", "{note: description}"),
        ('description: "{{ note }}"', 'description: "{{ layout }}"'),
        ("{nodes.actor.note: x}", "{nodes.actor.note: y}"),
    ],
)
def test_columns_rows_and_overrides_count_whatever_their_name(old: str, new: str) -> None:
    assert WITH_WORDS.replace(old, new) != WITH_WORDS

    assert hashed(WITH_WORDS.replace(old, new)) != hashed(WITH_WORDS)


def test_notes_for_people_do_not_count() -> None:
    assert hashed(WITH_WORDS.replace("for people", "for other people")) == hashed(WITH_WORDS)
    assert hashed(WITH_WORDS.replace("    note: for people\n", "")) == hashed(WITH_WORDS)
