"""Values and scores: equal to a model run row by row, however they are computed; learned alike by
every backend, alone and over ranks; compared with what they were before an order."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, forward_terms, gradient_terms, near
from tests.engine.training.conftest import CONFIGS, random_load, tiny_model, training_section
from tests.engine.training.processes import on_ranks
from transformers import PreTrainedModel

from coloop.algorithms.batch import Batch, collate
from coloop.algorithms.recipes.protocol import Needs
from coloop.models.heads import HeadSpec, with_each_head
from coloop.spec.dtypes import trained_dtypes
from coloop.spec.model import Lora
from coloop.workers.training import (
    ALONE,
    BACKENDS,
    Adapter,
    Ranks,
    SingleBackend,
    TrainBatch,
    leave,
)
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.learner import Learner
from coloop.workers.training.states import ModelStates

TOKENS = 11
TERMS = 10_000
"""More roundings than these updates have, there and back."""
BOTH = Needs(log_probs=False, values=True, scores=True)
STEPS = Needs(log_probs=False, steps=True)

NEEDS_DEEPSPEED = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed"),
]
BACKENDS_HERE = [
    ("single", 1),
    ("fsdp2", 2),
    pytest.param("fsdp2-2", 2, marks=pytest.mark.slow),
    *(pytest.param(f"deepspeed-{stage}", 2, marks=NEEDS_DEEPSPEED) for stage in (2, 3)),
]


@pytest.fixture
def batch() -> Batch:
    return collate(random_load("grpo", size=9, seed=3).rows)


PACKINGS = [
    ForwardOptions(),
    ForwardOptions(packing="rows", packed_row_tokens=16),
    ForwardOptions(packing="varlen"),
]


def slowly(model: PreTrainedModel, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row alone in float64: the value before each trained token, the score at the last."""
    exact: Any = copy.deepcopy(model).double()
    values = torch.zeros(batch.token_ids.shape, dtype=torch.float64)
    scores = []
    for row, length in enumerate(batch.lengths()):
        states = exact.base_model(input_ids=batch.token_ids[row : row + 1, :length])[0]
        said = exact.score(states)[0, :, 0]
        scores.append(said[-1:])
        for t in range(1, length):
            if batch.loss_mask[row, t]:
                values[row, t] = said[t - 1]
    return values, torch.stack(scores)


@pytest.mark.parametrize("options", PACKINGS, ids=["padded", "packed", "end to end"])
def test_a_step_is_read_at_its_own_token(options: ForwardOptions, batch: Batch) -> None:
    model: Any = tiny_model(head="score")
    exact: Any = copy.deepcopy(model).double()
    expected = torch.zeros(batch.token_ids.shape, dtype=torch.float64)
    for row, length in enumerate(batch.lengths()):
        said = exact.score(exact.base_model(input_ids=batch.token_ids[row : row + 1, :length])[0])
        expected[row, :length] = torch.where(batch.loss_mask[row, :length], said[0, :, 0], 0.0)

    found = TokenModel(model, options).outputs(batch, STEPS)

    assert_near(found.steps, expected, terms=forward_terms(model, TOKENS), scale=4.0)
    assert found.values is None


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", PACKINGS, ids=["padded", "packed", "end to end"])
@pytest.mark.parametrize("kind", CONFIGS)
def test_values_and_scores_and_their_gradients_equal_those_of_rows_alone(
    kind: str, options: ForwardOptions, batch: Batch
) -> None:
    model = tiny_model(kind, head="score")
    exact = copy.deepcopy(model).double()
    weights = torch.randn(batch.token_ids.shape, generator=torch.Generator().manual_seed(1))

    def gradient(outputs: Any, of: PreTrainedModel) -> list[torch.Tensor]:
        ((weights * outputs[0]).sum() + outputs[1].square().sum()).backward()
        return [p.grad for p in of.parameters() if p.grad is not None]

    expected = slowly(model, batch)
    found = TokenModel(model, options).outputs(batch, BOTH)
    assert_near(found.values, expected[0], terms=forward_terms(model, TOKENS), scale=4.0)
    assert_near(found.scores, expected[1], terms=forward_terms(model, TOKENS), scale=4.0)
    own = gradient((found.values, found.scores), model)
    said = TokenModel(exact).outputs(batch, BOTH)
    terms = gradient_terms(exact, TOKENS, batch.size)
    wanted = gradient((said.values, said.scores), exact)
    scale = max(float(one.abs().max()) for one in wanted)
    for ours, theirs in zip(own, wanted, strict=True):
        assert_near(ours, theirs, terms=terms, scale=scale)


