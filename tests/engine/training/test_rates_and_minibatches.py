"""Learning rates over a phase, and which rows make which step."""

import pytest

from coloop.spec.training import Optimizer
from coloop.workers.training.optimizers import learning_rate
from coloop.workers.training.ranks import plan_steps


def rates(total: int, **fields: object) -> list[float]:
    section = Optimizer.model_validate({"lr": 1.0, **fields})
    return [learning_rate(section, done=done, total=total) for done in range(total)]


def test_rates_on_literal_numbers() -> None:
    assert rates(3) == [1.0, 1.0, 1.0]
    assert rates(4, schedule="linear") == [1.0, 0.75, 0.5, 0.25]
    assert rates(4, schedule="linear", min_lr=0.2) == pytest.approx([1.0, 0.8, 0.6, 0.4])
    assert rates(4, schedule="cosine")[2] == pytest.approx(0.5)
    assert rates(5, warmup=3) == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates(6, warmup=2, schedule="linear") == pytest.approx(
        [1 / 3, 2 / 3, 1, 0.75, 0.5, 0.25]
    )
    assert rates(10, warmup=0.3)[:4] == [0.25, 0.5, 0.75, 1.0]


def test_a_phase_without_an_end_has_a_constant_rate_only() -> None:
    constant = Optimizer.model_validate({"lr": 1.0, "warmup": 2})

    assert learning_rate(constant, done=50, total=None) == 1.0
    for fields in ({"schedule": "linear"}, {"warmup": 0.1}):
        section = Optimizer.model_validate({"lr": 1.0, **fields})
        with pytest.raises(ValueError, match="phase"):
            learning_rate(section, done=0, total=None)


def test_updates_beyond_the_phase_stay_at_the_end_of_the_decay() -> None:
    section = Optimizer.model_validate({"lr": 1.0, "schedule": "cosine", "min_lr": 0.1})

    assert learning_rate(section, done=99, total=10) == pytest.approx(0.1)


@pytest.mark.parametrize("sizes", [[256], [10, 3], [7, 7, 0], [1]])
@pytest.mark.parametrize("mini_batch", [None, 1, 4, 64])
@pytest.mark.parametrize("epochs", [1, 3])
def test_every_row_is_learned_once_an_epoch(
    sizes: list[int], mini_batch: int | None, epochs: int
) -> None:
    steps = plan_steps(sizes, mini_batch=mini_batch, epochs=epochs, seed=5)

    per_epoch = len(steps) // epochs
    for epoch in range(epochs):
        for load, size in enumerate(sizes):
            part = steps[epoch * per_epoch : (epoch + 1) * per_epoch]
            assert sorted(row for step in part for row in step[load]) == list(range(size))
    if mini_batch is not None:
        assert all(len(step[0]) <= mini_batch for step in steps)
        assert per_epoch == -(-max(sizes) // mini_batch)


def test_mini_batches_are_as_even_as_they_can_be() -> None:
    steps = plan_steps([100], mini_batch=64, epochs=1, seed=0)

    assert [len(step[0]) for step in steps] == [50, 50]


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    first = plan_steps([50], mini_batch=10, epochs=2, seed=7)

    assert first == plan_steps([50], mini_batch=10, epochs=2, seed=7)
    assert first != plan_steps([50], mini_batch=10, epochs=2, seed=8)
    assert first[:5] != first[5:]


def test_a_single_step_keeps_the_rows_in_order() -> None:
    assert plan_steps([5], mini_batch=None, epochs=1, seed=3) == [[[0, 1, 2, 3, 4]]]
