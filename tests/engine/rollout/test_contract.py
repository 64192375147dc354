"""The contract of every rollout engine, as `workers/rollout/protocol.py` has it."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from tests.engine.openai_service import completions_of
from tests.engine.web_service import serving
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.data.services.endpoint import Endpoint
from coloop.errors import RequestRefused, StopRequested, WeightsNotUpdated
from coloop.workers.rollout import ENGINES, Generation, RolloutEngine
from coloop.workers.rollout.remote_engine import RemoteEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]

NAMES = [name for name in sorted(ENGINES) if name != "vllm" or find_spec("vllm")]
MARKS = {"vllm": [pytest.mark.vllm]}
CASES = [
    *(pytest.param((name, "qwen3"), marks=MARKS.get(name, ()), id=name) for name in NAMES),
    pytest.param(("torch", "gpt2"), id="torch-foreign"),
]
"""Each engine that is here, and that of our own with an architecture that it holds as transformers
do. Behind the remote one a service writes, which is our own engine once more."""
WITHOUT_WEIGHTS = frozenset(
    """
    test_log_probs_are_those_before_a_cut_and_sampled_ones_those_after
    test_a_text_written_in_parts_is_the_text_written_at_once
    test_what_was_said_in_between_is_read_and_what_is_kept_changes_nothing
    test_branches_of_one_text_differ_by_their_seed_alone
    test_a_stop_text_may_begin_before_the_text_was_continued
    test_what_is_not_kept_cannot_be_continued
    test_calls_in_any_order_write_what_each_request_writes_alone
    test_an_aborted_request_is_given_back_as_it_is_and_others_go_on
    test_scoring_leaves_what_is_written_alone
    test_finish_writes_to_the_end_with_the_weights_it_began_with
    test_drop_gives_back_what_there_is
    test_resume_goes_on_with_the_new_weights_and_knows_which_wrote_what
    test_a_kept_text_is_read_anew_with_new_weights
    test_a_load_that_breaks_off_forgets_what_was_unfinished
    test_weights_that_do_not_fit_are_told_by_name
    test_asleep_and_awake_it_writes_the_same
    """.split()  # noqa: SIM905
)
"""What an engine cannot do whose weights are elsewhere; `test_remote_engine.py` has how it refuses
each."""
LOGITS = 10.0
"""Greatest logit of the models."""
SLOTS = 6
PROMPT = [5, 6, 7]
ENDLESS = 8
"""Seed of a text that does not end by itself within 40 tokens."""


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Names of an engine and of a model's family."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture(scope="module")
def model(case: tuple[str, str], models: Models) -> PreTrainedModel:
    return models(case[1])


@pytest.fixture(scope="module")
def built(
    case: tuple[str, str], model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> Iterator[RolloutEngine]:
    with ExitStack() as stack:
        options = {}
        if case[0] == "remote":
            options["endpoint"] = stack.enter_context(writing_service(model, tokenizer))
        built = ENGINES[case[0]](model, tokenizer, max_num_seqs=SLOTS, **options)
        stack.callback(built.close)
        yield built


@contextmanager
def writing_service(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> Iterator[Endpoint]:
    """A service with this model, that runs may call."""
    behind = ENGINES["torch"](model, tokenizer, max_num_seqs=SLOTS)
    with serving(completions_of(behind, tokenizer)) as web, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        url = f"http://{web.host}/v1/completions"
        yield Endpoint(node="judge", field="rollout.url", url=url)
    behind.close()


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, built: RolloutEngine, weights: dict[str, Tensor]
) -> Iterator[RolloutEngine]:
    """The engine with the model's weights as version 0, and nothing to do."""
    name = request.node.name.partition("[")[0]
    if isinstance(built, RemoteEngine) and name in WITHOUT_WEIGHTS:
        pytest.skip("an engine whose weights are elsewhere refuses it")
    if built.version != 0:
        built.load_weights(weights.items(), 0)
    yield built
    assert built.unfinished == 0


@pytest.fixture(scope="module")
def weights(model: PreTrainedModel) -> dict[str, Tensor]:
    return {name: one.detach() for name, one in model.named_parameters()}


@pytest.fixture(scope="module")
def other_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: one * 1.1 for name, one in weights.items()}


@pytest.fixture(scope="module")
def close(model: PreTrainedModel) -> Callable[..., Any]:
    """What equals log-probs of short texts up to the rounding of two forwards."""
    return lambda found: near(found, terms=forward_terms(model, 60), scale=LOGITS)