def test_one_pass_says_words_and_values_of_a_model_that_has_both_heads(batch: Batch) -> None:
    model: Any = tiny_model()
    torch.manual_seed(0)
    model.score = torch.nn.Linear(16, 1, bias=False)

    both = TokenModel(model).outputs(batch, Needs(values=True))

    assert torch.equal(both.log_probs, TokenModel(tiny_model()).outputs(batch).log_probs)
    assert (both.values[batch.loss_mask] != 0).all()
    assert (both.values[~batch.loss_mask] == 0).all()


def test_what_a_model_has_no_head_for_is_refused_by_name(batch: Batch) -> None:
    with pytest.raises(ValueError, match="Qwen3ForCausalLM has no score head"):
        TokenModel(tiny_model()).outputs(batch, BOTH)
    with pytest.raises(ValueError, match="SequenceClassification has no language-model head"):
        TokenModel(tiny_model(head="score")).outputs(batch)


ROLES = "actor", "b"
"""Who learns from the loads below."""
HEADS_OF_ROLES = [f"score.{role}_head.weight" for role in ROLES]
NUMBERS = {"fsdp2": "tensor_parallel", "deepspeed": "zero_stage"}
"""What stands after the name of a backend."""


def section(backend: str, **fields: Any) -> Any:
    name, _, number = backend.partition("-")
    own = {"lr": 0.5, "optimizer": {"name": "adamw", "epsilon": 1.0}, "mini_batch": 5}
    named = {NUMBERS[name]: int(number)} if number else {}
    return training_section(**{**own, "micro_batch": 2, "backend": name, **named, **fields})


def loads_of(update: int) -> list[TrainBatch]:
    """A critic's rows, then a scorer's pairs beside numbers, then fewer rows than ranks."""
    if update == 0:
        return [random_load("value", size=11)]
    if update == 1:
        return [random_load("bradley_terry", size=7), random_load("regression", size=3, role="b")]
    steps = random_load("outcome", size=1, seed=3, role="b", reading="steps")
    return [random_load("value", size=1, seed=2), steps]


def three_updates(ranks: Ranks, name: str, heads: int = 1) -> dict[str, Any]:
    """
    Args:
        heads: 2: each of the roles reads one of its own.
    """
    training = section("single" if name == "float64" else name)
    model = tiny_model(head="score", num_attention_heads=4, num_key_value_heads=2)
    if heads == 2:
        wanted = [HeadSpec(node=node, classes=1, seed=k) for k, node in enumerate(ROLES)]
        model = with_each_head(model, wanted, of=None, beside_words=False)
    backend: Any
    if name == "float64":
        states = ModelStates(model.double(), training.optimizer)
        backend = Learner(TokenModel(model), states, group="critic")
    else:
        kind = BACKENDS[name.partition("-")[0]]
        dtypes = trained_dtypes(training)
        backend = kind(model, training, group="critic", dtypes=dtypes, ranks=ranks)
    backend.begin_phase(3)
    rows = random_load("value", size=5, seed=7)
    found: dict[str, Any] = {
        "values": backend.score(rows.rows, "values", node="actor"),
        "scores": backend.score(rows.rows, "scores", node="b"),
        "steps": backend.score(rows.rows, "steps", node="actor"),
        "prepared": [row.values for row in backend.prepare([rows], training, seed=0)[0].rows],
        "seen": backend.evaluate(loads_of(0), training).metrics,
    }
    found["reports"] = [backend.update(loads_of(k), training, seed=k).metrics for k in range(3)]
    found["weights"] = {key: one.detach().clone() for key, one in backend.weights()}
    state = copy.deepcopy(ranks.gathered(backend.state_dict())[0])
    for turn in ("further", "further again"):  # the second head rests, its running means stay
        backend.update(loads_of(0), training, seed=9)
        backend.update(loads_of(1), training, seed=10)
        found[turn] = {key: one.detach().clone() for key, one in backend.weights()}
        backend.load_state_dict(state)
        found["again"] = {key: one.detach().clone() for key, one in backend.weights()}
    return found


