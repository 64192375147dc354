"""Batches: alignment, padding, selection, splitting and packing."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from coloop.algorithms.batch import (
    Pair,
    Sequence,
    collate,
    collate_pairs,
    completion_sequence,
    split_units,
)
from coloop.algorithms.batch.passes import pack
from coloop.algorithms.batch.sequences import completion_sequences


def sequence(name: str, tokens: list[int], trained: int, **fields: object) -> Sequence:
    mask = [False] * (len(tokens) - trained) + [True] * trained
    return Sequence(id=name, token_ids=tokens, loss_mask=mask, **fields)


def test_rows_are_padded_on_the_right() -> None:
    batch = collate([sequence("a", [5, 6, 7], 2), sequence("b", [8, 9], 1)])

    assert batch.token_ids.tolist() == [[5, 6, 7], [8, 9, 0]]
    assert batch.attention_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.loss_mask.tolist() == [[False, True, True], [False, True, False]]
    assert batch.lengths() == [3, 2]


def test_one_advantage_stands_for_all_trained_tokens_only() -> None:
    batch = collate(
        [
            sequence("a", [5, 6, 7], 2, advantages=3.0),
            sequence("b", [8, 9], 1, advantages=[7.0, -1.0]),
        ]
    )

    assert batch.advantages is not None
    assert batch.advantages.tolist() == [[0, 3, 3], [0, -1, 0]]


def test_only_numbers_that_are_read_come_into_a_batch() -> None:
    rows = [
        sequence(
            "a", [5, 6, 7], 2, advantages=3.0, returns=[0.0, 1.0, 2.0], numbers={"label": 1.0}
        ),
        sequence("b", [8, 9], 1, advantages=1.0),
    ]

    batch = collate(rows, reads={"advantages"})

    assert batch.advantages is not None
    assert batch.returns is None
    assert batch.numbers == {}
    with pytest.raises(ValueError, match="'b' has no returns, others of its batch have"):
        collate(rows)


def test_numbers_of_a_completion_are_aligned_to_its_tokens() -> None:
    made = completion_sequence(
        id="a",
        prompt_ids=[1, 2],
        completion_ids=[3, 4],
        loss_mask=[True, False],
        log_probs_rollout=[-1.0, -2.0],
        advantages=0.5,
    )

    assert made.token_ids.tolist() == [1, 2, 3, 4]
    assert made.loss_mask.tolist() == [False, False, True, False]
    assert made.log_probs_rollout is not None
    assert made.log_probs_rollout.tolist() == [0, 0, -1.0, -2.0]
    assert (made.advantages, made.prompt_length) == (0.5, 2)


def test_selecting_cuts_padding_that_is_not_needed() -> None:
    batch = collate(
        [sequence("a", [5, 6, 7, 8], 2, advantages=1.0), sequence("b", [8, 9], 1, advantages=2.0)]
    )

    part = batch.select([1])

    assert part.ids == ("b",)
    assert part.token_ids.tolist() == [[8, 9]]
    assert part.advantages is not None
    assert part.advantages.tolist() == [[0, 2]]


def test_pairs_stand_at_one_width_and_are_selected_together() -> None:
    pairs = [
        Pair(
            id=f"p{k}",
            chosen=sequence(f"c{k}", [1, 2, 3 + k], 1),
            rejected=sequence(f"r{k}", [1] * (2 + k), 1),
            probability=0.5 + k / 10,
        )
        for k in range(3)
    ]

    batch = collate_pairs(pairs)
    part = batch.select([2, 0])

    assert batch.lengths() == [6, 6, 8]
    assert part.sides.ids == ("c2", "c0", "r2", "r0")
    assert part.sides.token_ids[2:].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert part.probability.tolist() == pytest.approx([0.7, 0.5])


@pytest.mark.parametrize("tokens", [4, 10, 30, 1000])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_micro_batches_hold_every_unit_once_within_their_limits(
    tokens: int, rows: int | None
) -> None:
    lengths = [3, 9, 1, 4, 4, 12, 2, 7]

    parts = split_units(range(8), lengths, rows=rows, tokens=tokens)

    assert sorted(unit for part in parts for unit in part) == list(range(8))
    for part in parts:
        assert rows is None or len(part) <= rows
        assert len(part) == 1 or len(part) * max(lengths[unit] for unit in part) <= tokens


def test_packed_sequences_stand_one_after_another_with_their_own_positions() -> None:
    batch = collate(
        [sequence("a", [1, 2, 3], 2), sequence("b", [4, 5], 1), sequence("c", [6, 7, 8, 9], 3)]
    )

    packed, places = pack(batch, row_tokens=5)

    assert packed["input_ids"].tolist() == [[6, 7, 8, 9, 0], [1, 2, 3, 4, 5]]
    assert packed["position_ids"].tolist() == [[0, 1, 2, 3, 0], [0, 1, 2, 0, 1]]
    unpacked = packed["input_ids"].flatten()[places]
    assert torch.equal(unpacked[batch.attention_mask], batch.token_ids[batch.attention_mask])
    with pytest.raises(ValueError, match="'c' has 4 tokens"):
        pack(batch, row_tokens=3)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([Sequence(id="a", token_ids=[], loss_mask=[])], "'a' has no tokens"),
        ([Sequence(id="a", token_ids=[1], loss_mask=[True])], "trains its first token"),
        ([Sequence(id="a", token_ids=[1, 2], loss_mask=[False])], "1 entries in loss_mask"),
        (
            [sequence("a", [1, 2], 1, advantages=1.0), sequence("b", [1, 2], 1)],
            "'b' has no advantages",
        ),
    ],
)
def test_broken_sequences_are_refused_by_name(broken: list[Sequence], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collate(broken)


def test_an_empty_batch_is_possible() -> None:
    assert collate([]).size == 0


def test_a_sequence_from_a_completion_is_one_like_any_other() -> None:
    prompt, drawn, trained = [1, 2, 3], [4, 5], [True, False]
    learned: dict[str, Any] = {
        "log_probs_rollout": np.array([-0.5, -0.25], dtype=np.float32),
        "values": [0.5, 0.25],
        "advantages": 2,
        "numbers": {"margin": 1, "label": [1.0, 0.0]},
        "group": "g",
        "version": 3,
    }

    found = completion_sequence(
        id="a", prompt_ids=prompt, completion_ids=drawn, loss_mask=trained, **learned
    )

    expected = Sequence(
        id="a",
        token_ids=[*prompt, *drawn],
        loss_mask=[False] * 3 + trained,
        prompt_length=3,
        log_probs_rollout=np.array([0, 0, 0, -0.5, -0.25], dtype=np.float32),
        values=[0.0, 0.0, 0.0, 0.5, 0.25],
        advantages=2,
        numbers={"margin": 1, "label": [0.0, 0.0, 0.0, 1.0, 0.0]},
        group="g",
        version=3,
    )
    assert found == expected == pickle.loads(pickle.dumps(found))
    assert vars(found).keys() == vars(expected).keys()
    assert replace(found, version=4) == replace(expected, version=4)
    with pytest.raises(TypeError, match="wieght"):
        completion_sequence(
            id="a", prompt_ids=prompt, completion_ids=drawn, loss_mask=trained, wieght=2.0
        )
    with pytest.raises(ValueError, match="one dimension"):
        completion_sequence(
            id="a", prompt_ids=prompt, completion_ids=drawn, loss_mask=trained, values=[[1.0]]
        )


@pytest.mark.parametrize("kinds", [("f4", "f4", "f4"), ("f8", "f4", "f8")])
def test_many_sequences_at_once_are_what_each_is_alone(kinds: tuple[str, ...]) -> None:
    prompts, drawn = [[1, 2, 3], [4], [5, 6]], [[7], [8, 9, 10], [11, 12]]
    trained = [[True], [True, False, True], [False, True]]
    said = [
        -np.arange(1, len(own) + 1).astype(kind) for own, kind in zip(drawn, kinds, strict=True)
    ]
    columns: dict[str, Any] = {
        "log_probs_rollout": said,
        "advantages": [0.5, np.array([1.0, 2.0, 3.0]), None],
        "group": ["g", "g", "h"],
        "version": [3, 4, 5],
    }

    found = completion_sequences(
        ids=["a", "b", "c"],
        prompt_ids=prompts,
        completion_ids=drawn,
        loss_masks=trained,
        fields=columns,
    )

    for place, one in enumerate(found):
        alone = completion_sequence(
            id="abc"[place],
            prompt_ids=prompts[place],
            completion_ids=drawn[place],
            loss_mask=trained[place],
            **{name: values[place] for name, values in columns.items()},
        )
        assert one == alone == pickle.loads(pickle.dumps(one))
        assert vars(one).keys() == vars(alone).keys()
        assert one.log_probs_rollout is not None
        assert alone.log_probs_rollout is not None
        assert one.log_probs_rollout.dtype == alone.log_probs_rollout.dtype
        assert not one.token_ids.flags.writeable
        assert one.owned().token_ids.base is None or one.owned().token_ids.base.nbytes < 100


def test_many_sequences_name_a_field_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="wieght"):
        completion_sequences(
            ids=[], prompt_ids=[], completion_ids=[], loss_masks=[], fields={"wieght": []}
        )
