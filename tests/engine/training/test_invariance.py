"""Loss and gradient of every recipe depend on the rows alone: not on micro-batches, padding,
packing or the order of rows. Tokens outside the loss mask take part in nothing."""

import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
import torch
from tests.engine.numerics import assert_near, near
from tests.matrix import also
from torch.nn.functional import pad
from transformers import PreTrainedModel

from coloop.algorithms.batch import Batch, Pair, PairBatch, collate, collate_pairs
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.batch.sequences import TOKEN_FIELDS
from coloop.algorithms.recipes import RECIPES
from coloop.algorithms.recipes.protocol import OF_WORDS, ModelOutputs, Needs
from coloop.spec.algorithm import PreferenceLoss
from coloop.spec.heads import Head
from coloop.workers.training import SingleBackend, TrainBatch
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.meter import Meter

MakeLoad = Callable[..., TrainBatch]
Build = Callable[..., PreTrainedModel]

TERMS = 10_000
"""More roundings than an update of these models and rows has: 12 rows of up to 11 tokens, there
and back through two layers of width 16, and losses that multiply ratios of up to e^3."""

KL = {"coefficient": 0.3, "estimator": "k3", "into": "loss"}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in RECIPES},
    "grpo with kl and entropy": ("grpo", {"kl": KL, "entropy": 0.1}),
    "grpo by sequences": ("grpo", {"aggregation": "sequence_mean", "dual_clip": 3.0}),
    "grpo by sums": ("grpo", {"aggregation": "sequence_sum", "correction": {"method": "icepop"}}),
    "grpo without correction": ("grpo", {"correction": {"method": "none"}}),
    "trl-grpo": ("trl-grpo", {}),
    "sapo": ("grpo", {"loss": "sapo"}),
    "gmpo": ("grpo", {"loss": "gmpo"}),
    "clip_cov": ("grpo", {"loss": "clip_cov"}),
    "kl_cov": ("grpo", {"loss": "kl_cov", "covariance_share": 0.1}),
    "dppo by kl": ("dppo", {"divergence": "kl", "divergence_low": 0.01, "divergence_high": 0.01}),
    "dppo to the trainer": ("dppo", {"old_policy": "trainer", "ratio_penalty": 0.1}),
    "vespo without correction": ("vespo", {"correction": {"method": "none"}}),
    "grpo to the engine": ("grpo", {"old_policy": "engine", "ratio_penalty": 0.1}),
    "dpo with sft": ("dpo", {"sft": 0.3, "label_smoothing": 0.1}),
    "ipo by sums": ("ipo", {"reduce": "sum"}),
    **{
        name: ("dpo", {"loss": name})
        for name in get_args(PreferenceLoss)
        if name not in ("sigmoid", "ipo")
    },
    "aot smoothed": ("dpo", {"loss": "aot", "label_smoothing": 0.1}),
    "simpo smoothed": ("simpo", {"label_smoothing": 0.1, "sft": 0.2}),
    "grpo with rows of others": ("grpo", {"off_policy": {"shaping": 0.1}, "kl": KL}),
    "gspo with rows of others": ("gspo", {"off_policy": {"shaping": 0.1}}),
    "value without clip": ("value", {"clip": None}),
    "bradley_terry with all": ("bradley_terry", {"margin": "lead", "center": 0.1}),
    "regression of values": ("regression", {"reading": "values"}),
    "outcome of steps": ("outcome", {"reading": "steps"}),
    "implicit_prm steeper": ("implicit_prm", {"beta": 0.7}),
    "label_ce smoothed": ("label_ce", {"label_smoothing": 0.2}),
    "bradley_terry smoothed": ("bradley_terry", {"label_smoothing": 0.1}),
    "opd with a clip": ("opd", {"clip": 0.7}),
    "opd over all words": ("opd", {"support": "full"}),
    "opd at likely words": ("opd", {"support": "top_k", "k": 5}),
    "opd towards the teacher": ("opd", {"support": "top_k", "divergence": "forward"}),
    "gkd": ("gkd", {"beta": 0.3}),
}

