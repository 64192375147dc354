"""Requests that cannot be served end in an error that names the row, before anything is written."""

from collections.abc import Callable

import pytest
from tests.engine.generating import generate
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import RequestRefused
from coloop.workers.rollout import Generation, TorchEngine

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]


@pytest.mark.parametrize("family", ["qwen3", "gpt2"])
def test_a_text_may_fill_the_model_to_its_last_position(
    family: str, models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = TorchEngine(models(family), tokenizer)

    rows = generate(
        engine,
        [ask([5] * 100, max_new_tokens=28, seed=i) for i in range(6)]
        + [ask([5] * 127, max_new_tokens=1)],
    )

    assert max(len(row.token_ids) for row in rows) == 28


def test_a_full_text_may_wait_for_others_before_it_is_taken_out(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    full = ask([5] * 127, max_new_tokens=1)
    others = [ask([5 + i], seed=i, max_new_tokens=20) for i in range(60)]

    rows = generate(TorchEngine(models("gpt2"), tokenizer), [full, *others])

    assert len(rows[0].token_ids) == 1


def test_a_text_that_may_exceed_the_model_names_row_length_and_limit(
    engine: TorchEngine, ask: Ask
) -> None:
    requests = [ask([5]), ask([5] * 100, id="problems:7/2", max_new_tokens=29)]

    with pytest.raises(RequestRefused, match=r"problems:7/2.* 100 tokens and 29 .* limit is 128"):
        generate(engine, requests)


def test_a_lower_limit_of_the_engine_counts(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, max_length=16)

    generate(engine, [ask([5] * 8, max_new_tokens=8)])
    with pytest.raises(RequestRefused, match="the limit is 16"):
        generate(engine, [ask([5] * 9, max_new_tokens=8)])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prompt_ids": []}, "its prompt has no tokens"),
        ({"prompt_ids": [5, 128]}, "token ids outside of 0 to 127"),
        ({"prompt_ids": [-1]}, "token ids outside of 0 to 127"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"temperature": -0.5}, "temperature is -0.5"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_k": 0}, "top_k is 0"),
        ({"stop": ("",)}, "empty stop text"),
    ],
)
def test_what_cannot_be_served_is_refused_by_row(
    options: dict[str, object], reason: str, engine: TorchEngine
) -> None:
    settings = {"prompt_ids": [5], "seed": 0, "max_new_tokens": 4, **options}

    with pytest.raises(RequestRefused, match=f"^row dataset:3: .*{reason}"):
        generate(engine, [Generation(id="dataset:3", **settings)])
