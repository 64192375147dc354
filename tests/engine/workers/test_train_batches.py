"""What a learner is given of rows that come as texts, and of those that somebody drew."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.engine.smallest import GRPO

from coloop.algorithms.batch import Sequence, Text, completion_sequence
from coloop.models.tokenizer import character_tokenizer
from coloop.spec.io import parse
from coloop.workers.encoder import Encoder
from coloop.workers.trainer import TrainBatches

TOKENIZER = character_tokenizer()


def batches(algorithm: str, port: str, *rows: Sequence) -> list[Any]:
    """The loads of an actor with this algorithm."""
    edges = "edges:\n  - problems.rows -> actor.demonstrations"
    text = GRPO.replace("{name: grpo}", algorithm).replace("edges:", edges)
    spec = parse(text).spec
    assert spec is not None
    encoder = Encoder(TOKENIZER)
    weights: Any = SimpleNamespace(
        encoder=lambda node: encoder, too_long=lambda lengths: [None] * len(lengths)
    )
    return TrainBatches(spec, weights).of({("actor", port): rows})


def trained(row: Any) -> str:
    """The characters of a row that are trained, a dot for each of the others."""
    signs = [TOKENIZER.decode([one]) for one in row.token_ids]
    pairs = zip(signs, row.loss_mask, strict=True)
    return "".join(sign if is_trained else "." for sign, is_trained in pairs)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("a<out>12</out>b<c>3</c>", "...a<out>..</out>b<c>3</c>"),
        ("<out>1</out><out></out><out>2", "...<out>.</out><out></out><out>."),
        ("</out>ab", "...</out>ab"),
    ],
)
def test_the_content_of_a_masked_tag_is_not_imitated(target: str, expected: str) -> None:
    row = Sequence(id="a", text=Text(prompt="12=", target=target))
    algorithm = "{rewards: {name: grpo}, demonstrations: {name: sft, mask: [out]}}"

    [load] = batches(algorithm, "demonstrations", row)

    assert trained(load.rows[0]) == f"{expected}⟨eos⟩"


def test_each_of_several_algorithms_masks_its_own_tags() -> None:
    row = Sequence(id="a", text=Text(prompt="=", target="<a>1</a><b>2</b>"))
    algorithm = (
        "{rewards: {name: grpo}, demonstrations: [{name: sft, mask: [a]}, "
        "{name: sft, mask: [a, b], weight: 0.5}, {name: sft}]}"
    )

    found = [trained(load.rows[0])[1:17] for load in batches(algorithm, "demonstrations", row)]

    assert found == ["<a>.</a><b>2</b>", "<a>.</a><b>.</b>", "<a>1</a><b>2</b>"]


def test_what_a_tool_said_stays_out_beside_a_masked_tag() -> None:
    ids = TOKENIZER.encode("ab<out>1</out>", add_special_tokens=False)
    mask = [True] * len(ids)
    mask[1] = False
    row = completion_sequence(id="a", prompt_ids=ids[:1], completion_ids=ids, loss_mask=mask)
    algorithm = "{rewards: {name: grpo}, demonstrations: {name: sft, mask: [out]}}"

    [load] = batches(algorithm, "demonstrations", row)

    assert trained(load.rows[0]) == ".a.<out>.</out>"
    assert row.loss_mask[-7]  # the row itself is as it was


def test_each_algorithm_at_rewards_learns_by_advantages_of_its_own() -> None:
    def row(name: str, own: float | None, **numbers: float) -> Sequence:
        return completion_sequence(
            id=name,
            prompt_ids=[1],
            completion_ids=[2],
            loss_mask=[True],
            advantages=own,
            numbers=numbers,
        )

    algorithm = "{rewards: [{name: grpo}, {name: rloo, weight: 0.5}]}"

    first, second = batches(
        algorithm,
        "rewards",
        row("a", 1.0, **{"advantages.1": -2.0}),
        row("b", 3.0),
        row("c", None, **{"advantages.1": 4.0}),
    )

    assert [(one.id, one.advantages) for one in first.rows] == [("a", 1.0), ("b", 3.0)]
    assert [(one.id, one.advantages) for one in second.rows] == [("a", -2.0), ("c", 4.0)]
    assert (first.weight, second.weight) == (1.0, 0.5)
    assert (first.name, second.name) == ("actor.rewards.grpo", "actor.rewards.rloo.1")
    assert [len(load.temperature) for load in (first, second)] == [2, 2]
