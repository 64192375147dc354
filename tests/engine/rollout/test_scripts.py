"""Texts that say what they are told to: the log-probs are those of the weights all the same."""

from collections.abc import Callable

import pytest
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.workers.rollout import Generation, TorchEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]
SCRIPT = (9, 11, 13)


@pytest.fixture(scope="module", params=["qwen3", "gpt2"])
def engine(
    request: pytest.FixtureRequest, models: Models, tokenizer: PreTrainedTokenizerFast
) -> TorchEngine:
    return TorchEngine(models(request.param), tokenizer, max_num_seqs=4)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.0}, {"top_p": 0.5}, {"top_k": 3}])
def test_a_script_is_written_first_and_drawing_goes_on_behind_it(
    engine: TorchEngine, ask: Ask, options: dict[str, float]
) -> None:
    written = generate(engine, [ask([5, 6], script=SCRIPT, max_new_tokens=8, **options)])[0]

    assert written.token_ids[:3] == [*SCRIPT]
    assert len(written.token_ids) > 3


def test_log_probs_of_a_script_are_those_of_the_weights(
    engine: TorchEngine, ask: Ask, models: Models
) -> None:
    request = ask([5, 6], script=SCRIPT, max_new_tokens=3, temperature=0.7)

    written = generate(engine, [request])[0]

    scored = engine.score([[5, 6, *SCRIPT]], temperature=0.7)[0][2:]
    terms = forward_terms(models("qwen3"), 8)
    assert written.log_probs == near(scored, terms=terms, scale=10.0)


def test_others_in_the_batch_draw_what_they_draw_alone(engine: TorchEngine, ask: Ask) -> None:
    plain = [ask([5, 6], seed=seed, max_new_tokens=6) for seed in range(6)]
    scripted = [ask([5, 6], seed=seed, script=SCRIPT, max_new_tokens=6) for seed in range(6)]
    mixed = [request for pair in zip(plain, scripted, strict=True) for request in pair]

    alone = generate(engine, plain)
    together = generate(engine, mixed)

    assert [row.token_ids for row in together[::2]] == [row.token_ids for row in alone]
    assert all(row.token_ids[:3] == [*SCRIPT] for row in together[1::2])


def test_a_script_is_cut_by_the_limit_and_ended_by_a_stop_text(
    engine: TorchEngine, ask: Ask, tokenizer: PreTrainedTokenizerFast
) -> None:
    stop = tokenizer.decode([11])

    cut, stopped = generate(
        engine,
        [
            ask([5, 6], script=SCRIPT, max_new_tokens=2),
            ask([5, 6], script=SCRIPT, max_new_tokens=8, stop=(stop,)),
        ],
    )

    assert (cut.token_ids, cut.reason) == ([9, 11], "length")
    assert (stopped.token_ids, stopped.reason) == ([9, 11], "stop")


def test_siblings_say_each_its_own(engine: TorchEngine, ask: Ask) -> None:
    first = ask([5, 6], script=SCRIPT, max_new_tokens=3)

    rows = generate(
        engine,
        [first, first.unwritten(seed=1, script=(20, 21, 22)), first.unwritten(seed=2, script=())],
    )

    assert rows[0].token_ids == [*SCRIPT]
    assert rows[1].token_ids == [20, 21, 22]
    assert rows[2].token_ids != [*SCRIPT]
