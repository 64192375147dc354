"""What is kept of each token of a few rows is what the loss of the update saw."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.engine.training.test_single import SAME, scored_by

from coloop.workers.training import SingleBackend
from coloop.workers.training import train_batch as seen_tokens


def learned(build: Callable[..., Any], make_load: Any, training: Any) -> tuple[Any, Any]:
    """An update of twelve rows with gaps in their masks: the load, and what was seen of it."""
    backend = SingleBackend(build(), training)
    load = scored_by(backend, make_load("grpo", size=12))
    report = backend.update([load], training, seed=1)
    return load, report.seen[load.name]


def test_mask_advantage_and_log_prob_of_each_token_are_those_of_its_row(
    build_model: Any, make_load: Any, make_training: Any
) -> None:
    """One step learns by the weights that scored the rows, so its log-probs are theirs."""
    load, seen = learned(build_model, make_load, make_training(micro_batch=3))

    assert set(seen) == {row.id for row in load.rows}
    for row in load.rows:
        own, mask = seen[row.id], row.loss_mask
        assert own["mask"].tolist() == mask.tolist()
        assert own["advantage"] == pytest.approx(np.where(mask, row.advantages, 0.0))
        expected = np.where(mask, row.log_probs_rollout, 0.0)
        assert own["log_prob"] == pytest.approx(expected, abs=SAME)
        assert not own["log_ratio"].any()
        if mask.sum() > 1:
            assert np.roll(own["log_prob"], 1) != pytest.approx(expected, abs=SAME)


def test_after_several_steps_the_ratio_is_that_of_the_last_pass(
    build_model: Any, make_load: Any, make_training: Any
) -> None:
    training = make_training(lr=1e-2, mini_batch=4, epochs=2)

    load, seen = learned(build_model, make_load, training)

    moved = [
        seen[row.id]["log_ratio"]
        - np.where(row.loss_mask, seen[row.id]["log_prob"] - row.log_probs_rollout, 0.0)
        for row in load.rows
    ]
    assert all(np.abs(one).max() < 10 * SAME for one in moved)
    assert all(np.abs(seen[row.id]["log_ratio"]).max() > 0 for row in load.rows)


def test_no_more_rows_are_kept_than_may_be(
    build_model: Any, make_load: Any, make_training: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_tokens, "MOST_ROWS", 2)

    load, seen = learned(build_model, make_load, make_training())

    assert list(seen) == [row.id for row in load.rows[:2]]
