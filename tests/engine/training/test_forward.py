"""Log-probs of trained tokens equal a full forward pass, however they are computed."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, forward_terms, gradient_terms
from tests.engine.training.conftest import CONFIGS
from transformers import PreTrainedModel

from coloop.algorithms.batch import Batch, collate
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.protocol import Needs
from coloop.errors import BackendMissing
from coloop.plan.settings import settings
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.scorer import Scorer, ScoresTexts

Build = Callable[..., PreTrainedModel]

TOKENS = 11
"""Of the longest row: a prompt of 4 and a completion of 7."""


@pytest.fixture
def batch(make_load: Callable[..., Any]) -> Batch:
    return collate(make_load("grpo", size=9, seed=3).rows)


def full_log_probs(model: PreTrainedModel, batch: Batch, temperature: float) -> torch.Tensor:
    """The slow way: each row alone, all logits, weights and products in float64."""
    exact = copy.deepcopy(model).double()
    found = torch.zeros(batch.token_ids.shape, dtype=torch.float64)
    for row, length in enumerate(batch.lengths()):
        ids = batch.token_ids[row : row + 1, :length]
        logits = exact(input_ids=ids).logits[0] / temperature
        log_probs = logits.log_softmax(-1)
        for t in range(1, length):
            if batch.loss_mask[row, t]:
                found[row, t] = log_probs[t - 1, ids[0, t]]
    return found


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_equal_a_full_forward(
    build_model: Build, batch: Batch, kind: str, temperature: float
) -> None:
    model = build_model(kind)

    with torch.no_grad():
        found = TokenModel(model).outputs(batch, temperature=temperature).log_probs
        expected = full_log_probs(model, batch, temperature)

    assert_near(found, expected, terms=forward_terms(model, TOKENS))
    assert (found[~batch.loss_mask] == 0).all()


@pytest.mark.parametrize("chunk", [None, 5])
def test_each_row_may_have_its_own_temperature(
    build_model: Build, batch: Batch, chunk: int | None
) -> None:
    model = TokenModel(build_model(), ForwardOptions(loss_chunk=chunk))
    heats = torch.tensor([1.0, 0.5, 0.7] * 3)

    found = model.outputs(batch, Needs(entropy=True), temperature=heats)
    alone = {heat: model.outputs(batch, Needs(entropy=True), temperature=heat) for heat in (0.5, 1)}

    terms = forward_terms(model.model, TOKENS)
    for row in (0, 1):
        expected = alone[float(heats[row])]
        assert_near(found.log_probs[row], expected.log_probs[row], terms=terms)
        assert_near(found.entropy[row], expected.entropy[row], terms=terms)
    own = batch.loss_mask[2]
    assert ((found.log_probs[2] - alone[1.0].log_probs[2]).abs()[own] > 1e-2).any()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options",
    [
        ForwardOptions(loss_chunk=1),
        ForwardOptions(loss_chunk=5),
        ForwardOptions(packing="rows", packed_row_tokens=16),
        ForwardOptions(packing="rows", loss_chunk=7),
        ForwardOptions(packing="varlen"),
    ],
    ids=["one token", "chunks", "packed", "packed in chunks", "end to end"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", CONFIGS)
def test_chunks_and_packing_change_neither_numbers_nor_gradients(
    build_model: Build, batch: Batch, options: ForwardOptions, kind: str, dtype: torch.dtype
) -> None:
    """In both types against float64, where rounding hides nothing."""
    exact = build_model(kind).double()
    weights = torch.randn(batch.token_ids.shape, generator=torch.Generator().manual_seed(1))

    expected = measure(exact, batch, weights, ForwardOptions())
    found = measure(copy.deepcopy(exact).to(dtype), batch, weights, options)

    if kind.startswith("gemma"):
        dtype = torch.float32  # its softmax is in float32, whatever its weights are
    terms = gradient_terms(exact, TOKENS, batch.size)
    scale = max(float(gradient.abs().max()) for gradient in expected[2])
    assert_near(found[0], expected[0], terms=terms, dtype=dtype)
    assert_near(found[1], expected[1], terms=terms, dtype=dtype)
    for gradient, wanted in zip(found[2], expected[2], strict=True):
        assert_near(gradient, wanted, terms=terms, scale=scale, dtype=dtype)


def measure(
    model: PreTrainedModel, batch: Batch, weights: torch.Tensor, options: ForwardOptions
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Log-probs and entropies, and the gradient of their weighted sum."""
    model.zero_grad()
    outputs = TokenModel(model, options).outputs(batch, Needs(entropy_gradient=True))
    assert outputs.entropy is not None
    (weights * (outputs.log_probs + outputs.entropy)).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return outputs.log_probs.detach(), outputs.entropy.detach(), gradients


@pytest.mark.parametrize("seed", range(3))
def test_what_bfloat16_rounds_away_is_no_sight_of_others(seed: int, build_model: Build) -> None:
    """Logits as large as those of a model that has learned, behind more layers than two."""
    shape = {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 32}
    model = build_model(seed=seed, initializer_range=0.15, **shape)

    TokenModel(model, ForwardOptions(packing="rows", autocast=torch.bfloat16))


