"""What a checkpoint keeps of a row is the row again, bit for bit."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from coloop.data.tables import Row, Tokens
from coloop.data.tables.row import child_row, joined_row, root_row
from coloop.data.tables.rowfile import ROW_KINDS, from_plain, to_plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["prompt", "answer", "é", "__kind__", "__array__"])


@st.composite
def tokens(draw: st.DrawFn) -> Tokens:
    """Tokens of a text of no, one or more of them, with numbers of both precisions."""
    length = draw(st.integers(min_value=0, max_value=5))
    precision = draw(st.sampled_from([np.float32, np.float64]))
    return Tokens(
        prompt_ids=draw(st.lists(st.integers(0, 2**31 - 1), max_size=3)),
        token_ids=draw(st.lists(st.integers(0, 2**31 - 1), min_size=length, max_size=length)),
        loss_mask=draw(st.lists(st.booleans(), min_size=length, max_size=length)),
        log_probs=draw(arrays.arrays(precision, length)),
        temperature=draw(st.sampled_from([1.0, 0.7])),
        writer="actor",
        tokenizer=draw(st.sampled_from(["", "mark"])),
        text=draw(st.text()),
        finished=draw(st.booleans()),
    )


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Rows with and without parents and tokens, with whatever columns."""
    root = root_row("problems", "0.0", draw(st.dictionaries(NAMES, VALUES, max_size=3)))
    written = draw(tokens() | st.none())
    child = child_row("actor", root, 1, {"completion": draw(st.text())}, tokens=written, version=3)
    pair = {"chosen_tokens": draw(tokens()), "several": [draw(tokens())], "places": {2: 0.1}}
    other = child_row("actor", root, 2, {})
    return draw(st.sampled_from([root, child, joined_row([child, other], columns=pair)]))


def listed(array: Any) -> list[Any]:
    """An array whose bits stand in the JSON itself."""
    return [array.dtype.str, array.tobytes().hex()]


def unlisted(plain: list[Any]) -> Any:
    return np.frombuffer(bytes.fromhex(plain[1]), dtype=plain[0])


def through_json(plain: Any) -> Any:
    return json.loads(json.dumps(plain))


@pytest.mark.slow
@given(rows())
def test_a_row_survives(row: Row) -> None:
    found = from_plain(through_json(to_plain(row, listed)), unlisted, ROW_KINDS)

    assert found == row
    assert type(found.trail) is dict
    if row.tokens is not None:
        assert found.tokens is not None
        assert found.tokens.log_probs.dtype == row.tokens.log_probs.dtype
        assert found.tokens.log_probs.tobytes() == row.tokens.log_probs.tobytes()


@pytest.mark.parametrize(
    "score", [None, 0.1, {}, {0: 0.5, 7: -1.0}, {"__kind__": 1}, {"__plain__": {"a": [1]}}]
)
def test_a_score_survives(score: Any) -> None:
    assert from_plain(through_json(to_plain(score, listed)), unlisted, {}) == score
