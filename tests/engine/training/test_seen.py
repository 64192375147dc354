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
    reply = backend.update([load], training, seed=1)
    [rows] = reply.taught.values()
    return load, {row.id: row for row in rows}


def test_mask_advantage_and_log_prob_of_each_token_are_those_of_its_row(
    build_model: Any, make_load: Any, make_training: Any
) -> None:
    """One step learns by the weights that scored the rows, so its log-probs are theirs."""
    load, seen = learned(build_model, make_load, make_training(micro_batch=3))

    assert set(seen) == {row.id for row in load.rows}
    for row in load.rows:
        completion = slice(row.prompt_length, None)
        own, mask = seen[row.id].numbers, row.loss_mask[completion]
        assert seen[row.id].token_ids.tolist() == row.token_ids[completion].tolist()
        assert seen[row.id].loss_mask.tolist() == mask.tolist()
        assert own["advantage"] == pytest.approx(np.where(mask, row.advantages, 0.0))
        expected = np.where(mask, row.log_probs_rollout[completion], 0.0)
        assert own["log_prob"] == pytest.approx(expected, abs=SAME)
        assert not own["log_ratio"].any()
        if mask.sum() > 1:
            assert np.roll(own["log_prob"], 1) != pytest.approx(expected, abs=SAME)


def test_after_several_steps_the_ratio_is_that_of_the_last_pass(
    build_model: Any, make_load: Any, make_training: Any
) -> None:
    training = make_training(lr=1e-2, mini_batch=4, epochs=2)

    load, seen = learned(build_model, make_load, training)

    for row in load.rows:
        own, old = seen[row.id], row.log_probs_rollout[row.prompt_length :]
        ratio = np.where(own.loss_mask, own.numbers["log_prob"] - old, 0.0)
        assert own.numbers["log_ratio"] == pytest.approx(ratio, abs=10 * SAME)
        assert np.abs(own.numbers["log_ratio"]).max() > 0


def test_no_more_rows_are_kept_than_may_be(
    build_model: Any, make_load: Any, make_training: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_tokens, "MOST_ROWS", 2)

    load, seen = learned(build_model, make_load, make_training())

    assert list(seen) == [row.id for row in load.rows[:2]]
