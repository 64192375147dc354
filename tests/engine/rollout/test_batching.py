"""Continuous batching changes speed, never text."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import StopRequested
from coloop.workers.cpu import lean_decoder
from coloop.workers.rollout import Generation, TorchEngine
from coloop.workers.rollout.generate import Batch, Post

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]

LOGITS = 10.0
"""Greatest logit of these models."""


def texts(rows: list[Generation]) -> list[list[int]]:
    return [row.token_ids for row in rows]


@pytest.fixture
def requests(prompts: list[list[int]], ask: Ask) -> list[Generation]:
    """Many ragged rows, some with the same prompt, with different lengths allowed."""
    return [
        ask(prompts[i % 7], id=str(i), seed=100 + i, max_new_tokens=1 + i % 17) for i in range(60)
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
@pytest.mark.parametrize("slots", [1, 3, 16, 60])
def test_few_slots_write_the_same_as_many(
    family: str,
    slots: int,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    requests: list[Generation],
) -> None:
    all_at_once = generate(TorchEngine(models(family), tokenizer, max_num_seqs=60), requests)

    engine = TorchEngine(models(family), tokenizer, max_num_seqs=slots)
    found = generate(engine, requests)

    assert texts(found) == texts(all_at_once)
    for one, other in zip(found, all_at_once, strict=True):
        terms = forward_terms(models(family), 40)
        assert one.log_probs == near(other.log_probs, terms=terms, scale=LOGITS)


@pytest.mark.slow
def test_a_small_cache_holds_fewer_rows_and_writes_the_same(
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    requests: list[Generation],
) -> None:
    wide = generate(TorchEngine(models("qwen3"), tokenizer), requests)
    row = 2 * 2 * 2 * 16 * 4 * (14 + 17 + 8)  # layers, both, heads, width, bytes, tokens

    for size in (1, 2 * row, 5 * row):
        narrow = TorchEngine(models("qwen3"), tokenizer, cache_bytes=size)
        assert texts(generate(narrow, requests)) == texts(wide)


def test_a_row_does_not_depend_on_its_company_or_its_place(
    engine: TorchEngine, requests: list[Generation]
) -> None:
    together = texts(generate(engine, requests))

    assert texts(generate(engine, requests[::-1])) == together[::-1]
    for place in (0, 7, 31, 59):
        assert texts(generate(engine, [requests[place]])) == [together[place]]


def test_the_same_batch_is_the_same_bit_for_bit(
    engine: TorchEngine, requests: list[Generation]
) -> None:
    first = generate(engine, requests)

    assert generate(engine, requests) == first


def test_answers_come_in_the_order_of_the_requests(
    engine: TorchEngine, requests: list[Generation]
) -> None:
    assert [row.id for row in generate(engine, requests)] == [r.id for r in requests]


def test_siblings_differ_by_their_seed_alone(engine: TorchEngine, ask: Ask) -> None:
    rows = generate(engine, [ask([5, 6], seed=i % 4, max_new_tokens=12) for i in range(8)])

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
        admitted: torch.Tensor = as_it_is(slot, prompts, counts)
        return admitted

    monkeypatch.setattr(decoder, "_admit_chunk", counting)

    generate(engine, [ask([5, 6, 7], seed=i, max_new_tokens=1 + i % 5) for i in range(12)])

    assert sum(read) == 1


def test_a_text_continued_from_its_cache_is_the_same_bit_for_bit(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    prompt, rows = [5, 6, 7], 3
    engine = TorchEngine(models("qwen3"), tokenizer)
    asked = [ask(prompt, seed=5 + i, max_new_tokens=20, keep=True) for i in range(rows)]
    whole = generate(engine, asked)
    assert {row.reason for row in whole} == {"length"}
    firsts = generate(engine, [replace(one, max_new_tokens=7) for one in asked])

    rest = generate(
        engine,
        [
            replace(
                one,
                prompt_ids=[*prompt, *first.token_ids],
                max_new_tokens=13,
                seed_from=len(prompt),
                continues=first.ticket,
            )
            for one, first in zip(asked, firsts, strict=True)
        ],
    )

    for row, first, second in zip(whole, firsts, rest, strict=True):
        assert [*first.token_ids, *second.token_ids] == list(row.token_ids)
        assert [*first.log_probs, *second.log_probs] == list(row.log_probs)


def test_what_branches_begin_with_is_not_read_again(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, max_num_seqs=4)
    stem = generate(engine, [ask([5] * 40, seed=8, max_new_tokens=9, keep=True)])[0]
    so_far = [*[5] * 40, *stem.token_ids]
    decoder: Any = engine._decoder
    read: list[int] = []
    as_it_is = decoder._read

    def counting(tokens: torch.Tensor, *rest: Any) -> torch.Tensor:
        read.append(tokens.numel())
        logits: torch.Tensor = as_it_is(tokens, *rest)
        return logits

    monkeypatch.setattr(decoder, "_read", counting)

    for said in ([], [9, 9, 9, 9]):
        for at_once in (4, 7):
            asked = ask([*so_far, *said], max_new_tokens=3, continues=stem.ticket)
            generate(engine, [replace(asked, seed=i) for i in range(at_once)])

    # The last token is read with the step that writes the next one: of what was said, so three
    # tokens and the one that the kept text ended with are left; once for each time that rows come
    # in together, twice where seven rows share four slots.
    assert read == [4, 4, 4]


def test_texts_of_many_lengths_are_read_on_in_parts(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer)
    stems = [ask([5 + i], seed=i, max_new_tokens=1 + 3 * i, keep=True) for i in range(6)]
    firsts = generate(engine, stems)
    asked = [
        ask(
            [5 + i, *row.token_ids, *range(20, 25 + 7 * (i % 4))],
            seed=i,
            max_new_tokens=5,
            continues=row.ticket,
        )
        for i, row in enumerate(firsts)
    ]
    at_once = generate(engine, asked)

    monkeypatch.setattr(lean_decoder, "LOOKS_AT_ONCE", 2000)  # about seven tokens of six texts
    in_parts = generate(engine, asked)

    anew = generate(engine, [replace(one, continues=None) for one in asked])
    assert texts(at_once) == texts(in_parts) == texts(anew)
    for one, other in zip(in_parts, anew, strict=True):
        terms = forward_terms(models("qwen3"), 60)
        assert one.log_probs == near(other.log_probs, terms=terms, scale=LOGITS)


def test_kept_texts_give_way_when_memory_is_short(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    token = 2 * 2 * 2 * 32 * 4  # layers, both, heads, width, bytes
    engine = TorchEngine(models("qwen3"), tokenizer, cache_bytes=2 * 25 * token)
    asked = [ask([5 + i], seed=8, max_new_tokens=10, keep=True) for i in range(4)]

    rows = generate(engine, asked)

    held = [engine._kept.lines_of(row.ticket) for row in rows]
    assert [lines is not None for lines in held] == [False, False, True, True]
    following = [
        ask([5 + i, *row.token_ids], seed=i, max_new_tokens=5, continues=row.ticket)
        for i, row in enumerate(rows)
    ]
    written = texts(generate(engine, following))
    assert written == texts(generate(engine, [replace(one, continues=None) for one in following]))


def test_a_long_text_waits_until_there_is_room_for_it(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    token = 2 * 2 * 2 * 32 * 4
    wide = TorchEngine(models("qwen3"), tokenizer)
    narrow = TorchEngine(models("qwen3"), tokenizer, cache_bytes=200 * token)
    asked = [ask([5 + i], seed=i, max_new_tokens=10) for i in range(9)]
    asked += [ask([5] * 80, seed=3, max_new_tokens=12), ask([7], seed=4, max_new_tokens=12)]

    done: dict[int, Generation] = {}
    tickets = [narrow.submit(one) for one in asked[:9]]
    for request in asked[9:]:
        done |= {row.ticket: row for row in narrow.step()}
        tickets.append(narrow.submit(request))
    while narrow.unfinished:
        done |= {row.ticket: row for row in narrow.step()}

    assert [done[ticket].token_ids for ticket in tickets] == texts(generate(wide, asked))


@pytest.mark.parametrize("others", [{}, {"top_k": 9}, {"stop": ("~~~",)}])
def test_more_texts_come_beside_one_that_is_shorter_than_those_before(
    others: dict[str, Any], models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    """The state of long texts serves a short one; for more beside it there is other state."""
    engine = TorchEngine(models("qwen3"), tokenizer)
    asked = [ask([5 + i], seed=i, max_new_tokens=9, **(others if i else {})) for i in range(4)]
    alone = [generate(engine, [one])[0] for one in asked]
    generate(engine, [ask([5], seed=8, max_new_tokens=40)])

    ticket = engine.submit(asked[0])
    done = {row.ticket: row for _ in range(3) for row in engine.step()}
    tickets = [ticket, *map(engine.submit, asked[1:])]
    while engine.unfinished:
        done |= {row.ticket: row for row in engine.step()}

    assert [done[ticket].token_ids for ticket in tickets] == texts(alone)


def test_a_step_that_fails_forgets_what_was_unfinished(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, max_num_seqs=2)
    asked = [ask([5 + i], seed=i, max_new_tokens=9) for i in range(5)]
    before = generate(engine, asked)

    with monkeypatch.context() as patch:
        patch.setattr(engine._decoder, "step", _out_of_memory)
        with pytest.raises(RuntimeError, match="not enough memory"):
            generate(engine, asked)

    assert engine.unfinished == 0
    assert generate(engine, asked) == before


def test_all_whose_texts_a_failed_step_lost_are_told_why(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer)
    post = Post(engine)
    one, other = Batch(engine, post), Batch(engine, post)
    one.submit(ask([5], max_new_tokens=9))
    other.submit(ask([6], max_new_tokens=9))

    with monkeypatch.context() as patch:
        patch.setattr(engine._decoder, "step", _out_of_memory)
        with pytest.raises(RuntimeError, match="not enough memory"):
            other.write()

    with pytest.raises(RuntimeError, match="not enough memory"):
        one.write()
    one.submit(ask([5], max_new_tokens=9))
    assert [number for number, _ in one.write()] == [1]


def _out_of_memory(*_: object) -> None:
    raise RuntimeError("not enough memory")


def test_an_engine_that_grew_and_shrank_writes_the_same(
    models: Models, tokenizer: PreTrainedTokenizerFast, requests: list[Generation], ask: Ask
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer)
    first = generate(engine, requests[:5])
    generate(engine, [ask([9] * 40, max_new_tokens=80)])

    assert generate(engine, requests[:5]) == first


def test_sampled_rows_follow_the_model_distribution(
    models: Models, engine: TorchEngine, ask: Ask
) -> None:
    prompt, rows = [17, 23, 4], 6000
    with torch.inference_mode():
        p = torch.softmax(models("qwen3")(torch.tensor([prompt])).logits[0, -1].double(), -1)

    written = generate(engine, [ask(prompt, seed=i, max_new_tokens=1) for i in range(rows)])

    counts = torch.bincount(torch.tensor([row.token_ids[0] for row in written]), minlength=128)
    top = p.topk(9).indices
    seen = torch.cat([counts[top], (rows - counts[top].sum())[None]]).double()
    wanted = torch.cat([p[top], (1 - p[top].sum())[None]])
    chi_square = float(((seen - wanted * rows) ** 2 / (wanted * rows)).sum())
    assert chi_square < 27.88  # one in a thousand for 9 degrees of freedom


def test_top_k_one_is_greedy_and_reports_both_log_probs(
    models: Models, engine: TorchEngine, prompts: list[list[int]], ask: Ask
) -> None:
    greedy = generate(engine, [ask(p, temperature=0.0) for p in prompts])

    rows = generate(engine, [ask(p, top_k=1) for p in prompts])

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

    together = generate(engine, mixed)

    assert texts(together) == [texts(generate(engine, [one]))[0] for one in mixed]
    assert [row.sampled_log_probs is None for row in together] == [True, True, False, False, True]


# Ends


def test_a_row_says_what_ended_it(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    rows = generate(engine, [ask([5, 6], seed=i, max_new_tokens=60) for i in range(40)])
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
    rows = generate(engine, [ask([5, 6], seed=i, max_new_tokens=60) for i in range(40)])
    seed, length = next(
        (i, len(row.token_ids)) for i, row in enumerate(rows) if row.reason == "eos"
    )

    row = generate(engine, [ask([5, 6], seed=seed, max_new_tokens=length)])[0]

    assert row.finished
    assert row.token_ids == rows[seed].token_ids


def test_every_end_of_the_generation_config_ends_a_row(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models("qwen3")
    monkeypatch.setattr(model.generation_config, "eos_token_id", list(range(3, 60)))

    rows = generate(TorchEngine(model, tokenizer), [ask([70], seed=i) for i in range(20)])

    ends = {2, *range(3, 60)}
    assert all(not ends & set(row.token_ids[:-1]) for row in rows)
    assert any(row.token_ids[-1] > 2 and row.finished for row in rows)


def test_a_stop_text_is_kept_and_nothing_follows_it(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    plain = generate(engine, [ask([5, 6], seed=i, max_new_tokens=40) for i in range(20)])
    written = tokenizer.decode(plain[0].token_ids)
    stop = written[3:5]

    rows = generate(
        engine, [ask([5, 6], seed=i, max_new_tokens=40, stop=(stop, "~~~")) for i in range(20)]
    )

    assert tokenizer.decode(rows[0].token_ids) == written[:5]
    assert rows[0].reason == "stop"
    for row, free in zip(rows, plain, strict=True):
        assert row.token_ids == free.token_ids[: len(row.token_ids)]
        assert (row.reason == "stop") == (stop in tokenizer.decode(free.token_ids))


def test_the_prompt_does_not_count_towards_a_stop_text(
    engine: TorchEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    first = generate(engine, [ask([5, 6], max_new_tokens=4)])[0]
    before = tokenizer.decode([6])
    spanning = before + tokenizer.decode(first.token_ids[:1])

    row = generate(engine, [ask([5, 6], max_new_tokens=4, stop=(spanning,))])[0]

    assert row.token_ids == first.token_ids


# Progress, stop, versions


def test_progress_tells_rows_and_tokens_up_to_the_last(
    engine: TorchEngine, requests: list[Generation]
) -> None:
    told: list[tuple[int, int, int]] = []

    def note(*, rows_done: int, rows_total: int, tokens_done: int) -> None:
        told.append((rows_done, rows_total, tokens_done))

    rows = generate(engine, requests, note)

    assert told == sorted(told)
    assert told[-1] == (60, 60, sum(len(row.token_ids) for row in rows))


def test_a_call_stops_when_asked_and_the_engine_goes_on_afterwards(
    engine: TorchEngine, requests: list[Generation]
) -> None:
    before = generate(engine, requests)
    asked = iter([False, True])

    with pytest.raises(StopRequested, match="of 60 rows"):
        generate(engine, requests, should_stop=lambda: next(asked))

    assert generate(engine, requests) == before


def test_each_generation_carries_the_version_that_wrote_it(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    model = models("qwen3")
    engine = TorchEngine(model, tokenizer, version=3)
    first = generate(engine, [ask([5, 6])])[0]
    engine.load_weights(model.named_parameters(), 4)

    assert first.versions == ((0, 3),)
    assert generate(engine, [ask([5, 6])])[0].versions == ((0, 4),)


def test_no_requests_give_no_rows(engine: TorchEngine) -> None:
    assert generate(engine, []) == []
    assert engine.score([]) == []