BY_TOKEN = ("log_probs", "entropy", "values", "steps", "divergence")


def needs_of(load: TrainBatch) -> Needs:
    """What its recipe needs, with a gradient through entropies where there are any."""
    needs = load.recipe.needs(load.settings)
    return replace(needs, entropy_gradient=needs.log_probs)


def head_of(load: TrainBatch) -> dict[str, Any]:
    """Fields of a model that can say what a load needs."""
    head: Head = "words" if needs_of(load).log_probs else "score"
    return {"head": head, "classes": 2 if load.recipe.name == "label_ce" else 1}


def prepared(load: TrainBatch, seed: int) -> list[TokenSequence]:
    """The rows with some numbers in place of those that the recipe prepares."""
    draw = random.Random(seed)
    ranges = {"log_probs_old": (-4.0, -1.0), "values": (-1.0, 1.0)}

    def number(name: str) -> float:
        low, high = ranges.get(name, (0.0, 1.0))
        drawn = draw.uniform(low, high)
        return drawn if name in ranges else float(drawn > 0.3)  # tokens that are chosen

    names = sorted(needs_of(load).prepares)
    return [
        row.with_numbers({name: [number(name) for _ in row.token_ids] for name in names})
        for row in load.rows
    ]


def batch_of(load: TrainBatch) -> Batch | PairBatch:
    if isinstance(load.rows[0], Pair):
        numbers = dict.fromkeys(needs_of(load).prepares, 0.3)
        pairs = collate_pairs([replace(pair, numbers=numbers) for pair in load.rows])
        return replace(pairs, sides=in_float64(pairs.sides))
    return in_float64(collate(prepared(load, 4)))


def in_float64(batch: Batch) -> Batch:
    """The batch with its numbers in the type that the model of these tests computes in."""
    given = {name: batch.given(name) for name in (*TOKEN_FIELDS, *batch.numbers)}
    return batch.with_numbers(
        {name: one.double() for name, one in given.items() if one is not None}
    )


def widened(batch: Batch | PairBatch, more: int) -> Batch | PairBatch:
    """The same rows with `more` columns of padding."""
    if isinstance(batch, PairBatch):
        return replace(batch, sides=widened(batch.sides, more))
    wide = {
        field.name: pad(value, (0, more))
        for field in fields(batch)
        if isinstance(value := getattr(batch, field.name), torch.Tensor)
        and value.dim() == 2
        and field.name != "choices"
    }
    numbers = {
        name: pad(value, (0, more)) if value.dim() == 2 else value
        for name, value in batch.numbers.items()
    }
    return replace(batch, **wide, numbers=numbers)


