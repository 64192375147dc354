"""How likely each of a few words comes next: one state a text, whatever its row is read beside."""

from collections.abc import Sequence as Many

import pytest
import torch
from tests.engine.training.conftest import CONFIGS, tiny_model

from coloop.algorithms.batch import Sequence, collate
from coloop.algorithms.recipes.protocol import Needs
from coloop.workers.training.forward import ForwardOptions, Packing, TokenModel
from coloop.workers.training.scorer import ScoresTexts

ASKED = Needs(log_probs=False, choices=True)


def asked(name: str, ids: Many[int], choices: Many[int] = (3, 11)) -> Sequence:
    return Sequence(id=name, token_ids=ids, loss_mask=[False] * len(ids), choices=choices)


TEXTS = [
    asked("a", (5, 6, 7, 8)),
    asked("b", (9,)),
    asked("c", (5, 6, 7, 8)),
    asked("d", (5, 6, 7)),
    asked("e", tuple(range(1, 12)), (11, 3)),
]
"""Two are alike, one is the beginning of them, one has its words in another order."""


def by_hand(model: torch.nn.Module, text: Sequence) -> torch.Tensor:
    ids = torch.tensor([text.token_ids.tolist()])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, -1].float()
    return torch.log_softmax(logits, -1)[text.choices.tolist()]


@pytest.mark.parametrize("kind", CONFIGS)
def test_choices_are_the_log_probs_of_the_next_word(kind: str) -> None:
    model = tiny_model(kind).eval()

    said = ScoresTexts(TokenModel(model)).score(TEXTS, "choices")

    for text, numbers in zip(TEXTS, said, strict=True):
        assert torch.allclose(torch.tensor(numbers), by_hand(model, text), atol=1e-5)


@pytest.mark.parametrize("packing", ["none", "rows"])
def test_choices_do_not_change_with_packing(packing: Packing) -> None:
    model = tiny_model("llama").eval()

    said = TokenModel(model, ForwardOptions(packing=packing)).outputs(collate(TEXTS), ASKED)

    assert said.choices is not None
    for text, numbers in zip(TEXTS, said.choices, strict=True):
        assert torch.allclose(numbers, by_hand(model, text), atol=1e-5)


def test_heat_divides_the_logits_that_choose() -> None:
    model = tiny_model().eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        cooled = torch.log_softmax(model(input_ids=ids).logits[0, -1].float() / 2.0, -1)

    [said] = ScoresTexts(TokenModel(model)).score(TEXTS[:1], "choices", temperature=2.0)

    assert torch.allclose(torch.tensor(said), cooled[[3, 11]], atol=1e-5)


def test_choices_carry_a_gradient_where_it_is_asked_for() -> None:
    model = tiny_model()

    said = TokenModel(model).outputs(collate(TEXTS), ASKED)
    assert said.choices is not None
    said.choices[:, 0].sum().backward()

    assert all(one.grad is not None and one.grad.any() for one in model.parameters())


def test_parts_of_a_batch_keep_their_choices() -> None:
    batch = collate(TEXTS)

    part = batch.select([4, 0, 1])

    assert part.choices is not None
    assert part.choices.tolist() == [[11, 3], [3, 11], [3, 11]]


def test_texts_without_choices_are_not_asked() -> None:
    plain = Sequence(id="p", token_ids=[1, 2], loss_mask=[False, True])

    with pytest.raises(ValueError, match="without choices"):
        ScoresTexts(TokenModel(tiny_model())).score([plain], "choices")