@cache
def expected(heads: int) -> dict[str, Any]:
    return three_updates(ALONE, "float64", heads)


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    yield
    leave()


@pytest.mark.sample(1)
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(("name", "size"), BACKENDS_HERE)
def test_every_backend_learns_values_and_scores_as_float64_does(
    name: str, size: int, heads: int, tmp_path: Path
) -> None:
    ranks = (
        [three_updates(ALONE, name, heads)]
        if size == 1
        else on_ranks(size, three_updates, tmp_path, name, heads)
    )

    wanted = expected(heads)
    for found in ranks:
        for what in ("values", "scores", "steps", "prepared"):
            for ours, theirs in zip(found[what], wanted[what], strict=True):
                assert_near(ours, theirs, terms=TERMS)
        assert dict(found["seen"]["actor"]) == near(wanted["seen"]["actor"], terms=TERMS)
        for ours, theirs in zip(found["reports"], wanted["reports"], strict=True):
            for role, metrics in theirs.items():
                assert dict(ours[role]) == near(dict(metrics), terms=TERMS)
        assert list(found["weights"]) == list(wanted["weights"])
        for key, weight in found["weights"].items():
            assert_near(weight, wanted["weights"][key], terms=TERMS, scale=1.0)
            assert torch.equal(found["again"][key], weight)
            assert_near(found["further"][key], wanted["further"][key], terms=2 * TERMS, scale=1.0)
            assert torch.equal(found["further again"][key], found["further"][key])


def test_what_one_node_learns_leaves_the_head_of_another_as_it_is() -> None:
    wanted = [HeadSpec(node=node, classes=1, seed=k) for k, node in enumerate(ROLES)]
    model = with_each_head(tiny_model(), wanted, of=None, beside_words=True)
    backend = SingleBackend(model, training_section(lr=0.1))
    weights = [{name: one.clone() for name, one in backend.weights()}]
    for role in ROLES:  # the second with running means of the first's update
        backend.update([random_load("regression", role=role)], training_section(lr=0.1), seed=0)
        weights.append({name: one.clone() for name, one in backend.weights()})

    changed = [
        [not torch.equal(after[name], before[name]) for name in HEADS_OF_ROLES]
        for before, after in pairwise(weights)
    ]
    assert changed == [[True, False], [False, True]]


def test_the_variance_explained_is_that_of_the_whole_order() -> None:
    rows = random_load("value", size=9, seed=4)
    training = training_section(mini_batch=4, micro_batch=1)
    backend = SingleBackend(tiny_model(head="score"), training)
    values = torch.tensor([x for one in backend.score(rows.rows, "values") for x in one.tolist()])
    truth = torch.tensor([x for row in rows.rows for x in row.returns.tolist()])
    own = torch.tensor([x for row in rows.rows for x in row.loss_mask.tolist()])

    report = backend.evaluate([rows], training)

    left = (truth - values)[own].double()
    by_hand = 1 - float(left.var(unbiased=False) / truth[own].double().var(unbiased=False))
    assert report.metrics["actor"]["explained_variance"] == near(by_hand, terms=TERMS)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("algorithm", "fields", "name"),
    [
        ("value", {}, "values"),
        ("grpo", {"loss": "clip_cov", "covariance_share": 0.2}, "clip_cov_kept"),
        ("grpo", {"loss": "kl_cov", "covariance_share": 0.2}, "kl_cov_selected"),
    ],
)
def test_what_is_prepared_is_measured_once_for_all_repeats_of_an_order(
    algorithm: str, fields: dict[str, Any], name: str
) -> None:
    head = "score" if algorithm == "value" else "words"
    training = training_section(lr=0.1, mini_batch=3, epochs=2)
    backend = SingleBackend(tiny_model(head=head), training)
    load = random_load(algorithm, size=8, seed=1, **fields)
    seen: list[torch.Tensor] = []

    class Watching:
        """The recipe, and what its loss compares with."""

        def __getattr__(self, asked: str) -> Any:
            return getattr(load.recipe, asked)

        def loss(self, batch: Any, outputs: Any, settings: Any) -> Any:
            by_id = dict(zip(batch.ids, batch.given(name), strict=True))
            seen.append(by_id["row0"] if "row0" in by_id else torch.empty(0))
            return load.recipe.loss(batch, outputs, settings)

    recipe: Any = Watching()
    (ready,) = backend.prepare([replace(load, recipe=recipe)], training, seed=3)
    for turn in range(2):
        backend.update([ready], training, seed=turn)

    found = [one[one != 0] for one in seen if one.numel()]
    assert len(found) == 4  # two epochs, twice
    assert all(torch.equal(one, found[0]) for one in found)


