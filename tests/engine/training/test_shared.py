"""Texts that begin alike are read once, and say and teach what they do when each is read alone."""

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, forward_terms, gradient_terms
from tests.engine.training.conftest import (
    CONFIGS,
    VOCABULARY,
    settings_of,
    tiny_model,
    training_section,
)
from tests.engine.training.processes import on_ranks
from transformers import PreTrainedModel, Qwen2Config

from coloop.algorithms.batch import Batch, Sequence, collate, completion_sequence, split_units
from coloop.algorithms.batch.passes import tokens_of
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import Needs
from coloop.spec.dtypes import trained_dtypes
from coloop.spec.model import Lora
from coloop.workers.cpu import slabs as slabs_of_texts
from coloop.workers.cpu.slabs import shared
from coloop.workers.training import Adapter, Ranks, SingleBackend, TrainBatch
from coloop.workers.training import forward as forwards
from coloop.workers.training.adapters import add_adapter
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.fsdp2 import Fsdp2Backend
from coloop.workers.training.ranks import shares_of
from coloop.workers.training.scorer import ScoresTexts

KINDS = ("qwen3", "qwen2", "llama", "mistral")
PROMPTS = ((5, 6, 7, 8), (5, 6, 7), (9, 10, 11, 12, 13, 14), (3,), (15, 16))
"""The first begins as the second does; the last but one is a single token."""
GROUPS = (4, 3, 5, 2, 1)
"""Rows of each; the last stands alone."""
LONGEST = 18


def rows_of_groups(
    seed: int = 0, mask: Callable[[int], list[bool]] | None = None
) -> list[Sequence]:
    """Completions of 1 to 12 tokens behind prompts of 1 to 6, mixed; one row is like another."""
    generator = torch.Generator().manual_seed(0)

    def drawn(most: int) -> int:
        return int(torch.randint(1, most + 1, (), generator=generator))

    rows = []
    for group, (prompt, size) in enumerate(zip(PROMPTS, GROUPS, strict=True)):
        for row in range(size):
            length = drawn(12)
            ids = torch.randint(VOCABULARY, (length,), generator=generator).tolist()
            rows.append(
                completion_sequence(
                    id=f"{group}.{row}",
                    prompt_ids=prompt,
                    completion_ids=ids,
                    loss_mask=[True] * length if mask is None else mask(length),
                    log_probs_rollout=[-2.5] * length,
                    log_probs_reference=[-2.0] * length,
                    advantages=float(torch.randn((), generator=generator)),
                    group=str(group),
                )
            )
    rows.append(replace(rows[0], id="again"))
    order = torch.randperm(len(rows), generator=generator).tolist()
    return [rows[place] for place in order]


def built(kind: str, **fields: Any) -> PreTrainedModel:
    if kind == "qwen2":
        CONFIGS.setdefault(kind, (Qwen2Config, {}))
    window = {"sliding_window": 32} if kind == "mistral" else {}
    return tiny_model(kind, num_attention_heads=4, num_key_value_heads=2, **{**window, **fields})


@pytest.fixture
def shared_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of each batch that was read as a row of slabs."""
    found: list[int] = []

    def watched(batch: Batch, *, is_whole: bool) -> Any:
        row = shared(batch, is_whole=is_whole)
        if row is not None:
            found.append(row[0]["input_ids"].numel())
        return row

    monkeypatch.setattr(forwards, "shared", watched)
    monkeypatch.setattr(slabs_of_texts, "SLAB_TOKENS", 4)
    return found


def measured(
    model: PreTrainedModel, batch: Batch, options: ForwardOptions, needs: Needs
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What is said, and the gradient of its weighted sum."""
    model.zero_grad()
    outputs = TokenModel(model, options).outputs(batch, needs)
    said = [outputs.log_probs, outputs.entropy, outputs.values, outputs.scores]
    there = [one for one in said if one is not None]
    generator = torch.Generator().manual_seed(1)
    loss = sum((torch.randn(one.shape, generator=generator) * one).sum() for one in there)
    loss.backward()  # type: ignore[union-attr]
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return [one.detach() for one in there], gradients


def load_of_groups() -> TrainBatch:
    settings = settings_of("grpo")
    return TrainBatch(
        role="actor",
        port="rewards",
        recipe=recipe_of(settings),
        settings=settings,
        rows=rows_of_groups(),
    )


