"""Score heads: made by a seed on any trunk, saved and loaded as Hugging Face has sequence
classifiers, counted as they are priced."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.training.conftest import CONFIGS, tiny_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from coloop.algorithms.batch import Sequence
from coloop.errors import ModelUnavailable
from coloop.models import character_tokenizer, load_weights, save_hf
from coloop.models.heads import (
    HeadSpec,
    has_words,
    score_head,
    score_heads,
    that_write,
    with_both_heads,
    with_each_head,
    with_head,
    with_one_of,
    writing_part,
)
from coloop.models.pretrained import load_pretrained
from coloop.plan.settings.architecture import architecture_from_config, count_parameters
from coloop.workers.training import Scorer


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_new_head_stands_on_the_same_trunk_and_its_seed_decides_it(kind: str) -> None:
    state = torch.random.get_rng_state()
    before = dict(tiny_model(kind).base_model.named_parameters())
    torch.random.set_rng_state(state)

    one, same, other = (with_head(tiny_model(kind), "score", seed=k) for k in (1, 1, 2))

    heads = [score_head(model) for model in (one, same, other)]
    assert all(head is not None and head.weight.shape == (1, 16) for head in heads)
    assert torch.equal(one.score.weight, same.score.weight)
    assert not torch.equal(one.score.weight, other.score.weight)
    for name, weight in one.base_model.named_parameters():
        assert torch.equal(weight, before[name])
    assert not any(p.is_meta for p in one.parameters())
    assert not any(buffer.is_meta for buffer in one.buffers())


def test_a_new_head_leaves_the_global_generator_alone() -> None:
    model = tiny_model()
    state = torch.random.get_rng_state()

    with_head(model, "score", seed=3)

    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_model_that_has_its_head_is_left_as_it_is() -> None:
    words, scorer = tiny_model(), tiny_model(head="score")

    assert with_head(words, "words", seed=1) is words
    assert with_head(scorer, "score", seed=1) is scorer
    assert has_words(words)
    assert not has_words(scorer)
    with pytest.raises(ModelUnavailable, match="Qwen3ForSequenceClassification has a score head"):
        with_head(scorer, "words", seed=1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_scorer_is_a_folder_that_others_load(kind: str, tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    fields: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    model = tiny_model(kind, head="score", **fields)
    text = Sequence(id="0", token_ids=[5, 6, 7, 8], loss_mask=[False, True, True, True])

    save_hf(tmp_path / "scorer", model, tokenizer)
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "scorer")
    ours, *_ = load_pretrained("scorer", tmp_path, dtype=torch.float32)

    assert type(ours) is type(theirs) is type(model)
    assert torch.equal(ours.score.weight, model.score.weight)
    with torch.no_grad():
        said = theirs.eval()(input_ids=torch.tensor([[5, 6, 7, 8]])).logits
    (found,) = Scorer(ours).score([text], "scores")
    assert found.tolist() == pytest.approx(said[0].tolist(), abs=1e-5)


def test_a_plain_folder_still_loads_and_its_head_is_drawn_by_the_seed(tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    save_hf(tmp_path / "plain", tiny_model(vocab_size=len(tokenizer)), tokenizer)

    words, *_ = load_pretrained("plain", tmp_path, dtype=torch.float32)
    scorers = [
        with_head(load_pretrained("plain", tmp_path, dtype=torch.float32)[0], "score", seed=5)
        for _ in range(2)
    ]

    assert isinstance(words, type(AutoModelForCausalLM.from_pretrained(tmp_path / "plain")))
    assert torch.equal(scorers[0].score.weight, scorers[1].score.weight)
    saved = load_weights(tmp_path / "plain")
    for name, weight in scorers[0].base_model.named_parameters():
        assert torch.equal(weight, saved[f"model.{name}"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["qwen3", "llama", "mistral", "gemma2", "gemma3"])
def test_a_scorer_has_as_many_weights_as_are_priced(kind: str) -> None:
    model = tiny_model(kind, head="score")

    count = count_parameters(architecture_from_config(model.config.to_dict()), "score")

    assert count.total == sum(p.numel() for p in model.parameters())
    assert count.head == 16


def test_a_score_head_stands_beside_the_words_and_both_are_loaded_again(tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    plain = tiny_model(vocab_size=len(tokenizer))
    words = {name: weight.clone() for name, weight in plain.named_parameters()}

    both: Any = with_both_heads(plain, seed=1, classes=3)
    save_hf(tmp_path / "both", both, tokenizer)
    loaded: Any = load_pretrained("both", tmp_path, dtype=torch.float32)[0]

    assert has_words(both)
    assert both.score.weight.shape == (3, 16)
    assert with_both_heads(both, seed=9, classes=3).score is both.score
    assert all(torch.equal(dict(both.named_parameters())[name], words[name]) for name in words)
    assert torch.equal(loaded.score.weight, both.score.weight)


def test_what_writes_is_the_model_without_its_score_head() -> None:
    both: Any = with_both_heads(tiny_model(), seed=1)

    part = writing_part(both)

    names = dict(tiny_model().named_parameters()).keys()
    assert dict(part.named_parameters()).keys() == names
    assert {name for name, _ in that_write(both.named_parameters())} == names
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(part(input_ids=ids).logits, both(input_ids=ids).logits)
    assert writing_part(part) is part


def test_a_scorer_of_a_model_with_both_heads_keeps_its_head() -> None:
    both: Any = with_both_heads(tiny_model(), seed=1)

    scorer: Any = with_head(both, "score", seed=2)

    assert not has_words(scorer)
    assert torch.equal(scorer.score.weight, both.score.weight)


def test_a_head_of_other_classes_than_are_read_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match="a head of 3 classes, but one number is read"):
        with_head(with_head(tiny_model(), "score", seed=1, classes=3), "score", seed=1)
    with pytest.raises(ModelUnavailable, match="no language-model head"):
        with_both_heads(tiny_model(head="score"), seed=1)


WANTED = [HeadSpec(node="values", classes=1, seed=1), HeadSpec(node="judge", classes=3, seed=2)]
"""The first is called like something that a module has."""


@pytest.mark.parametrize("beside_words", [True, False])
def test_each_node_has_a_head_of_its_own_and_all_are_loaded_again(
    beside_words: bool, tmp_path: Path
) -> None:
    tokenizer = character_tokenizer()
    plain = tiny_model(vocab_size=len(tokenizer))
    names = dict(plain.named_parameters()).keys()

    several = with_each_head(plain, WANTED, of=None, beside_words=beside_words)
    save_hf(tmp_path / "several", several, tokenizer)
    loaded: Any = load_pretrained("several", tmp_path, dtype=torch.float32)[0]

    assert has_words(several) is has_words(loaded) is beside_words
    assert {name for name, _ in that_write(several.named_parameters())} <= names
    heads = score_heads(loaded)
    assert {node: head.out_features for node, head in heads.items()} == {"values": 1, "judge": 3}
    for node, head in score_heads(several).items():
        assert torch.equal(heads[node].weight, head.weight)


def test_heads_of_nodes_are_drawn_by_their_own_seeds_and_begin_as_those_they_come_from() -> None:
    drawn, turned = (
        score_heads(with_each_head(tiny_model(), wanted, of=None, beside_words=True))
        for wanted in (WANTED, WANTED[::-1])
    )
    assert all(torch.equal(turned[node].weight, head.weight) for node, head in drawn.items())

    one: Any = with_head(tiny_model(), "score", seed=5)
    first = one.score.weight.clone()
    both = score_heads(with_each_head(one, WANTED, of="other", beside_words=False))
    assert torch.equal(both["values"].weight, first)  # says as many numbers as the one there is
    assert torch.equal(both["judge"].weight, drawn["judge"].weight)

    kept = score_head(
        with_one_of(
            with_each_head(tiny_model(), WANTED, of=None, beside_words=True), "own", "judge"
        )
    )
    assert kept is not None
    assert torch.equal(kept.weight, drawn["judge"].weight)


def test_what_writes_is_the_model_without_the_heads_of_its_nodes() -> None:
    several = with_each_head(tiny_model(), WANTED, of=None, beside_words=True)

    assert (
        dict(writing_part(several).named_parameters()).keys()
        == dict(tiny_model().named_parameters()).keys()
    )
