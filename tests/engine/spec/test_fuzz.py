"""Whatever a user writes or a page sends: findings, never an exception; edits that are exact."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coloop.errors import SpecProblem
from coloop.spec.changes import apply_change, apply_changes, diff, same_documents
from coloop.spec.diagnostics import Change
from coloop.spec.documents import join_path, set_in
from coloop.spec.io import Parsed, from_dict, parse, patch
from coloop.spec.text.reader import read

HERE = Path(__file__).resolve()
EXAMPLES = sorted((HERE.parents[3].parent / "shared/language/examples").glob("*.yaml"))
PRESETS = sorted((HERE.parents[3] / "presets" / "loops").glob("*.yaml"))
TEXTS = [path.read_text("utf-8") for path in (HERE.parent / "versions/1.yaml", *PRESETS, *EXAMPLES)]

GENTLY = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

SNIPPETS = st.sampled_from(
    ["\t", "{", "}", "[", "]", ":", ": ", "- ", "#", "&a ", "*a", "!x ", "|", ">", "'", '"', "\n",
     "\n\n", "---\n", "? ", "<<: ", ".nan", "-1", "1e999", "null", "~", "\x00", "\ufeff", "\r\n",
     "é", "%", "@", "`", ",", "kind: actor", "nodes:", "  "]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["grpo", "actor", "problems.rows", "a.b -> c.d", "first", "pool.full"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "type", "name", "rule", "of", "x", "steps"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def sound(parsed: Parsed) -> None:
    """A spec, or at least one finding with words and a place inside of the text."""
    if parsed.spec is None:
        assert parsed.diagnostics
        assert all(found.message and found.describe() for found in parsed.diagnostics)
        json.dumps([found.model_dump(mode="json") for found in parsed.diagnostics], allow_nan=True)
    else:
        assert parsed.diagnostics == ()


def places(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of every value."""
    found: list[tuple[str | int, ...]] = []
    if isinstance(data, dict):
        for key, value in data.items():
            found += [(*path, key), *places(value, (*path, key))]
    elif isinstance(data, list):
        for index, value in enumerate(data):
            found += [(*path, index), *places(value, (*path, index))]
    return found


@cache
def document_of(index: int) -> Any:
    """What a text says; read when a test asks, not by every worker that collects."""
    return json.loads(json.dumps(read(TEXTS[index]).data))


@cache
def places_of(index: int) -> list[tuple[str | int, ...]]:
    return places(document_of(index))


@GENTLY
@given(st.data())
def test_a_text_with_pieces_put_in_or_cut_out_never_raises(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 20)))
        text = text[:start] + data.draw(SNIPPETS) + text[end:]

    parsed = parse(text)

    sound(parsed)
    lines = text.count("\n") + text.count("\r") + 2
    assert all(found.line is None or found.line <= lines for found in parsed.diagnostics)


@GENTLY
@given(st.text(max_size=200))
def test_any_text_never_raises(text: str) -> None:
    sound(parse(text))


@GENTLY
@given(st.data())
def test_a_document_with_other_values_never_raises(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(TEXTS) - 1))
    document = copy.deepcopy(document_of(index))
    for _ in range(data.draw(st.integers(1, 3))):
        spot = data.draw(st.sampled_from(places_of(index)))
        try:
            document = set_in(document, spot, data.draw(VALUES))
        except SpecProblem:
            continue

    sound(from_dict(document))


@GENTLY
@given(VALUES)
def test_any_document_never_raises(document: object) -> None:
    sound(from_dict(document))


FINITE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
    | st.sampled_from(["line 1\n  line 2\n", "- x", "a: b", "yes", "#", "*x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c.d", "e"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@GENTLY
@given(st.data())
def test_an_edit_of_the_text_says_exactly_what_it_was_asked(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(TEXTS) - 1))
    spot = data.draw(st.sampled_from(places_of(index)))
    op = data.draw(st.sampled_from(["set", "set", "remove", "rename", "insert"]))
    value = "new_name" if op == "rename" else data.draw(FINITE)
    change = Change(op=op, path=join_path(spot), value=value)
    try:
        expected = apply_change(document_of(index), change)
    except SpecProblem:
        return

    new = patch(TEXTS[index], [change])

    assert same_documents(read(new).data, expected)
    kept = [line.partition("#")[2] for line in TEXTS[index].splitlines()[:1]]
    assert op in ("remove", "rename") or all(comment in new for comment in kept)


@GENTLY
@given(st.data())
def test_changes_between_documents_lead_from_one_to_the_other(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(TEXTS) - 1))
    new = copy.deepcopy(document_of(index))
    for _ in range(data.draw(st.integers(1, 3))):
        spot = data.draw(st.sampled_from(places_of(index)))
        try:
            new = set_in(new, spot, data.draw(FINITE))
        except SpecProblem:
            continue
    changes = diff(document_of(index), new)

    assert same_documents(apply_changes(document_of(index), changes), new)
    assert same_documents(read(patch(TEXTS[index], changes)).data, new)