def test_a_batch_wide_number_is_prepared_where_one_step_is_the_whole_order() -> None:
    training = training_section()
    for algorithm, head, fields in (
        ("grpo", "words", {"loss": "kl_cov"}),
        ("grpo", "words", {}),
        ("value", "score", {}),
    ):
        passes: list[int] = []
        backend = SingleBackend(tiny_model(head=head), training)
        plain: Callable[..., Any] = backend._tokens.outputs
        backend._tokens.outputs = lambda *a, plain=plain, passes=passes, **k: (  # type: ignore[method-assign]
            passes.append(1) or plain(*a, **k)
        )
        backend.update([random_load(algorithm, size=4, **fields)], training, seed=0)
        assert len(passes) == (2 if fields else 1)  # old values and log-probs cost no pass


def test_an_adapter_leaves_the_head_whole_and_its_checkpoint_goes_on() -> None:
    if find_spec("peft") is None:
        pytest.skip("needs peft")
    adapter = Adapter(lora=Lora(rank=2), seed=1)
    training = training_section(lr=0.1)

    def build() -> SingleBackend:
        return SingleBackend(tiny_model(head="score"), training, adapter=adapter)

    backend, before = build(), dict(tiny_model(head="score").named_parameters())
    backend.update([random_load("value")], training, seed=0)
    state = backend.state_dict()
    after = {name: weight.clone() for name, weight in backend.weights()}
    resumed = build()
    resumed.load_state_dict(state)

    assert list(after) == list(before)
    assert "score.weight" in state["adapter"]
    assert not torch.equal(after["score.weight"], before["score.weight"])
    assert torch.equal(after["model.embed_tokens.weight"], before["model.embed_tokens.weight"])
    assert all(torch.equal(weight, after[name]) for name, weight in resumed.weights())


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["qwen3", "llama", "mistral", "gemma3"])
@pytest.mark.parametrize("algorithm", ["grpo", "dpo", "value", "bradley_terry"])
def test_packing_chunks_and_computing_again_change_no_update(algorithm: str, kind: str) -> None:
    """Two steps of micro-batches by tokens, against padded rows in float64."""
    head = "score" if algorithm in ("value", "bradley_terry") else "words"
    plain = training_section(lr=0.05, optimizer={"name": "sgd"}, mini_batch=4)
    sparing = plain.model_copy(update={"gradient_checkpointing": True, "loss_chunk": 5})
    exact = tiny_model(kind, head=head).double()
    wanted = Learner(TokenModel(exact), ModelStates(exact, plain.optimizer))
    backend = SingleBackend(tiny_model(kind, head=head), sparing, is_packed=True, tokens_at_once=24)

    told = [
        one.update([random_load(algorithm, size=7, seed=5)], section, seed=1).metrics["actor"]
        for one, section in ((backend, sparing), (wanted, plain))
    ]

    assert dict(told[0]) == near(dict(told[1]), terms=TERMS)
    for (_, ours), (_, theirs) in zip(backend.weights(), wanted.weights(), strict=True):
        assert_near(ours, theirs, terms=TERMS, scale=1.0)
