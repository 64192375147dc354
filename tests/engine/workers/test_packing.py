"""What is packed is unpacked bit for bit, and larger arrays are not copied on the way."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.engine.tables.test_serialize import rows

from coloop.algorithms.batch import Pair, Sequence, Text, Unit, completion_sequence
from coloop.data.tables import Row
from coloop.workers.messages import LearnRequest
from coloop.workers.packing import IN_HEAD_BYTES, Packed, pack, unpack


def carried(packed: Packed) -> Packed:
    """As it arrives in another process: the same bytes in other memory."""
    return Packed(head=packed.head, buffers=[bytes(buffer) for buffer in packed.buffers])


@pytest.mark.slow
@given(rows())
def test_rows_survive_the_way(row: Row) -> None:
    found = unpack(carried(pack((row, row))))

    assert found[0] is found[1]
    assert found[0] == row
    if row.tokens is not None:
        assert found[0].tokens.log_probs.dtype == row.tokens.log_probs.dtype
        assert found[0].tokens.log_probs.tobytes() == row.tokens.log_probs.tobytes()


@pytest.mark.slow
@given(
    arrays.arrays(
        st.sampled_from([np.int32, np.int64, np.float32, np.float64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=300),
    )
)
def test_arrays_survive_the_way(array: Any) -> None:
    found = unpack(carried(pack(array)))

    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("step", [2, -1])
def test_what_is_not_one_piece_of_memory_survives_as_well(step: int) -> None:
    array = np.arange(4096, dtype=np.float32)[::step]

    assert unpack(carried(pack(array))).tolist() == array.tolist()


def test_a_larger_array_is_not_copied() -> None:
    array = np.arange(IN_HEAD_BYTES, dtype=np.int32)

    packed = pack({"a": array, "same": array})
    found = unpack(packed)

    assert np.shares_memory(found["a"], array)
    assert found["a"] is found["same"]
    assert len(packed.buffers) == 1
    assert len(packed.head) < IN_HEAD_BYTES
    assert packed.size() == len(packed.head) + array.nbytes


@pytest.mark.parametrize("tokens", [1, IN_HEAD_BYTES])
def test_nobody_writes_into_what_arrived(tokens: int) -> None:
    array = np.zeros(tokens, dtype=np.int32)
    array.flags.writeable = False

    found = unpack(carried(pack(array)))

    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_other_values_are_pickled_as_ever() -> None:
    value = {"text": "é\n", "none": None, "error": ValueError("x"), "nested": [(1, 2.5)]}

    found = unpack(carried(pack(value)))

    assert repr(found) == repr(pickle.loads(pickle.dumps(value)))


def text(number: int, tokens: int, **more: Any) -> Sequence:
    drawn = np.arange(tokens, dtype=np.int32) + number
    return completion_sequence(
        id=f"actor:{number}",
        prompt_ids=[1, 2, 3],
        completion_ids=drawn,
        loss_mask=drawn % 3 > 0,
        log_probs_rollout=-drawn.astype(np.float32) / 7,
        writer="actor",
        group=f"g{number // 2}",
        **more,
    )


@pytest.mark.parametrize(
    "items",
    [
        (),
        (text(0, 4, advantages=0.5),),
        tuple(text(at, 4, advantages=at / 3, version=at % 2) for at in range(7)),
        tuple(text(at, at, advantages=1.0) for at in range(4)),
        (text(0, 4), text(1, 4, values=[0.5] * 4), text(2, 4, numbers={"label": 1.0})),
        (text(0, 4, returns=[0.25] * 4), text(1, 4, returns=np.ones(4, dtype=np.float32))),
        tuple(text(at, 3 + 600 * at) for at in range(3)),
        (Sequence(id="a", text=Text(prompt="1+1=", target="2")), text(1, 4)),
        (Pair(id="p", chosen=text(0, 4), rejected=text(1, 4)),),
    ],
)
def test_what_is_learned_from_survives_the_way(items: tuple[Unit, ...]) -> None:
    request = LearnRequest(group="actor", items={("actor", "rewards"): items}, seed=0)

    found = unpack(carried(pack(request)))

    assert found == request
    for one, sent in zip(found.items["actor", "rewards"], items, strict=True):
        assert type(one) is type(sent)
        for name, array in vars(one).items():
            if isinstance(array, np.ndarray):
                assert array.dtype == getattr(sent, name).dtype
                assert not array.flags.writeable
        assert one.owned() == sent


def test_a_longer_array_of_what_is_learned_from_is_not_copied() -> None:
    items = tuple(text(at, 3 + 600 * at) for at in range(3))

    request = LearnRequest(group="actor", items={("actor", "rewards"): items}, seed=0)

    found = unpack(pack(request)).items["actor", "rewards"]

    assert np.shares_memory(found[2].token_ids, items[2].token_ids)