def measure(
    model: PreTrainedModel,
    load: TrainBatch,
    parts: list[Batch | PairBatch],
    options: ForwardOptions | None = None,
) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradient of one optimizer step cut into these micro-batches."""
    model.zero_grad()
    tokens = TokenModel(model, options)
    divisor = sum(load.recipe.count(part, load.settings) for part in parts)
    loss = 0.0
    for part in parts:
        outputs = tokens.outputs(part.sequences, needs_of(load))
        share = load.recipe.loss(part, outputs, load.settings).total / divisor
        share.backward()
        loss += float(share.detach())
    return loss, [p.grad.clone() for p in model.parameters() if p.grad is not None]


def shown_of_words(
    model: PreTrainedModel,
    load: TrainBatch,
    parts: list[Batch | PairBatch],
    options: ForwardOptions | None = None,
) -> dict[str, float]:
    """Means that are shown of the words, of one optimizer step cut into these micro-batches."""
    tokens, meter = TokenModel(model, options), Meter()
    needs = load.recipe.needs(load.settings)
    for part in parts:
        outputs = tokens.outputs(part.sequences, needs)
        meter.add_output("actor", load.recipe.loss(part, outputs, load.settings))
    return {name: one for name, one in meter.read()["actor"].items() if name in OF_WORDS}


def assert_same(
    found: tuple[float, list[torch.Tensor]], expected: tuple[float, list[torch.Tensor]]
) -> None:
    scale = max(float(gradient.abs().max()) for gradient in expected[1])
    assert found[0] == near(expected[0], terms=TERMS, dtype=torch.float64)
    for ours, theirs in zip(found[1], expected[1], strict=True):
        assert_near(ours, theirs, terms=TERMS, scale=scale, dtype=torch.float64)


@pytest.fixture
def build_wide_model(build_model: Build) -> Build:
    """In float64, where what is left is the formula and not the rounding."""

    def build(**fields: Any) -> PreTrainedModel:
        return build_model(**fields).double()

    return build


@pytest.fixture(params=VARIANTS)
def load(request: pytest.FixtureRequest, make_load: MakeLoad) -> TrainBatch:
    algorithm, fields = VARIANTS[request.param]
    return make_load(algorithm, size=12, seed=2, **fields)


@pytest.mark.sample(8)
@pytest.mark.parametrize("rows", [also(1), also(3), 5])
def test_micro_batches_change_nothing(build_wide_model: Build, load: TrainBatch, rows: int) -> None:
    model, batch = build_wide_model(**head_of(load)), batch_of(load)
    parts = [
        batch.select(range(start, min(start + rows, batch.size)))
        for start in range(0, batch.size, rows)
    ]

    assert_same(measure(model, load, parts), measure(model, load, [batch]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("more", [also(1), 9])
def test_padding_changes_nothing(build_wide_model: Build, load: TrainBatch, more: int) -> None:
    model, batch = build_wide_model(**head_of(load)), batch_of(load)

    assert_same(measure(model, load, [widened(batch, more)]), measure(model, load, [batch]))


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "options",
    [
        also(ForwardOptions(packing="rows"), id="rows"),
        pytest.param(ForwardOptions(packing="varlen", loss_chunk=5), id="end to end"),
    ],
)
def test_packing_changes_nothing(
    build_wide_model: Build, load: TrainBatch, options: ForwardOptions
) -> None:
    model, batch = build_wide_model(**head_of(load)), batch_of(load)
    packed = measure(model, load, [batch], options)

    assert_same(packed, measure(model, load, [batch]))


@pytest.mark.sample(5)
def test_what_is_shown_of_words_is_of_the_rows_alone(
    build_wide_model: Build, load: TrainBatch
) -> None:
    """Entropy and KL: whatever is learned, and with their needs as the recipe says them."""
    model, batch = build_wide_model(**head_of(load)), batch_of(load)
    cut = [batch.select([row]) for row in range(batch.size)]
    packed = ForwardOptions(packing="varlen", loss_chunk=5)

    whole = shown_of_words(model, load, [batch])

    assert ("entropy" in whole) == needs_of(load).log_probs
    assert "kl" in whole or "log_probs_reference" not in needs_of(load).reads
    expected = near(whole, terms=TERMS, dtype=torch.float64)
    assert shown_of_words(model, load, cut) == expected
    assert shown_of_words(model, load, [widened(batch, 9)]) == expected
    assert shown_of_words(model, load, [batch], packed) == expected


@pytest.mark.sample(5)
def test_the_order_of_rows_changes_nothing(build_wide_model: Build, load: TrainBatch) -> None:
    model, batch = build_wide_model(**head_of(load)), batch_of(load)
    order = list(range(batch.size))
    random.Random(1).shuffle(order)

    assert_same(measure(model, load, [batch.select(order)]), measure(model, load, [batch]))


@pytest.mark.sample(3)
def test_a_row_that_counts_twice_equals_the_row_standing_twice(
    build_wide_model: Build, load: TrainBatch
) -> None:
    model = build_wide_model(**head_of(load))

    found = measure(model, load, [batch_of(load)])
    if isinstance(load.rows[0], Pair):
        twice = [row for row in load.rows for _ in range(int(row.count))]
        repeated = replace(load, rows=[replace(row, count=1.0) for row in twice])
        expected = measure(model, repeated, [batch_of(repeated)])
    else:
        own = prepared(load, 4)
        rows = [replace(row, count=1.0) for row in own for _ in range(int(row.count))]
        expected = measure(model, load, [in_float64(collate(rows))])

    assert_same(found, expected)


@pytest.mark.sample(19)
def test_tokens_outside_the_mask_have_exactly_no_gradient(
    build_wide_model: Build, load: TrainBatch
) -> None:
    batch, needs = batch_of(load), needs_of(load)
    if needs.scores:
        return  # of whole texts
    with torch.no_grad():
        said = TokenModel(build_wide_model(**head_of(load))).outputs(batch.sequences, needs)
    given = {name: getattr(said, name) for name in BY_TOKEN}
    leaves = {name: one.clone().requires_grad_() for name, one in given.items() if one is not None}

    load.recipe.loss(batch, ModelOutputs(**leaves), load.settings).total.backward()

    mask = batch.sequences.loss_mask
    learned = ("divergence", "log_probs", "values", "steps")
    read = next(leaves[name] for name in learned if name in leaves)
    assert read.grad is not None
    assert (read.grad[mask] != 0).any()
    for leaf in leaves.values():
        assert leaf.grad is None or (leaf.grad[~mask] == 0).all()


def test_what_another_agent_wrote_after_the_last_own_token_changes_no_gradient(
    build_wide_model: Build, make_load: MakeLoad
) -> None:
    """Two agents in one text: agent 1 trains its own tokens; agent 2's stand behind, mask 0."""
    model = build_wide_model()
    own = [3, 4, 5]

    def text(others: list[int]) -> TokenSequence:
        return TokenSequence(
            id="a",
            token_ids=[1, 2, *own, *others],
            loss_mask=[False, False, True, True, True, *[False] * len(others)],
            advantages=1.0,
        )

    load = make_load("reinforce", rows=[text([])])

    alone = measure(model, load, [collate([text([])])])
    for others in ([7], [8, 9, 10]):
        assert_same(measure(model, load, [collate([text(others)])]), alone)