@pytest.mark.parametrize(
    "options",
    [
        ForwardOptions(packing="rows"),
        ForwardOptions(packing="rows", autocast=torch.bfloat16),
        ForwardOptions(packing="varlen"),
    ],
    ids=["rows", "rows in bfloat16", "end to end"],
)
def test_a_model_that_lets_packed_sequences_see_each_other_is_refused(
    options: ForwardOptions, build_model: Build
) -> None:
    model = build_model()
    plain = model.forward

    def blind(input_ids: torch.Tensor, **kwargs: Any) -> Any:
        return plain(input_ids=input_ids, use_cache=False)

    model.forward = blind

    with pytest.raises(BackendMissing, match="Qwen3ForCausalLM lets packed sequences see each"):
        TokenModel(model, options)


def test_a_model_that_changes_its_logits_after_the_head_is_run_whole(
    build_model: Build, batch: Batch
) -> None:
    model = build_model()
    plain = model.forward

    def scaled(*args: Any, **kwargs: Any) -> Any:
        outputs = plain(*args, **kwargs)
        outputs.logits = outputs.logits * 3.0
        return outputs

    model.forward = scaled
    with torch.no_grad():
        found = TokenModel(model).outputs(batch).log_probs
        logits = plain(input_ids=batch.token_ids).logits * 3.0
        expected = (logits.double().log_softmax(-1))[:, :-1].gather(
            2, batch.token_ids[:, 1:, None]
        )[..., 0]

    own = batch.loss_mask[:, 1:]
    assert_near(found[:, 1:][own], expected[own], terms=forward_terms(model, TOKENS))


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_family_that_caps_its_logits_never_gives_them_whole(
    chunk: int | None, build_model: Build, batch: Batch
) -> None:
    model = build_model("gemma2", final_logit_softcapping=0.05)
    tokens = TokenModel(model, ForwardOptions(loss_chunk=chunk))

    with torch.no_grad():
        found = tokens.outputs(batch).log_probs
        expected = full_log_probs(model, batch, 1.0)

    assert tokens.net.is_apart
    assert_near(found, expected, terms=forward_terms(model, TOKENS))


def test_entropy_is_that_of_the_sampling_distribution(build_model: Build, batch: Batch) -> None:
    model = build_model()

    with torch.no_grad():
        found = TokenModel(model).outputs(batch, Needs(entropy=True), temperature=0.5).entropy
        logits = model(input_ids=batch.token_ids).logits / 0.5

    assert found is not None
    expected = torch.distributions.Categorical(logits=logits).entropy()[:, :-1]
    own = batch.loss_mask[:, 1:]
    assert_near(found[:, 1:][own], expected[own], terms=forward_terms(model, TOKENS))


def test_measured_entropy_carries_no_gradient(build_model: Build, batch: Batch) -> None:
    outputs = TokenModel(build_model()).outputs(batch, Needs(entropy=True))

    assert outputs.entropy is not None
    assert not outputs.entropy.requires_grad


def test_scores_do_not_depend_on_the_company_they_are_computed_in(
    build_model: Build, make_load: Callable[..., Any]
) -> None:
    model = TokenModel(build_model())
    rows: list[TokenSequence] = make_load("grpo", size=10).rows

    together = ScoresTexts(model).score(rows)
    alone = [ScoresTexts(model).score([row])[0] for row in rows]
    scale = max(abs(number) for row in alone for number in row)

    for row, ours, theirs in zip(rows, together, alone, strict=True):
        assert len(ours) == len(row.token_ids)
        assert_near(ours, theirs, terms=forward_terms(model.model, TOKENS), scale=scale)
    assert ScoresTexts(model).score([]) == []


def test_greedy_text_is_scored_at_temperature_one(
    build_model: Build, make_load: Callable[..., Any]
) -> None:
    model = TokenModel(build_model())
    rows = make_load("grpo", size=3).rows

    greedy, plain = ScoresTexts(model).score(rows, temperature=0.0), ScoresTexts(model).score(rows)
    assert [one.tolist() for one in greedy] == [one.tolist() for one in plain]


def test_scoring_ignores_what_a_row_brings_beside_its_tokens(
    build_model: Build, make_load: Callable[..., Any]
) -> None:
    model = TokenModel(build_model())
    rows = make_load("grpo", size=2).rows
    mixed = [rows[0], replace(rows[1], advantages=None, log_probs_rollout=None)]

    found, plain = ScoresTexts(model).score(mixed), ScoresTexts(model).score(rows)
    assert [one.tolist() for one in found] == [one.tolist() for one in plain]


def test_a_scorer_on_a_cpu_reads_as_much_at_once_as_a_learner_is_given(
    build_model: Build, make_load: Callable[..., Any]
) -> None:
    scorer = Scorer(build_model())

    scorer.score(make_load("grpo", size=900).rows)

    most = scorer.at_once()
    assert most is not None
    assert settings.CPU_TOKENS_AT_ONCE / 2 < most.tokens <= settings.CPU_TOKENS_AT_ONCE