@pytest.fixture
def requests(prompts: list[list[int]], ask: Ask) -> list[Generation]:
    """More rows than fit at once, of many lengths, some with the same prompt."""
    return [
        ask(prompts[i % 7], id=str(i), seed=100 + i, max_new_tokens=1 + i % 9) for i in range(16)
    ]


def texts(rows: list[Generation]) -> list[list[int]]:
    return [row.token_ids for row in rows]


def finish(engine: RolloutEngine) -> dict[int, Generation]:
    """Writes on until nothing is unfinished; what ended, by ticket."""
    done = {}
    while engine.unfinished:
        done.update((row.ticket, row) for row in engine.step())
    return done


def begin(engine: RolloutEngine, steps: int, *requests: Generation) -> list[int]:
    """Submits requests and takes some steps, in which none of them ends."""
    tickets = [engine.submit(request) for request in requests]
    for _ in range(steps):
        assert engine.step() == []
    return tickets


def own_scores(
    engine: RolloutEngine, request: Generation, row: Generation, temperature: float = 1.0
) -> list[float]:
    """Log-probs of a completion by the weights that the engine holds now."""
    scored = engine.score([[*request.prompt_ids, *row.token_ids]], temperature)[0]
    return list(scored[len(request.prompt_ids) :])


# Writing


def test_answers_come_in_the_order_of_the_requests(
    engine: RolloutEngine, requests: list[Generation]
) -> None:
    assert [row.id for row in generate(engine, requests)] == [one.id for one in requests]


@pytest.mark.sample(1)
def test_a_text_depends_neither_on_its_company_nor_on_its_place(
    engine: RolloutEngine, requests: list[Generation]
) -> None:
    together = texts(generate(engine, requests))

    assert texts(generate(engine, requests[::-1])) == together[::-1]
    for place in (0, 7, 15):
        assert texts(generate(engine, [requests[place]])) == [together[place]]


def test_a_text_does_not_depend_on_when_it_came(
    engine: RolloutEngine, requests: list[Generation]
) -> None:
    together = texts(generate(engine, requests))
    done: dict[int, Generation] = {}
    tickets = []

    for request in requests[8:] + requests[:8]:
        tickets.append(engine.submit(request))
        done.update((row.ticket, row) for row in engine.step())
    done.update(finish(engine))

    assert len(set(tickets)) == len(tickets)
    assert [done[ticket].token_ids for ticket in tickets] == together[8:] + together[:8]


@pytest.mark.sample(1)
def test_a_longer_and_hotter_text_may_come_among_others(engine: RolloutEngine, ask: Ask) -> None:
    short = [ask([5 + i], seed=i, max_new_tokens=12) for i in range(4)]
    other = ask(list(range(40, 75)), seed=3, max_new_tokens=30, temperature=1.3, top_k=9)
    alone = [generate(engine, [one])[0] for one in (*short, other)]

    tickets = [engine.submit(one) for one in short]
    ended = {row.ticket: row for row in engine.step()}
    tickets.append(engine.submit(other))
    ended |= finish(engine)

    assert [ended[ticket].token_ids for ticket in tickets] == texts(alone)


def test_without_requests_a_step_does_nothing(engine: RolloutEngine) -> None:
    assert engine.step() == []
    assert engine.written() == 0
    assert generate(engine, []) == []


def test_log_probs_are_those_before_a_cut_and_sampled_ones_those_after(
    engine: RolloutEngine, ask: Ask, close: Callable[..., Any]
) -> None:
    plain = ask(PROMPT, seed=1, temperature=0.7)
    cut = ask(PROMPT, seed=1, temperature=0.7, top_k=5, top_p=0.8)
    likeliest = ask(PROMPT, temperature=0.7, top_k=1)
    greedy = ask(PROMPT, greedy=True, temperature=0.7)

    rows = generate(engine, [plain, cut, likeliest, greedy])

    for row, request in zip(rows, (plain, cut, likeliest, greedy), strict=True):
        assert list(row.log_probs) == close(own_scores(engine, request, row, 0.7))
    assert [row.sampled_log_probs is None for row in rows] == [True, False, False, True]
    assert all(
        after >= before
        for before, after in zip(rows[1].log_probs, rows[1].sampled_log_probs or (), strict=True)
    )
    assert rows[2].token_ids == rows[3].token_ids
    assert list(rows[2].sampled_log_probs or ()) == close([0.0] * len(rows[2].token_ids))