HEADS = {
    "words": Needs(entropy_gradient=True),
    "score": Needs(log_probs=False, values=True, scores=True),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_says_and_teaches_what_rows_alone_do(
    kind: str, head: Any, shared_rows: list[int]
) -> None:
    batch = collate(rows_of_groups())
    model = built(kind, head=head)
    exact, rough = copy.deepcopy(model).double(), copy.deepcopy(model)
    expected, gradients = measured(exact, batch, ForwardOptions(), HEADS[head])
    half = ForwardOptions(autocast=torch.bfloat16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forwards, "learn_lean", lambda *_: [])
        rough_said, rough_gradients = measured(rough, batch, half, HEADS[head])
    assert not shared_rows

    said, found = measured(model, batch, ForwardOptions(), HEADS[head])
    half_said, half_gradients = measured(model, batch, half, HEADS[head])

    assert shared_rows == [shared_rows[0]] * 2
    assert shared_rows[0] < batch.size * (batch.token_ids.shape[1] - 1) * 0.75
    terms, scale = gradient_terms(model, LONGEST, batch.size), max(map(greatest, gradients))
    for one, true in zip(said, expected, strict=True):
        assert_near(one, true, terms=forward_terms(model, LONGEST))
    for one, true in zip(found, gradients, strict=True):
        assert_near(one, true, terms=terms, scale=scale)
    assert distance(half_said, expected) <= 2 * distance(rough_said, expected)
    assert distance(half_gradients, gradients) <= 2 * distance(rough_gradients, gradients)


def greatest(numbers: torch.Tensor) -> float:
    return float(numbers.abs().max())


def distance(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    pairs = zip(found, exact, strict=True)
    return sum(float((one - true).norm() / true.norm()) for one, true in pairs)


@pytest.mark.parametrize("why", ["checkpointing", "chunks", "tools", "rows that train nothing"])
def test_what_stands_around_it_changes_nothing(why: str, shared_rows: list[int]) -> None:
    options = ForwardOptions(loss_chunk=7 if why == "chunks" else None)
    rows = rows_of_groups()
    if why == "tools":
        rows = rows_of_groups(mask=lambda size: [place % 5 not in (2, 3) for place in range(size)])
    batch = collate(rows)
    if why == "rows that train nothing":
        mask = batch.loss_mask.clone()
        mask[::3] = False
        batch = replace(batch, loss_mask=mask)
    model = built("qwen3")
    expected, gradients = measured(
        copy.deepcopy(model).double(), batch, ForwardOptions(), HEADS["words"]
    )
    if why == "checkpointing":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()

    said, found = measured(model, batch, options, HEADS["words"])

    assert len(shared_rows) == 1
    terms, scale = gradient_terms(model, LONGEST, batch.size), max(map(greatest, gradients))
    for one, true in zip(said, expected, strict=True):
        assert_near(one, true, terms=forward_terms(model, LONGEST))
    for one, true in zip(found, gradients, strict=True):
        assert_near(one, true, terms=terms, scale=scale)


@pytest.mark.parametrize("why", ["another family", "a window", "adapters", "packing", "float64"])
def test_a_model_that_cannot_reads_rows(why: str, shared_rows: list[int]) -> None:
    batch = collate(rows_of_groups())
    model = tiny_model("gemma2") if why == "another family" else built("qwen3")
    if why == "a window":
        model = built("mistral", sliding_window=4)
    if why == "float64":
        model.double()
    tokens = TokenModel(model, ForwardOptions(packing="rows" if why == "packing" else "none"))
    if why == "adapters":
        pytest.importorskip("peft")
        add_adapter(model, Adapter(lora=Lora(rank=2), seed=0))

    tokens.outputs(batch)

    assert shared_rows == []
    units, lengths = range(batch.size), batch.lengths()
    assert tokens.split(units, lengths, batch) == tokens.split(units, lengths)


@pytest.mark.parametrize("fields", [{}, {"micro_batch": 3}, {"mini_batch": 5}])
def test_updates_are_those_of_rows_alone(
    fields: dict[str, Any], shared_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups may lie in several micro-batches; which rows make a step is decided before."""
    model = built("llama")
    training = training_section(optimizer={"name": "sgd"}, lr=1.0, **fields)

    def taught(is_shared: bool) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        monkeypatch.setattr(TokenModel, "_reads_shared", reads if is_shared else lambda *_: False)
        backend = SingleBackend(copy.deepcopy(model), training, tokens_at_once=64)
        report = backend.update([load_of_groups()], training, seed=3)
        return dict(backend.weights()), dict(report.metrics["actor"])

    reads = TokenModel._reads_shared
    plain, plain_metrics = taught(False)
    assert not shared_rows
    found, metrics = taught(True)

    assert shared_rows
    before = dict(model.named_parameters())
    steps = 1 if "mini_batch" not in fields else 4
    for name, weight in plain.items():
        moved = greatest(weight - before[name].detach())
        assert_near(
            found[name],
            weight,
            terms=2 * steps * gradient_terms(model, LONGEST, 16),
            scale=max(greatest(weight), moved),
        )
    assert metrics["optimizer_steps"] == plain_metrics["optimizer_steps"] == steps
    assert metrics["entropy"] == pytest.approx(plain_metrics["entropy"], rel=1e-3)


def taught_over(ranks: Ranks) -> list[tuple[dict[str, torch.Tensor], int]]:
    """Weights after a step of ranks that hold parts of them, and of ranks that hold them whole;
    with how many rows of slabs this rank read."""
    training = training_section(optimizer={"name": "sgd"}, lr=1.0, backend="fsdp2")
    found = []
    for is_spread in (True, False):
        seen: list[Any] = []

        def watched(batch: Batch, *, is_whole: bool, seen: list[Any] = seen) -> Any:
            row = shared(batch, is_whole=is_whole)
            seen.extend([] if row is None else [row])
            return row

        forwards.shared, slabs_of_texts.SLAB_TOKENS = watched, 4
        backend = Fsdp2Backend(
            built("llama"),
            training,
            dtypes=trained_dtypes(training),
            ranks=ranks,
            is_spread=is_spread,
        )
        backend.update([load_of_groups()], training, seed=3)
        found.append(({name: one.clone() for name, one in backend.weights()}, len(seen)))
    return found


@pytest.mark.slow
def test_ranks_share_what_they_read_as_one_does(tmp_path: Path) -> None:
    training = training_section(optimizer={"name": "sgd"}, lr=1.0)
    single = SingleBackend(built("llama"), training)
    single.update([load_of_groups()], training, seed=3)
    expected = dict(single.weights())

    for own in on_ranks(2, taught_over, tmp_path):
        for weights, count in own:
            assert count > 0
            for name, weight in expected.items():
                assert_near(
                    weights[name],
                    weight,
                    terms=2 * gradient_terms(single.model, LONGEST, 16),
                    scale=max(greatest(weight), 1.0),
                )


def test_scores_of_groups_are_those_of_rows_alone(shared_rows: list[int]) -> None:
    model = TokenModel(built("qwen3"))
    rows = rows_of_groups()

    together = ScoresTexts(model).score(rows)
    assert shared_rows
    alone = [ScoresTexts(model).score([row])[0] for row in rows]

    scale = max(abs(number) for row in alone for number in row)
    for ours, theirs in zip(together, alone, strict=True):
        assert_near(ours, theirs, terms=forward_terms(model.model, LONGEST), scale=scale)


def test_prompts_are_told_by_their_tokens() -> None:
    rows = rows_of_groups()
    batch = collate(rows)

    by_number: dict[int, set[str]] = {}
    for row, number in zip(rows, batch.prompts.tolist(), strict=True):
        by_number.setdefault(number, set()).add(row.group)
    assert sorted(map(sorted, by_number.values())) == [["0"], ["1"], ["2"], ["3"], ["4"]]
    assert batch.prompt_lengths.tolist() == [row.prompt_length for row in rows]
    assert tokens_of([[0, 1]], batch.lengths(), batch)[0] <= sum(batch.lengths()[:2])
    same = collate([replace(rows[0], id="twin", group="other"), rows[0]])
    assert same.prompts.tolist() == [0, 0]
    untrained = replace(rows[0], loss_mask=[False] * len(rows[0].token_ids))
    assert collate([untrained]).prompt_lengths.tolist() == [len(rows[0].token_ids)]


@pytest.mark.parametrize("tokens", [24, 60, 1000])
@pytest.mark.parametrize("most_rows", [None, 3])
def test_rows_that_begin_alike_stand_together_within_the_limits(
    tokens: int, most_rows: int | None
) -> None:
    batch = collate(rows_of_groups())
    lengths, prompts = batch.lengths(), batch.prompts.tolist()

    parts = split_units(range(batch.size), lengths, batch, rows=most_rows, tokens=tokens)

    order = [unit for part in parts for unit in part]
    assert sorted(order) == list(range(batch.size))
    numbers = [prompts[unit] for unit in order]
    assert len(list(groupby(numbers))) == len(GROUPS)
    for part in parts:
        assert most_rows is None or len(part) <= most_rows
        assert len(part) == 1 or tokens_of([part], lengths, batch)[0] <= tokens


def test_ranks_have_whole_groups_where_that_is_less_to_read() -> None:
    batch = collate(rows_of_groups())
    lengths, prompts = batch.lengths(), batch.prompts.tolist()

    shares = shares_of(range(batch.size), lengths, 2, batch)
    numbers = [{prompts[unit] for unit in share} for share in shares]
    one_group = [unit for unit, number in enumerate(prompts) if number == 0]
    halves = shares_of(one_group, lengths, 2, batch)

    assert sorted(unit for share in shares for unit in share) == list(range(batch.size))
    assert not numbers[0] & numbers[1]
    assert all(halves)
