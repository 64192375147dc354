"""Continuous batching changes speed, never text."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.engine.numerics import forward_terms, near
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import StopRequested
from coloop.rollout import Generation, GenerationRequest, TorchEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., GenerationRequest]

LOGITS = 10.0
"""Greatest logit of these models."""


def texts(rows: list[Generation]) -> list[list[int]]:
    return [row.token_ids for row in rows]


@pytest.fixture
def requests(prompts: list[list[int]], ask: Ask) -> list[GenerationRequest]:
    """Many ragged rows, some with the same prompt, with different lengths allowed."""
    return [
        ask(prompts[i % 7], id=str(i), seed=100 + i, max_new_tokens=1 + i % 17) for i in range(60)
    ]


@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
@pytest.mark.parametrize("slots", [1, 3, 16, 60])
def test_few_slots_write_the_same_as_many(
    family: str,
    slots: int,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    requests: list[GenerationRequest],
) -> None:
    all_at_once = TorchEngine(models(family), tokenizer, max_num_seqs=60).generate(requests)

    engine = TorchEngine(models(family), tokenizer, max_num_seqs=slots)
    found = engine.generate(requests)

    assert texts(found) == texts(all_at_once)
    for one, other in zip(found, all_at_once, strict=True):
        terms = forward_terms(models(family), 40)
        assert one.log_probs == near(other.log_probs, terms=terms, scale=LOGITS)


def test_a_small_cache_holds_fewer_rows_and_writes_the_same(
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    requests: list[GenerationRequest],
) -> None:
    wide = TorchEngine(models("qwen3"), tokenizer).generate(requests)
    row = 2 * 2 * 2 * 16 * 4 * (14 + 17 + 8)  # layers, both, heads, width, bytes, tokens

    for size in (1, 2 * row, 5 * row):
        narrow = TorchEngine(models("qwen3"), tokenizer, cache_bytes=size)
        assert texts(narrow.generate(requests)) == texts(wide)


def test_a_row_does_not_depend_on_its_company_or_its_place(
    engine: TorchEngine, requests: list[GenerationRequest]
) -> None:
    together = texts(engine.generate(requests))

    assert texts(engine.generate(requests[::-1])) == together[::-1]
    for place in (0, 7, 31, 59):
        assert texts(engine.generate([requests[place]])) == [together[place]]


def test_the_same_batch_is_the_same_bit_for_bit(
    engine: TorchEngine, requests: list[GenerationRequest]
) -> None:
    first = engine.generate(requests)

    assert engine.generate(requests) == first


def test_answers_come_in_the_order_of_the_requests(
    engine: TorchEngine, requests: list[GenerationRequest]
) -> None:
    assert [row.id for row in engine.generate(requests)] == [r.id for r in requests]


def test_siblings_differ_by_their_seed_alone(engine: TorchEngine, ask: Ask) -> None:
    rows = engine.generate([ask([5, 6], seed=i % 4, max_new_tokens=12) for i in range(8)])

    assert texts(rows[:4]) == texts(rows[4:])
    assert len({tuple(text) for text in texts(rows[:4])}) == 4


def test_a_shared_prompt_is_read_once_even_when_its_rows_come_in_one_by_one(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, max_num_seqs=2)
    decoder: Any = engine._decoder
    read: list[int] = []
    as_it_is = decoder._admit_chunk

    def counting(slot: int, prompts: list[list[int]], counts: list[int]) -> torch.Tensor:
        read.append(len(prompts))
        return as_it_is(slot, prompts, counts)

    monkeypatch.setattr(decoder, "_admit_chunk", counting)

    engine.generate([ask([5, 6, 7], seed=i, max_new_tokens=1 + i % 5) for i in range(12)])

    assert sum(read) == 1


def test_an_engine_that_grew_and_shrank_writes_the_same(
    models: Models, tokenizer: PreTrainedTokenizerFast, requests: list[GenerationRequest], ask: Ask
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer)
    first = engine.generate(requests[:5])
    engine.generate([ask([9] * 40, max_new_tokens=80)])

    assert engine.generate(requests[:5]) == first


def test_sampled_rows_follow_the_model_distribution(
    models: Models, engine: TorchEngine, ask: Ask
) -> None:
    prompt, rows = [17, 23, 4], 6000
    with torch.inference_mode():
        p = torch.softmax(models("qwen3")(torch.tensor([prompt])).logits[0, -1].double(), -1)

    written = engine.generate([ask(prompt, seed=i, max_new_tokens=1) for i in range(rows)])

    counts = torch.bincount(torch.tensor([row.token_ids[0] for row in written]), minlength=128)
    top = p.topk(9).indices
    seen = torch.cat([counts[top], (rows - counts[top].sum())[None]]).double()
    wanted = torch.cat([p[top], (1 - p[top].sum())[None]])
    chi_square = float(((seen - wanted * rows) ** 2 / (wanted * rows)).sum())
    assert chi_square < 27.88  # one in a thousand for 9 degrees of freedom


def test_top_k_one_is_greedy_and_reports_both_log_probs(
    models: Models, engine: TorchEngine, prompts: list[list[int]], ask: Ask
) -> None:
    greedy = engine.generate([ask(p, temperature=0.0) for p in prompts])

    rows = engine.generate([ask(p, top_k=1) for p in prompts])

    assert texts(rows) == texts(greedy)
    for row, plain in zip(rows, greedy, strict=True):
        terms = forward_terms(models("qwen3"), 40)
        assert row.log_probs == near(plain.log_probs, terms=terms, scale=LOGITS)
        # One token is left: its log-prob is z - log e^z.
        assert row.sampled_log_probs == near([0.0] * len(row.token_ids), scale=LOGITS)
        assert plain.sampled_log_probs is None


def test_rows_of_one_batch_keep_their_own_settings(
    engine: TorchEngine, prompts: list[list[int]], ask: Ask
) -> None:
    mixed = [
        ask(prompts[0], seed=1),
        ask(prompts[0], greedy=True, temperature=0.7),
        ask(prompts[1], seed=2, top_p=0.5),
        ask(prompts[2], seed=3, temperature=2.0, top_k=5),
        ask(prompts[3], seed=4, stop=("a", "b")),
    ]

    together = engine.generate(mixed)

    assert texts(together) == [texts(engine.generate([one]))[0] for one in mixed]
    assert [row.sampled_log_probs is None for row in together] == [True, True, False, False, True]


# Ends


def test_a_row_says_what_ended_it(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    rows = engine.generate([ask([5, 6], seed=i, max_new_tokens=60) for i in range(40)])
    ended = [row for row in rows if row.reason == "eos"]
    cut = [row for row in rows if row.reason == "length"]

    assert ended
    assert cut
    assert all(row.token_ids[-1] == tokenizer.eos_token_id and row.finished for row in ended)
    assert all(len(row.token_ids) == 60 and not row.finished for row in cut)
    assert all(tokenizer.eos_token_id not in row.token_ids[:-1] for row in rows)


def test_the_end_of_text_at_the_last_place_counts_as_finished(
    engine: TorchEngine, ask: Ask
) -> None:
    rows = engine.generate([ask([5, 6], seed=i, max_new_tokens=60) for i in range(40)])
    seed, length = next(
        (i, len(row.token_ids)) for i, row in enumerate(rows) if row.reason == "eos"
    )

    row = engine.generate([ask([5, 6], seed=seed, max_new_tokens=length)])[0]

    assert row.finished
    assert row.token_ids == rows[seed].token_ids


def test_every_end_of_the_generation_config_ends_a_row(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models("qwen3")
    monkeypatch.setattr(model.generation_config, "eos_token_id", list(range(3, 60)))

    rows = TorchEngine(model, tokenizer).generate([ask([70], seed=i) for i in range(20)])

    ends = {2, *range(3, 60)}
    assert all(not ends & set(row.token_ids[:-1]) for row in rows)
    assert any(row.token_ids[-1] > 2 and row.finished for row in rows)


def test_a_stop_text_is_kept_and_nothing_follows_it(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    plain = engine.generate([ask([5, 6], seed=i, max_new_tokens=40) for i in range(20)])
    written = tokenizer.decode(plain[0].token_ids)
    stop = written[3:5]

    rows = engine.generate(
        [ask([5, 6], seed=i, max_new_tokens=40, stop=(stop, "~~~")) for i in range(20)]
    )

    assert tokenizer.decode(rows[0].token_ids) == written[:5]
    assert rows[0].reason == "stop"
    for row, free in zip(rows, plain, strict=True):
        assert row.token_ids == free.token_ids[: len(row.token_ids)]
        assert (row.reason == "stop") == (stop in tokenizer.decode(free.token_ids))


def test_the_prompt_does_not_count_towards_a_stop_text(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    first = engine.generate([ask([5, 6], max_new_tokens=4)])[0]
    before = tokenizer.decode([6])
    spanning = before + tokenizer.decode(first.token_ids[:1])

    row = engine.generate([ask([5, 6], max_new_tokens=4, stop=(spanning,))])[0]

    assert row.token_ids == first.token_ids


# Progress, stop, versions


def test_progress_tells_rows_and_tokens_up_to_the_last(
    engine: TorchEngine, requests: list[GenerationRequest]
) -> None:
    told: list[tuple[int, int, int]] = []

    def note(*, rows_done: int, rows_total: int, tokens_done: int) -> None:
        told.append((rows_done, rows_total, tokens_done))

    rows = engine.generate(requests, note)

    assert told == sorted(told)
    assert told[-1] == (60, 60, sum(len(row.token_ids) for row in rows))


def test_a_call_stops_when_asked_and_the_engine_goes_on_afterwards(
    engine: TorchEngine, requests: list[GenerationRequest]
) -> None:
    before = engine.generate(requests)
    asked = iter([False, True])

    with pytest.raises(StopRequested, match="of 60 rows"):
        engine.generate(requests, should_stop=lambda: next(asked))

    assert engine.generate(requests) == before


def test_each_generation_carries_the_version_that_wrote_it(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    model = models("qwen3")
    engine = TorchEngine(model, tokenizer, version=3)
    first = engine.generate([ask([5, 6])])[0]
    engine.load_weights(model.named_parameters(), 4)

    assert first.version == 3
    assert engine.generate([ask([5, 6])])[0].version == 4


def test_no_requests_give_no_rows(engine: TorchEngine) -> None:
    assert engine.generate([]) == []
    assert engine.score([]) == []
