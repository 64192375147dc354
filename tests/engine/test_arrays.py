"""Numbers by the token: types, precision, who may write, who owns the memory."""

from dataclasses import replace

import numpy as np
import pytest

from coloop.algorithms.batch import Pair, Sequence
from coloop.data.arrays import are_equal, ids_of, joined, mask_of, numbers_of, owned
from coloop.data.tables import Tokens
from coloop.data.tables.row import child_row, root_row


def tokens(size: int = 4) -> Tokens:
    """Tokens whose arrays are parts of larger ones, as those of a message."""
    numbers = np.arange(100)
    return Tokens(
        prompt_ids=numbers.astype(np.int32)[:3],
        token_ids=numbers.astype(np.int32)[:size],
        loss_mask=(numbers > 0)[:size],
        log_probs=-numbers.astype(np.float32)[:size],
    )


def test_lists_and_arrays_get_the_type_of_their_meaning() -> None:
    assert (ids_of([1, 2]).dtype, ids_of(np.array([1, 2])).dtype) == (np.int32, np.int32)
    assert mask_of([1, 0]).tolist() == [True, False]
    assert numbers_of([0.1]).dtype == np.float64
    assert numbers_of(np.array([0.1], dtype=np.float32)).dtype == np.float32
    assert (ids_of([]).size, mask_of([]).size, numbers_of([]).size) == (0, 0, 0)


def test_numbers_of_more_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one dimension, found shape \(1, 2\)"):
        ids_of([[1, 2]])


def test_nobody_writes_into_what_is_shared_and_its_giver_still_may() -> None:
    given = np.zeros(3, dtype=np.int32)

    held = ids_of(given)

    assert np.shares_memory(held, given)
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        joined([held, held])[0] = 1
    given[0] = 1


def test_values_are_equal_by_what_their_arrays_hold() -> None:
    assert tokens() == tokens()
    assert tokens() != replace(tokens(), log_probs=[0.0, -1.0, -2.0, -4.0])
    assert tokens() != tokens(3)
    assert tokens() != "tokens"
    assert replace(tokens(), log_probs=[np.nan] * 4) == replace(tokens(), log_probs=[np.nan] * 4)
    row = child_row("actor", root_row("a", "0", {}), 0, {"chosen_tokens": tokens()})
    assert replace(row, tokens=tokens()) == replace(row, tokens=tokens())
    assert replace(row, tokens=tokens()) != row
    one = Sequence(id="a", token_ids=[1, 2], loss_mask=[False, True], advantages=1.0)
    assert one == replace(one, token_ids=np.array([1, 2]))
    assert one != replace(one, advantages=[0.0, 1.0])
    assert Pair(id="p", chosen=one, rejected=one) == Pair(id="p", chosen=one, rejected=one)
    assert not are_equal(one, tokens())


def test_what_outlives_its_step_holds_no_more_than_itself() -> None:
    row = child_row("actor", root_row("a", "0", {}), 0, {"several": [tokens()]}, tokens=tokens())

    kept = row.owned()

    assert kept == row
    assert kept.tokens is not None
    for array in (
        kept.tokens.token_ids,
        kept.tokens.log_probs,
        kept.columns["several"][0].log_probs,
    ):
        memory = array.base if array.base is not None else array
        assert memory.nbytes == array.nbytes
    assert kept.columns["several"][0] is kept.scoped["actor.several"][0]
    assert owned(kept.tokens.token_ids) is kept.tokens.token_ids
    part = numbers_of(np.zeros(100)[:2])
    side = Sequence(id="a", token_ids=[1, 2], loss_mask=[False, True], log_probs_reference=part)
    kept_side = Pair(id="p", chosen=side, rejected=side).owned().chosen
    assert kept_side == side
    assert not np.shares_memory(kept_side.log_probs_reference, part)
