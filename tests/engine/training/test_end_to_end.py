"""Attention of sequences that lie end to end: the places of their tokens, the kernel that a GPU has
for them, and what stands in for it."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near
from torch import Tensor
from torch.nn.attention import varlen
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from coloop.algorithms.batch import Batch, collate
from coloop.models import LoadedModel
from coloop.models.build import copy_model
from coloop.workers.training import forward, packing
from coloop.workers.training.forward import ForwardOptions, TokenModel

Build = Callable[..., PreTrainedModel]
PACKED = ForwardOptions(packing="varlen")


def slow(
    query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int], window: int | None = None
) -> Tensor:
    """One token after another. query (H, S, D), key and value (K, S, D) -> (S, H, D)"""
    groups = query.shape[0] // key.shape[0]
    found = torch.zeros(query.shape[1], query.shape[0], query.shape[2], dtype=query.dtype)
    starts = torch.tensor([0, *lengths]).cumsum(0).tolist()
    for start, end in pairwise(starts):
        for at in range(start, end):
            first = start if window is None else max(start, at - window + 1)
            for head in range(query.shape[0]):
                seen = key[head // groups, first : at + 1]
                shares = (seen @ query[head, at] / query.shape[-1] ** 0.5).softmax(0)
                found[at, head] = shares @ value[head // groups, first : at + 1]
    return found


def states(length: int, *, heads: int = 4, kv_heads: int = 2, width: int = 8) -> list[Tensor]:
    made = torch.Generator().manual_seed(length)
    return [
        torch.randn(1, count, length, width, generator=made, dtype=torch.float64)
        for count in (heads, kv_heads, kv_heads)
    ]


class Attention(torch.nn.Module):
    """What transformers asks of a layer that attends."""

    num_key_value_groups = 2
    is_causal = True


def attend(parts: Sequence[Tensor], lengths: list[int], **more: Any) -> Tensor:
    row = packing.inputs_of(torch.zeros(sum(lengths), dtype=torch.int64), lengths)
    return packing.attend(
        Attention(), *parts, None, cu_seq_lens_q=row["cu_seq_lens_q"], texts=row["texts"], **more
    )[0]


def test_where_tokens_stand_in_batches_of_about_one_length() -> None:
    texts = packing.Lengths([3, 1, 4, 2, 3], torch.device("cpu"))

    assert [batch.tolist() for batch in texts.batches] == [
        [[3]],
        [[8, 9]],
        [[0, 1, 2, 2], [4, 5, 6, 7], [10, 11, 12, 12]],
    ]
    # 3 8 9 | 0 1 2 2 4 5 6 7 10 11 12 12
    assert texts.back.tolist() == [3, 4, 5, 0, 7, 8, 9, 10, 1, 2, 11, 12, 13]


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("lengths", [[7], [1, 1], [3, 9, 1, 4, 16, 2, 5]])
def test_each_token_sees_those_before_it_in_its_own_sequence(
    lengths: list[int], window: int | None
) -> None:
    parts = [one.requires_grad_() for one in states(sum(lengths))]

    found = attend(parts, lengths, sliding_window=window)[0]
    expected = slow(*(part[0] for part in parts), lengths, window)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(0)).double()
    ours = torch.autograd.grad((found * weights).sum(), parts)
    theirs = torch.autograd.grad((expected * weights).sum(), parts)

    assert_near(found, expected, terms=64, dtype=torch.float64)
    for one, other in zip(ours, theirs, strict=True):
        assert_near(one, other, terms=256, scale=10, dtype=torch.float64)


class Operations(TorchDispatchMode):
    """Counts operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def test_more_sequences_are_no_more_operations() -> None:
    counts = []
    for texts in (4, 64):
        parts = [one.requires_grad_() for one in states(6 * texts)]
        with Operations() as few:
            attend(parts, [6] * texts).sum().backward()
        counts.append(few.seen)

    assert sum(counts[0].values()) == sum(counts[1].values())


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every attention is taken by the kernel, which computes the slow way and notes its call."""
    calls: list[dict[str, Any]] = []

    def kernel(q: Tensor, k: Tensor, v: Tensor, starts: Tensor, _: Any, *rest: Any, **more: Any):
        calls.append({"types": {one.dtype for one in (q, k, v)}, "starts": starts.tolist(), **more})
        wide = [one.transpose(0, 1).float() for one in (q, k, v)]
        return slow(*wide, starts.diff().tolist()).to(v.dtype)

    def has_kernel(query: Tensor, value: Tensor, dropout: float) -> bool:
        return value.dtype in packing.HALVES and not dropout

    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    monkeypatch.setattr(packing, "_has_kernel", has_kernel)
    monkeypatch.setattr(forward, "attend_by_products", lambda *_: None)  # of a CPU alone
    monkeypatch.setattr(forward, "learn_lean", lambda *_: [])
    return calls


@pytest.mark.parametrize(
    ("held", "autocast"),
    [(torch.float32, torch.bfloat16), (torch.bfloat16, None), (torch.float32, torch.float16)],
    ids=["autocast", "bfloat16", "autocast to float16"],
)
def test_packed_rows_reach_the_kernel_in_the_type_of_the_products(
    held: torch.dtype,
    autocast: torch.dtype | None,
    on_gpu: list[dict[str, Any]],
    build_model: Build,
    make_load: Callable[..., Any],
) -> None:
    batch: Batch = collate(make_load("grpo", size=5, seed=3).rows)
    model = build_model("llama").to(held)
    padded = TokenModel(copy.deepcopy(model), ForwardOptions(autocast=autocast))
    packed = TokenModel(model, ForwardOptions(autocast=autocast, packing="varlen"))
    on_gpu.clear()

    with torch.no_grad():
        found, expected = packed.outputs(batch).log_probs, padded.outputs(batch).log_probs

    assert [call["types"] for call in on_gpu] == [{autocast or held}] * 2  # one call a layer
    assert on_gpu[0]["starts"] == [0, *torch.tensor(batch.lengths()).cumsum(0).tolist()]
    assert float((found - expected).abs().max()) < 0.05


def test_float32_is_no_matter_of_the_kernel(
    on_gpu: list[dict[str, Any]], build_model: Build, make_load: Callable[..., Any]
) -> None:
    batch: Batch = collate(make_load("grpo", size=5, seed=3).rows)

    TokenModel(build_model("llama"), PACKED).outputs(batch)

    assert not on_gpu


def test_a_copy_of_a_packed_learner_is_packed_as_well(
    build_model: Build, make_load: Callable[..., Any]
) -> None:
    batch: Batch = collate(make_load("grpo", size=5, seed=3).rows)
    first = TokenModel(build_model("qwen3"), PACKED)
    copied = copy_model(LoadedModel(model=first.model, tokenizer=None))

    second = TokenModel(copied.model, PACKED)

    assert torch.equal(first.outputs(batch).log_probs, second.outputs(batch).log_probs)
    padded = TokenModel(copy_model(copied).model)
    assert_near(padded.outputs(batch).log_probs, first.outputs(batch).log_probs, terms=512)