def test_an_update_of_one_agent_leaves_the_other_agents_weights(
    build_model: Build, make_load: MakeLoad, make_training: Callable[..., Any]
) -> None:
    first, second = build_model(seed=1), build_model(seed=2)
    before = [p.detach().clone() for p in second.parameters()]
    training = make_training()

    SingleBackend(first, training, group="first").update([make_load("grpo")], training, seed=0)

    assert all(torch.equal(a, b) for a, b in zip(before, second.parameters(), strict=True))


@pytest.mark.sample(5)
@pytest.mark.parametrize(("mini_batch", "micro_batch"), [also(None, 1), (5, 4)])
def test_a_whole_update_does_not_depend_on_micro_batches(
    build_model: Build,
    load: TrainBatch,
    make_training: Callable[..., Any],
    micro_batch: int,
    mini_batch: int | None,
) -> None:
    def run(micro_batch: int | None) -> tuple[list[torch.Tensor], dict[str, float]]:
        model = build_model(**head_of(load))
        training = make_training(
            lr=0.05,
            optimizer={"name": "sgd"},
            mini_batch=mini_batch,
            micro_batch=micro_batch,
            epochs=2,
        )
        report = SingleBackend(model, training).update([load], training, seed=3)
        return [p.detach() for p in model.parameters()], dict(report.metrics["actor"])

    weights, metrics = run(micro_batch)
    expected_weights, expected_metrics = run(None)

    assert metrics == near(expected_metrics, terms=TERMS)
    # Each of up to six steps moves the weights by the rate times a gradient of norm 1 at most.
    for ours, theirs in zip(weights, expected_weights, strict=True):
        assert_near(ours, theirs, terms=TERMS, scale=6 * 0.05)