def test_a_text_may_fill_the_model_and_no_more(engine: RolloutEngine, ask: Ask) -> None:
    assert engine.max_length == 128

    row = generate(engine, [ask([5] * 125, seed=ENDLESS, max_new_tokens=3)])[0]

    assert len(row.token_ids) == 3
    with pytest.raises(RequestRefused, match=r"row problems:7/2: .* the limit is 128"):
        engine.submit(ask([5] * 125, id="problems:7/2", max_new_tokens=4))


def test_a_refused_request_leaves_none_behind(engine: RolloutEngine, ask: Ask) -> None:
    with pytest.raises(RequestRefused, match="row second"):
        generate(engine, [ask(PROMPT), ask([], id="second")])

    assert engine.unfinished == 0


# Continuing


@pytest.mark.parametrize("cuts", [(1,), (5, 6), (3, 10, 16)])
def test_a_text_written_in_parts_is_the_text_written_at_once(
    cuts: tuple[int, ...], engine: RolloutEngine, ask: Ask, close: Callable[..., Any]
) -> None:
    whole = generate(engine, [ask(PROMPT, seed=ENDLESS, max_new_tokens=20)])[0]
    token_ids, log_probs, last = list(PROMPT), [], None

    for first, end in zip((0, *cuts), (*cuts, 20), strict=True):
        part = ask(
            token_ids,
            seed=ENDLESS,
            max_new_tokens=end - first,
            seed_from=len(PROMPT),
            continues=last,
            keep=True,
        )
        row = generate(engine, [part])[0]
        token_ids, log_probs = [*token_ids, *row.token_ids], [*log_probs, *row.log_probs]
        if last is not None:
            engine.release([last])
        last = row.ticket

    assert token_ids == [*PROMPT, *whole.token_ids]
    assert log_probs == close(list(whole.log_probs))


def test_what_was_said_in_between_is_read_and_what_is_kept_changes_nothing(
    engine: RolloutEngine, ask: Ask, close: Callable[..., Any]
) -> None:
    said = [11, 12, 13, 14]
    turns = [ask(PROMPT, seed=i, max_new_tokens=2 + 3 * i, keep=True) for i in range(5)]
    firsts = generate(engine, turns)
    following = [
        ask(
            [*PROMPT, *row.token_ids, *said[: i % 4], 15],
            seed=i,
            max_new_tokens=6,
            seed_from=len(PROMPT),
            continues=row.ticket,
        )
        for i, row in enumerate(firsts)
    ]

    kept = generate(engine, following)

    engine.release(row.ticket for row in firsts)
    anew = [replace(one, continues=None) for one in following]
    for row, request, fresh in zip(kept, anew, generate(engine, anew), strict=True):
        assert row.token_ids == fresh.token_ids
        assert list(row.log_probs) == close(own_scores(engine, request, row))


def test_branches_of_one_text_differ_by_their_seed_alone(engine: RolloutEngine, ask: Ask) -> None:
    stem = generate(engine, [ask(PROMPT, seed=ENDLESS, max_new_tokens=6, keep=True)])[0]
    asked = [
        ask([*PROMPT, *stem.token_ids], seed=i, max_new_tokens=8, continues=stem.ticket)
        for i in (1, 2, 3, 1)
    ]

    branches = texts(generate(engine, asked))

    engine.release([stem.ticket])
    assert branches == texts(generate(engine, [replace(one, continues=None) for one in asked]))
    assert branches[0] == branches[3]
    assert len({tuple(branch) for branch in branches}) == 3


def test_a_stop_text_may_begin_before_the_text_was_continued(
    engine: RolloutEngine, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    whole = generate(engine, [ask(PROMPT, seed=ENDLESS, max_new_tokens=12)])[0]
    stop = tokenizer.decode(whole.token_ids[4:7])
    at_once = generate(engine, [ask(PROMPT, seed=ENDLESS, max_new_tokens=12, stop=(stop,))])[0]
    begun = ask(PROMPT, seed=ENDLESS, max_new_tokens=6, stop=(stop,), keep=True)
    first = generate(engine, [begun])[0]
    so_far = [*PROMPT, *first.token_ids]

    def go_on(stop_from: int | None) -> Generation:
        return generate(
            engine,
            [
                ask(
                    so_far,
                    seed=ENDLESS,
                    max_new_tokens=6,
                    stop=(stop,),
                    seed_from=len(PROMPT),
                    stop_from=stop_from,
                    continues=first.ticket,
                )
            ],
        )[0]

    one_text, new_text = go_on(len(PROMPT)), go_on(None)

    engine.release([first.ticket])
    assert (at_once.reason, first.reason) == ("stop", "length")
    assert one_text.reason == "stop"
    assert first.token_ids + one_text.token_ids == at_once.token_ids
    assert new_text.token_ids[: len(one_text.token_ids)] == one_text.token_ids
    assert len(new_text.token_ids) > len(one_text.token_ids)


def test_what_is_not_kept_cannot_be_continued(engine: RolloutEngine, ask: Ask) -> None:
    rows = generate(engine, [ask(PROMPT, max_new_tokens=2, keep=keep) for keep in (False, True)])
    gone, kept = (row.ticket for row in rows)
    so_far = [*PROMPT, *rows[1].token_ids]

    with pytest.raises(RequestRefused, match=f"continues request {gone}, whose text is not cached"):
        engine.submit(ask(so_far, continues=gone))
    with pytest.raises(RequestRefused, match=f"does not begin with the 5 tokens of request {kept}"):
        engine.submit(ask([*PROMPT, 99, 99, 99], continues=kept))

    engine.release([kept, kept, gone])
    with pytest.raises(RequestRefused, match=f"continues request {kept}"):
        engine.submit(ask(so_far, continues=kept))


@pytest.mark.parametrize("field", ["seed_from", "stop_from"])
@pytest.mark.parametrize("place", [-1, 4])
def test_a_place_outside_of_the_prompt_is_refused(
    field: str, place: int, engine: RolloutEngine, ask: Ask
) -> None:
    with pytest.raises(RequestRefused, match=f"{field} is {place}, a position in the 3 tokens"):
        engine.submit(ask(PROMPT, **{field: place}))


@pytest.mark.sample(1)
@pytest.mark.parametrize("trial", range(3))
def test_calls_in_any_order_write_what_each_request_writes_alone(
    trial: int, engine: RolloutEngine, weights: dict[str, Tensor], ask: Ask
) -> None:
    chance = random.Random(trial)
    asked: dict[int, Generation] = {}
    done: dict[int, Generation] = {}
    aborted: set[int] = set()

    def drawn_request() -> Generation:
        options: dict[str, Any] = {
            "seed": chance.randrange(10**6),
            "max_new_tokens": chance.randint(1, 12),
            "temperature": chance.choice([1.0, 1.0, 0.0, 1.4]),
            "top_k": chance.choice([None, None, 4]),
            "stop": chance.choice([(), (), ("a", "0")]),
            "keep": chance.random() < 0.4,
            "on_load": chance.choice(["finish", "resume"]),
        }
        kept = [ticket for ticket, row in done.items() if asked[ticket].keep and row.token_ids]
        prompt = [chance.randrange(3, 128) for _ in range(chance.choice([1, 5, 30]))]
        if not kept or chance.random() < 0.5:
            return ask(prompt, **options)
        ticket = chance.choice(kept)
        so_far = [*asked[ticket].prompt_ids, *done[ticket].token_ids]
        said = prompt[: chance.choice([0, 2])]
        return ask([*so_far, *said], continues=ticket, seed_from=len(so_far), **options)

    def step() -> None:
        done.update((row.ticket, row) for row in engine.step())

    for _ in range(40):
        action = chance.random()
        if action < 0.4:
            request = drawn_request()
            if len(request.prompt_ids) + request.max_new_tokens <= 128:
                asked[engine.submit(request)] = request
        elif action < 0.9:
            step()
        elif action < 0.95:
            aborted |= {row.ticket for row in engine.abort(list(asked)[-1:])}
        else:
            engine.load_weights(weights.items(), 0)
    while engine.unfinished:
        step()
    engine.release(asked)

    assert set(done) | aborted == set(asked)
    tickets = sorted(set(done) - aborted)
    alone = generate(engine, [replace(asked[t], continues=None, keep=False) for t in tickets])
    assert [done[ticket].token_ids for ticket in tickets] == texts(alone)
    assert [done[ticket].reason for ticket in tickets] == [row.reason for row in alone]


# Giving up


def test_an_aborted_request_is_given_back_as_it_is_and_others_go_on(
    engine: RolloutEngine, ask: Ask
) -> None:
    asked = [ask(PROMPT, seed=ENDLESS, max_new_tokens=20 + i) for i in range(SLOTS + 2)]
    whole = generate(engine, asked)
    tickets = begin(engine, 4, *asked)

    cut = engine.abort([tickets[-1], tickets[2]])

    assert [row.ticket for row in cut] == [tickets[-1], tickets[2]]
    assert [(row.reason, row.finished) for row in cut] == [("aborted", False)] * 2
    assert cut[0].token_ids == []  # it waited for a slot
    assert 0 < len(cut[1].token_ids) < 20
    assert cut[1].token_ids == whole[2].token_ids[: len(cut[1].token_ids)]
    assert len(cut[1].log_probs) == len(cut[1].token_ids)
    assert engine.abort([tickets[2]]) == []
    done = finish(engine)
    assert set(done) == {*tickets} - {tickets[-1], tickets[2]}
    assert all(done[t].token_ids == whole[i].token_ids for i, t in enumerate(tickets) if t in done)


@pytest.mark.sample(1)
def test_a_stopped_call_leaves_nothing_behind(
    engine: RolloutEngine, requests: list[Generation]
) -> None:
    before = generate(engine, requests)
    asked = iter([False, True])

    with pytest.raises(StopRequested, match="of 16 rows"):
        generate(engine, requests, should_stop=lambda: next(asked))

    assert engine.unfinished == 0
    assert texts(generate(engine, requests)) == texts(before)


def test_progress_tells_rows_and_tokens_up_to_the_last(
    engine: RolloutEngine, requests: list[Generation]
) -> None:
    told: list[tuple[int, int, int]] = []

    def note(*, rows_done: int, rows_total: int, tokens_done: int) -> None:
        told.append((rows_done, rows_total, tokens_done))

    rows = generate(engine, requests, note)

    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == (16, 16, sum(len(row.token_ids) for row in rows))


# Weights


def test_scoring_leaves_what_is_written_alone(engine: RolloutEngine, ask: Ask) -> None:
    request = ask(PROMPT, seed=ENDLESS, max_new_tokens=12)
    whole = generate(engine, [request])[0]
    (ticket,) = begin(engine, 3, request)

    engine.score([[9] * 50, [3, 4]])

    assert finish(engine)[ticket].token_ids == whole.token_ids


def test_finish_writes_to_the_end_with_the_weights_it_began_with(
    engine: RolloutEngine, other_weights: dict[str, Tensor], ask: Ask
) -> None:
    asked = [ask(PROMPT, seed=ENDLESS, max_new_tokens=9 + i) for i in range(SLOTS + 2)]
    whole = generate(engine, asked)
    tickets = begin(engine, 3, *asked)

    engine.load_weights(other_weights.items(), 4)

    assert engine.version == 4
    assert engine.unfinished == len(asked)
    done = finish(engine)
    assert [done[ticket].token_ids for ticket in tickets] == texts(whole)
    assert all(row.versions == ((0, 0),) for row in done.values())


def test_drop_gives_back_what_there_is(
    engine: RolloutEngine, other_weights: dict[str, Tensor], ask: Ask
) -> None:
    asked = [ask(PROMPT, seed=ENDLESS, max_new_tokens=20, on_load="drop") for _ in range(SLOTS + 1)]
    whole = generate(engine, asked[:1])[0]
    tickets = begin(engine, 3, *asked)

    engine.load_weights(other_weights.items(), 4)

    done = {row.ticket: row for row in engine.step()}
    assert set(done) == set(tickets)
    assert all(row.reason == "aborted" for row in done.values())
    written = done[tickets[0]].token_ids
    assert 0 < len(written) < 20
    assert written == whole.token_ids[: len(written)]
    assert done[tickets[-1]].token_ids == []


def test_resume_goes_on_with_the_new_weights_and_knows_which_wrote_what(
    engine: RolloutEngine,
    weights: dict[str, Tensor],
    other_weights: dict[str, Tensor],
    ask: Ask,
    close: Callable[..., Any],
) -> None:
    request = ask(PROMPT, seed=ENDLESS, max_new_tokens=12, on_load="resume")
    waiting = [replace(request, seed=i, id=str(i)) for i in range(SLOTS)]
    whole = generate(engine, [request])[0]
    ticket, *others = begin(engine, 4, request, *waiting)

    engine.load_weights(other_weights.items(), 4)
    engine.step()
    engine.step()
    engine.load_weights(weights.items(), 5)

    done = finish(engine)
    row = done[ticket]
    begun, first, second = row.versions
    assert (begun, first[1], second[1]) == ((0, 0), 4, 5)
    assert 0 < first[0] < second[0] < len(row.token_ids)
    assert row.token_ids[: first[0]] == whole.token_ids[: first[0]]
    by_first = own_scores(engine, request, row)
    engine.load_weights(other_weights.items(), 4)
    by_second = own_scores(engine, request, row)
    a, b = first[0], second[0]
    assert list(row.log_probs) == close([*by_first[:a], *by_second[a:b], *by_first[b:]])
    assert all(token < len(done[others[-1]].token_ids) for token, _ in done[others[-1]].versions)


def test_a_kept_text_is_read_anew_with_new_weights(
    engine: RolloutEngine, other_weights: dict[str, Tensor], ask: Ask, close: Callable[..., Any]
) -> None:
    first = generate(engine, [ask(PROMPT, seed=ENDLESS, max_new_tokens=9, keep=True)])[0]
    engine.load_weights(other_weights.items(), 4)
    request = ask([*PROMPT, *first.token_ids], seed=1, max_new_tokens=9, continues=first.ticket)

    row = generate(engine, [request])[0]

    engine.release([first.ticket])
    assert list(row.log_probs) == close(own_scores(engine, request, row))


def test_a_load_that_breaks_off_forgets_what_was_unfinished(
    engine: RolloutEngine, weights: dict[str, Tensor], ask: Ask
) -> None:
    request = ask(PROMPT, seed=ENDLESS, max_new_tokens=9, on_load="resume")
    whole = generate(engine, [request])[0]
    begin(engine, 3, request)

    def breaks() -> Iterator[tuple[str, Tensor]]:
        yield from list(weights.items())[:3]
        raise OSError("connection lost")

    with pytest.raises(OSError, match="connection lost"):
        engine.load_weights(breaks(), 1)

    assert engine.unfinished == 0
    for use in (lambda: engine.submit(request), lambda: engine.score([[5, 6]]), engine.step):
        with pytest.raises(WeightsNotUpdated, match="midway"):
            use()
    engine.load_weights(weights.items(), 0)
    assert generate(engine, [request])[0].token_ids == whole.token_ids


def test_weights_that_do_not_fit_are_told_by_name(
    engine: RolloutEngine, weights: dict[str, Tensor]
) -> None:
    name = next(iter(weights))

    for given, reason in (
        ({k: v for k, v in weights.items() if k != name}, f"did not receive 1 .*{name}"),
        ({**weights, "lora.A": torch.zeros(2)}, r"received 1 \(lora\.A\) that its model does not"),
        ({**weights, name: torch.zeros(3, 3)}, f"{name} has shape"),
    ):
        with pytest.raises(WeightsNotUpdated, match=reason):
            engine.load_weights(given.items(), 1)

    engine.load_weights(weights.items(), 0)


def test_asleep_and_awake_it_writes_the_same(
    engine: RolloutEngine,
    weights: dict[str, Tensor],
    other_weights: dict[str, Tensor],
    ask: Ask,
    close: Callable[..., Any],
) -> None:
    request = ask(PROMPT, seed=ENDLESS, max_new_tokens=9)
    before = generate(engine, [replace(request, keep=True)])[0]

    engine.sleep()
    engine.wake()
    after = generate(engine, [request])[0]
    engine.sleep()
    engine.load_weights(other_weights.items(), 4)
    engine.wake()
    engine.wake()
    changed = generate(engine, [request])[0]

    engine.release([before.ticket])
    assert after.token_ids == before.token_ids
    assert changed.versions == ((0, 4),)
    assert list(changed.log_probs) == close(own_scores(engine, request, changed))
    engine.load_weights(weights.items(), 0)


@pytest.mark.sample(1)
def test_fewer_at_once_write_the_same(
    engine: RolloutEngine, requests: list[Generation], case: tuple[str, str]
) -> None:
    before = generate(engine, requests)
    rows = engine.max_concurrency()

    engine.limit_concurrency(2)
    after = generate(engine, requests)

    assert texts(after) == texts(before)
    if case[0] == "torch":
        assert (rows, engine.max_concurrency()) == (SLOTS, 2)
