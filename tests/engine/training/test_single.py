"""The single backend: exact resume, stopping, failures, mini-batches, joint losses, mismatch."""

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, near, rounding
from tests.matrix import some
from torch import nn
from transformers import PreTrainedModel

from coloop.algorithms.batch import completion_sequence
from coloop.errors import CheckpointError, StopRequested
from coloop.spec.training import Training
from coloop.workers.training import BACKENDS, Hooks, Learner, Scorer, SingleBackend, TrainBatch
from coloop.workers.training.learner import UpdateFailed

MakeLoad = Callable[..., TrainBatch]
MakeTraining = Callable[..., Training]
Build = Callable[..., PreTrainedModel]

TERMS = 3000
"""More roundings than a pass there and back of these models has over 12 rows of up to 11 tokens."""

SCALE = 10.0
"""Greatest logit, and so log-prob, of these models."""

SAME = rounding(TERMS, scale=SCALE)
"""Below this, log-probs of the same weights differ by rounding alone."""


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def scored(scorer: Any, rows: Any, temperature: float = 1.0) -> list[list[float]]:
    """Scores as lists, which compare by what they hold."""
    return [one.tolist() for one in scorer.score(rows, temperature=temperature)]


def is_same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def scored_by(backend: SingleBackend, load: TrainBatch) -> TrainBatch:
    """The load as the backend's own weights would have written it."""
    scores = backend.score(load.rows, temperature=load.temperature)
    rows = [
        replace(row, log_probs_rollout=own, log_probs_reference=own)
        for row, own in zip(load.rows, scores, strict=True)
    ]
    return replace(load, rows=rows)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "optimizer", some(["adamw", "rmsprop", "sgd", "lion", "muon"], kept=["adamw", "muon"])
)
@pytest.mark.parametrize(
    "fields", [{}, {"mini_batch": 4, "epochs": 2}], ids=["one step", "six steps"]
)
def test_some_updates_a_checkpoint_and_the_rest_equal_all_updates_bit_for_bit(
    build_model: Build,
    make_load: MakeLoad,
    make_training: MakeTraining,
    optimizer: str,
    fields: dict[str, Any],
    tmp_path: Path,
) -> None:
    training = make_training(
        optimizer={
            "name": optimizer,
            "momentum": None if optimizer in ("adamw", "lion") else 0.5,
            "weight_decay": 0.1,
            "schedule": "cosine",
            "warmup": 2,
        },
        **fields,
    )
    kl = {"coefficient": 0.1, "target": 0.01, "horizon": 100}

    def loads(update: int) -> list[TrainBatch]:
        return [make_load("grpo", seed=update, kl=kl), make_load("sft", seed=update + 50)]

    def go_on(backend: SingleBackend, first: int, last: int) -> list[float]:
        return [
            backend.update(loads(update), training, seed=update).metrics["actor"]["loss"]
            for update in range(first, last)
        ]

    whole = SingleBackend(build_model(), training)
    whole.begin_phase(6)
    losses = go_on(whole, 0, 6)

    half = SingleBackend(build_model(), training)
    half.begin_phase(6)
    go_on(half, 0, 3)
    torch.save(half.state_dict(), tmp_path / "trainer.pt")
    saved = torch.load(tmp_path / "trainer.pt", weights_only=True)
    resumed = SingleBackend(build_model(seed=99), training)
    resumed.load_state_dict(saved)
    torch.manual_seed(12345)
    rest = go_on(resumed, 3, 6)

    assert rest == losses[3:]
    assert is_same(weights(whole.model), weights(resumed.model))
    assert resumed.updates == 6


def test_dropout_is_drawn_from_the_seed_of_the_update(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()

    def run(noise: int) -> list[torch.Tensor]:
        backend = SingleBackend(build_model(attention_dropout=0.5), training)
        torch.manual_seed(noise)
        backend.update([make_load("sft")], training, seed=4)
        return weights(backend.model)

    assert is_same(run(1), run(2))


def test_ratios_are_measured_against_the_policy_without_dropout(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=4)
    backend = SingleBackend(build_model(attention_dropout=0.5), training)
    load = scored_by(backend, make_load("grpo"))

    metrics = backend.update([load], training, seed=0).metrics["actor"]

    assert metrics["mismatch/max"] < SAME


def test_an_update_leaves_the_global_generator_alone(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=4)
    backend = SingleBackend(build_model(), training)
    torch.manual_seed(3)
    expected = torch.rand(3)

    torch.manual_seed(3)
    backend.update([make_load("grpo")], training, seed=0)

    assert torch.equal(torch.rand(3), expected)


@pytest.mark.slow
def test_a_stop_before_the_first_step_changes_nothing(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=4, micro_batch=1)
    backend = SingleBackend(build_model(), training)
    backend.update([make_load("grpo")], training, seed=0)
    before, state = weights(backend.model), copy.deepcopy(backend.state_dict())
    asked = iter([False] * 14 + [True])

    with pytest.raises(StopRequested):
        backend.update(
            [make_load("grpo")],
            training,
            seed=1,
            hooks=Hooks(should_stop=lambda: next(asked)),
        )

    after = backend.state_dict()
    assert is_same(before, weights(backend.model))
    assert after["updates"] == state["updates"]
    assert torch.equal(
        after["optimizer"]["parts"]["main"]["state"][0]["exp_avg"],
        state["optimizer"]["parts"]["main"]["state"][0]["exp_avg"],
    )
    assert all(p.grad is None for p in backend.model.parameters())


def test_a_stop_after_the_first_step_completes_the_update(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=4)
    backend, undisturbed = (SingleBackend(build_model(), training) for _ in range(2))
    # one micro-batch measures old log-probs, one makes the first step; then the stop is asked
    asked = iter([False, False] + [True] * 9)

    backend.update(
        [make_load("grpo")], training, seed=1, hooks=Hooks(should_stop=lambda: next(asked))
    )
    undisturbed.update([make_load("grpo")], training, seed=1)

    assert is_same(weights(backend.model), weights(undisturbed.model))


@pytest.mark.slow
def test_progress_counts_every_row_of_every_pass(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=4, epochs=2, micro_batch=2)
    seen: list[tuple[int, int]] = []

    SingleBackend(build_model(), training).update(
        [make_load("grpo", size=10)],
        training,
        seed=0,
        hooks=Hooks(progress=lambda done, total: seen.append((done, total))),
    )

    # 10 rows of old log-probs and 2 epochs of 10
    assert seen[-1] == (30, 30)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_the_place_and_leaves_the_weights(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining, bad: float
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training, group="solver")
    load = make_load("grpo", size=3)
    broken = replace(load, rows=[*load.rows[:2], replace(load.rows[2], advantages=bad)])
    before = weights(backend.model)

    with pytest.raises(UpdateFailed, match=r"actor\.rewards.*step 0 of update 0 of 'solver'") as e:
        backend.update([broken], training, seed=0)

    carried = pickle.loads(pickle.dumps(e.value))
    assert (str(carried), carried.node) == (str(e.value), "actor")
    assert is_same(before, weights(backend.model))
    assert backend.updates == 0


def test_a_gradient_that_is_not_finite_leaves_the_weights(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    model = build_model()
    backend = SingleBackend(model, training, group="solver")
    model.lm_head.weight.register_hook(lambda gradient: gradient * float("nan"))
    before = weights(model)

    with pytest.raises(UpdateFailed, match="gradient of 'solver' is nan in optimizer step 0"):
        backend.update([make_load("grpo")], training, seed=0)

    assert is_same(before, weights(model))


def test_the_first_step_of_an_on_policy_update_is_at_ratio_one(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)

    load = scored_by(backend, make_load("grpo", kl={"coefficient": 0.1}))
    metrics = backend.update([load], training, seed=0).metrics["actor"]

    assert metrics["ratio/max"] == 1.0
    assert metrics["clip_fraction"] == 0.0
    assert metrics["mismatch_kl"] == near(0.0, terms=TERMS)
    assert metrics["mismatch/max"] < SAME
    assert metrics["kl"] == near(0.0, terms=TERMS)


def test_several_steps_measure_ratios_against_the_policy_before_the_first(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(lr=0.05, mini_batch=4, epochs=3)
    backend = SingleBackend(build_model(), training)

    load = scored_by(backend, make_load("grpo", kl={"coefficient": 0.1}))
    metrics = backend.update([load], training, seed=0).metrics["actor"]

    assert metrics["ratio/max"] > 1.2
    assert metrics["clip_fraction"] > 0
    assert metrics["optimizer_steps"] == 9
    assert metrics["mismatch_kl"] == near(0.0, terms=TERMS)


def test_two_steps_of_an_update_begin_each_with_no_gradient(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """Imitation knows no old policy: two epochs of one batch are two updates."""
    once, twice = (
        make_training(lr=0.1, optimizer={"name": "sgd"}, gradient_clip=None, epochs=epochs)
        for epochs in (1, 2)
    )
    first, second = (SingleBackend(build_model(), once) for _ in "ab")
    load = make_load("sft")

    for seed in range(2):
        first.update([load], once, seed=seed)
    second.update([load], twice, seed=0)

    for ours, theirs in zip(weights(second.model), weights(first.model), strict=True):
        assert_near(ours, theirs, terms=TERMS)
    ratios = second.update([make_load("grpo")], twice, seed=1).metrics["actor"]
    assert ratios["ratio/max"] > 1.0 + SAME


def test_mismatch_with_the_engine_is_measured_and_corrected(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """The engine believes each token 4 times less likely: w = 4, truncated at 2."""
    training = make_training(lr=1.0, optimizer={"name": "sgd"}, gradient_clip=None)
    model = build_model()
    backend = SingleBackend(model, training)
    own = scored_by(backend, make_load("grpo"))
    rows = [
        replace(row, log_probs_rollout=[p - math.log(4) for p in row.log_probs_rollout])
        for row in own.rows
    ]
    start = weights(model)

    def step(load: TrainBatch) -> tuple[list[torch.Tensor], dict[str, float]]:
        fresh = SingleBackend(build_model(), training)
        metrics = dict(fresh.update([load], training, seed=0).metrics["actor"])
        moved = [b - a for a, b in zip(start, weights(fresh.model), strict=True)]
        return moved, metrics

    plain, _ = step(own)
    corrected, metrics = step(replace(own, rows=rows))

    assert metrics["mismatch/max"] == near(math.log(4), terms=TERMS, scale=SCALE)
    # rollout against trainer: e^{log 4} - log 4 - 1 with x = -log 4
    assert metrics["mismatch_kl"] == near(4 - math.log(4) - 1, terms=TERMS, scale=4 * SCALE)
    scale = SCALE * max(float(gradient.abs().max()) for gradient in plain)
    for ours, theirs in zip(corrected, plain, strict=True):
        assert_near(ours, 2 * theirs, terms=TERMS, scale=scale)


@pytest.mark.parametrize("mini_batch", [None, 4])
def test_mismatch_is_of_trained_tokens_and_its_greatest_of_either_sign(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining, mini_batch: int | None
) -> None:
    """One token 4 times less likely to the engine, one 8 times more; gaps are of nobody's concern.

    x = log engine - log trainer, k3 = e^-x + x - 1: for -log 4 it is 4 - log 4 - 1, for log 8 it
    is 1/8 + log 8 - 1; the greatest |x| is log 8.
    """
    training = make_training(mini_batch=mini_batch)
    backend = SingleBackend(build_model(), training)
    own = scored_by(backend, make_load("grpo"))
    differences = [-math.log(4), math.log(8)]
    rows = []
    for row in own.rows:
        engine = list(row.log_probs_rollout)
        for place, is_trained in enumerate(row.loss_mask):
            if not is_trained:
                engine[place] = -30.0
            elif differences:
                engine[place] += differences.pop()
        rows.append(replace(row, log_probs_rollout=engine))
    trained = sum(sum(row.loss_mask) for row in own.rows)
    gaps = sum(len(row.loss_mask) for row in own.rows) - trained

    metrics = backend.update([replace(own, rows=rows)], training, seed=0).metrics["actor"]

    assert gaps > 0
    assert metrics["mismatch/max"] == near(math.log(8), terms=TERMS, scale=SCALE)
    expected = (4 - math.log(4) - 1) + (1 / 8 + math.log(8) - 1)
    assert metrics["mismatch_kl"] == near(expected / trained, terms=TERMS, scale=4 * SCALE)


def test_temperature_is_applied_to_the_logits_as_by_the_sampler(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)
    load = scored_by(backend, make_load("grpo", temperature=0.6))

    hot = backend.update([replace(load, temperature=0.6)], training, seed=0).metrics["actor"]

    assert hot["mismatch/max"] < SAME


@pytest.mark.parametrize("mini_batch", [None, 4])
def test_rows_of_different_temperatures_learn_each_at_its_own(
    mini_batch: int | None, build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=mini_batch, micro_batch=3)
    backend = SingleBackend(build_model(), training)
    load = make_load("grpo")
    cold, hot = (
        scored_by(backend, replace(load, temperature=heat, rows=load.rows)).rows
        for heat in (0.6, 1.0)
    )
    rows = [(cold, hot)[place % 2][place] for place in range(len(load.rows))]
    untrained = replace(rows[3], loss_mask=[False] * len(rows[3].loss_mask))
    heats = [(0.6, 1.0)[place % 2] for place in range(len(rows))]
    mixed = replace(load, rows=[*rows[:3], untrained, *rows[4:]], temperature=heats)

    metrics = backend.update([mixed], training, seed=0).metrics["actor"]

    assert metrics["mismatch/max"] < SAME


def test_two_ports_are_divided_each_by_its_own_count_then_weighted(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(lr=1.0, optimizer={"name": "sgd"}, gradient_clip=None)
    start = weights(build_model())

    def move(*loads: TrainBatch) -> tuple[list[torch.Tensor], dict[str, float]]:
        backend = SingleBackend(build_model(), training)
        metrics = dict(backend.update(loads, training, seed=0).metrics["actor"])
        return [b - a for a, b in zip(start, weights(backend.model), strict=True)], metrics

    rewards = make_load("grpo", size=11)
    examples = make_load("sft", size=4, seed=9, weight=0.1)
    first, first_metrics = move(rewards)
    second, second_metrics = move(replace(examples, weight=1.0))

    both, metrics = move(rewards, examples)

    assert metrics["loss/rewards"] == near(first_metrics["loss/rewards"], terms=TERMS)
    assert metrics["loss/demonstrations"] == near(0.1 * second_metrics["loss"], terms=TERMS)
    assert metrics["loss"] == near(
        metrics["loss/rewards"] + metrics["loss/demonstrations"], terms=TERMS
    )
    scale = max(float(move.abs().max()) for move in (*first, *second))
    for ours, a, b in zip(both, first, second, strict=True):
        assert_near(ours, a + 0.1 * b, terms=TERMS, scale=scale)


def test_roles_that_share_weights_have_their_own_metrics(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(mini_batch=5)
    loads = [make_load("grpo", role="solver", size=10), make_load("rloo", role="judge", size=3)]

    report = SingleBackend(build_model(), training).update(loads, training, seed=0)

    assert set(report.metrics) == {"solver", "judge"}
    assert report.metrics["solver"]["grad_norm"] == report.metrics["judge"]["grad_norm"]
    assert report.metrics["solver"]["loss"] != report.metrics["judge"]["loss"]
    assert report.samples == 13
    assert report.metrics["solver"]["optimizer_steps"] == 2


def test_an_update_improves_what_it_is_taught(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """The model learns the copies of one text, and then prefers what is rewarded."""
    training = make_training(lr=1e-2)
    backend = SingleBackend(build_model(), training)
    load = make_load("sft", size=8)

    first = backend.update([load], training, seed=0).metrics["actor"]["loss"]
    for update in range(1, 40):
        last = backend.update([load], training, seed=update).metrics["actor"]["loss"]

    assert last < 0.5 * first

    good, bad = (
        completion_sequence(
            id=str(token),
            prompt_ids=[1],
            completion_ids=[token],
            loss_mask=[True],
            advantages=advantage,
        )
        for token, advantage in ((5, 1.0), (6, -1.0))
    )
    before = backend.score([good, bad])
    backend.update([make_load("grpo", rows=[good, bad])], training, seed=0)
    after = backend.score([good, bad])
    assert after[0][1] > before[0][1]
    assert after[1][1] < before[1][1]


@pytest.mark.parametrize("algorithm", ["spin", "dpo"])
def test_a_preference_update_starts_at_ln_2_where_the_reference_is_the_policy(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining, algorithm: str
) -> None:
    training = make_training(lr=1e-2)
    backend = SingleBackend(build_model(), training)
    load = make_load(algorithm, size=6)
    pairs = []
    for pair in load.rows:
        chosen, rejected = backend.score([pair.chosen, pair.rejected])
        pairs.append(
            replace(
                pair,
                weight=1.0,
                chosen=replace(pair.chosen, log_probs_reference=chosen),
                rejected=replace(pair.rejected, log_probs_reference=rejected),
            )
        )
    load = replace(load, rows=pairs)

    first = backend.update([load], training, seed=0).metrics["actor"]
    second = backend.update([load], training, seed=1).metrics["actor"]

    assert first["loss"] == near(math.log(2), terms=TERMS)
    assert second["loss"] < first["loss"]
    assert second["margin"] > 0


def test_rows_without_a_trained_token_are_skipped(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)
    silent = completion_sequence(
        id="silent", prompt_ids=[1], completion_ids=[2], loss_mask=[False], advantages=1.0
    )
    spoken = replace(silent, id="spoken", loss_mask=[False, True])

    mixed = backend.update([make_load("grpo", rows=[silent, spoken])], training, seed=0)
    nothing = backend.update([make_load("grpo", rows=[silent])], training, seed=0)

    assert (mixed.samples, nothing.samples) == (1, 0)
    assert not nothing.metrics
    assert backend.updates == 1


def test_a_row_that_several_algorithms_learn_is_counted_once(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """Eight rows, six of which a second algorithm learns as well, and one that it has alone."""
    first = make_load("grpo", size=8)
    [alone] = make_load("grpo", size=1, seed=9).rows
    alone = replace(alone, id="alone")
    second = replace(make_load("rloo", rows=[*first.rows[:6], alone]), number=1)
    backend = SingleBackend(build_model(), make_training())

    report = backend.update([first, second], make_training(), seed=0)

    tokens = [sum(map(bool, row.loss_mask)) for row in (*first.rows, alone)]
    assert (report.samples, report.tokens) == (9, sum(tokens))


@pytest.mark.parametrize(("silent", "rows"), [(("chosen",), 1), (("chosen", "rejected"), 0)])
def test_a_pair_learns_from_the_side_that_has_a_trained_token(
    silent: tuple[str, ...],
    rows: int,
    build_model: Build,
    make_load: MakeLoad,
    make_training: MakeTraining,
) -> None:
    training = make_training()
    [pair] = make_load("dpo", size=1).rows
    mute = {
        side: replace(getattr(pair, side), loss_mask=[False] * len(getattr(pair, side).token_ids))
        for side in silent
    }

    report = SingleBackend(build_model(), training).update(
        [make_load("dpo", rows=[replace(pair, **mute)])], training, seed=0
    )

    assert report.samples == rows


def test_what_a_recipe_does_not_read_may_differ_between_rows(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """SPIN: chosen is text without log-probs of an engine, rejected a rollout with them."""
    training = make_training()
    spin, sft = make_load("spin", size=3), make_load("sft", size=3)
    mixed_pairs = [
        replace(pair, chosen=replace(pair.chosen, log_probs_rollout=None, advantages=None))
        for pair in spin.rows
    ]
    mixed_rows = [replace(sft.rows[0], log_probs_rollout=None), *sft.rows[1:]]

    for load, rows in ((spin, mixed_pairs), (sft, mixed_rows)):
        plain = SingleBackend(build_model(), training).update([load], training, seed=0)
        mixed = SingleBackend(build_model(), training).update(
            [replace(load, rows=rows)],
            training,
            seed=0,
        )
        assert mixed.metrics == plain.metrics


def test_a_frozen_model_scores_as_a_training_one_and_follows_new_weights(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    rows = make_load("grpo", size=4).rows
    frozen = build_model()
    scorer = Scorer(frozen)
    trainer = SingleBackend(build_model(seed=1), make_training())

    before = scored(scorer, rows, temperature=0.8)
    trained = SingleBackend(build_model(), make_training())
    assert before == scored(trained, rows, temperature=0.8)
    frozen.load_state_dict(trainer.model.state_dict())

    assert scored(scorer, rows) == scored(trainer, rows)


def test_the_rate_and_the_settings_of_each_update_are_its_own(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    backend = SingleBackend(build_model(), make_training(lr=1e-3))
    start = weights(backend.model)

    still = backend.update([make_load("grpo")], make_training(lr=0.0), seed=0)
    assert is_same(start, weights(backend.model))
    moved = backend.update([make_load("grpo")], make_training(lr=1e-2), seed=0)

    assert still.metrics["actor"]["lr"] == 0.0
    assert moved.metrics["actor"]["lr"] == 1e-2
    assert not is_same(start, weights(backend.model))


def test_warm_up_and_decay_start_anew_with_each_phase(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training(lr=1.0e-3, optimizer={"schedule": "linear", "warmup": 1})
    backend = SingleBackend(build_model(), training)

    def rates(updates: int) -> list[float]:
        backend.begin_phase(updates)
        return [
            backend.update([make_load("sft")], training, seed=k).metrics["actor"]["lr"]
            for k in range(updates)
        ]

    assert rates(3) == pytest.approx([0.5e-3, 1e-3, 0.5e-3])
    assert rates(3) == pytest.approx([0.5e-3, 1e-3, 0.5e-3])


def test_a_long_gradient_is_clipped_and_its_length_reported(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    loose = make_training(lr=1.0, optimizer={"name": "sgd"}, gradient_clip=None)
    tight = make_training(lr=1.0, optimizer={"name": "sgd"}, gradient_clip=0.01)
    start = weights(build_model())
    backends = [SingleBackend(build_model(), section) for section in (loose, tight)]

    norms = [
        backend.update([make_load("grpo")], section, seed=0).metrics["actor"]["grad_norm"]
        for backend, section in zip(backends, (loose, tight), strict=True)
    ]

    moved = torch.cat(
        [(b - a).flatten() for a, b in zip(start, weights(backends[1].model), strict=True)]
    )
    assert norms[0] == near(norms[1], terms=TERMS)
    # The limit over the norm plus 1e-6, and what is left when weights of about 1 move by so little.
    assert float(moved.norm()) == near(0.01, terms=TERMS)


def test_a_kl_coefficient_follows_its_target_across_updates_and_restarts(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)
    kl = {"coefficient": 0.1, "target": 1e-6, "horizon": 100}

    first, second = (
        backend.update([make_load("grpo", kl=kl)], training, seed=k).metrics["actor"]
        for k in range(2)
    )
    restored = SingleBackend(build_model(), training)
    restored.load_state_dict(backend.state_dict())
    third = restored.update([make_load("grpo", kl=kl)], training, seed=2).metrics["actor"]

    # far above the target: each update of 12 rows multiplies the next one's by 1 + 0.2·12/100
    found = [m["kl/coefficient"] for m in (first, second, third)]
    assert found == pytest.approx([0.1 * 1.024**k for k in range(3)])


@pytest.mark.parametrize("beside", ["sft", "dpo"])
def test_of_a_role_that_scores_teach_entropy_and_kl_are_of_the_texts_that_are_scored(
    beside: str, build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    """A coefficient that follows its KL must not follow that of pairs."""
    training = make_training()
    scored = make_load("grpo", kl={"coefficient": 0.1, "target": 0.9, "horizon": 100})
    other = make_load(beside, seed=5)

    alone, together, others = (
        SingleBackend(build_model(), training).update(loads, training, seed=0).metrics["actor"]
        for loads in ([scored], [scored, other], [other])
    )

    shown = ("entropy", "kl", "kl/coefficient")
    assert [together[name] for name in shown] == near([alone[name] for name in shown], terms=TERMS)
    assert others["entropy"] > 0
    assert ("kl" in others) == (beside == "dpo")


def test_gradient_checkpointing_changes_no_number(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    found = []
    for is_on in (False, True):
        training = make_training(lr=1.0, optimizer={"name": "sgd"}, gradient_checkpointing=is_on)
        backend = SingleBackend(build_model(), training)
        backend.update([make_load("grpo")], training, seed=0)
        found.append(weights(backend.model))

    for plain, again in zip(*found, strict=True):
        assert_near(again, plain, terms=TERMS, scale=1.0)


def test_bfloat16_products_stay_near_those_in_float32(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    found = []
    for dtype in ("float32", "bfloat16"):
        training = make_training(dtype=dtype)
        backend = SingleBackend(build_model(), training)
        found.append(backend.update([make_load("sft")], training, seed=0).metrics["actor"])
        assert next(backend.model.parameters()).dtype == torch.float32

    assert found[0]["loss"] != found[1]["loss"]
    # Each of 7 products of 2 layers and the head's leaves 8 bits; sums are in float32.
    assert found[0]["loss"] == near(found[1]["loss"], terms=15, dtype=torch.bfloat16)


def test_evaluating_reports_what_an_update_would_and_learns_nothing(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)
    before = weights(backend.model)

    seen = backend.evaluate([make_load("dpo")], training).metrics["actor"]

    assert is_same(before, weights(backend.model))
    learned = backend.update([make_load("dpo")], training, seed=0).metrics["actor"]
    assert seen["loss"] == near(learned["loss"], terms=TERMS)
    assert seen["accuracy"] == learned["accuracy"]


def test_resetting_the_optimizer_forgets_its_means_and_nothing_else(
    build_model: Build, make_load: MakeLoad, make_training: MakeTraining
) -> None:
    training = make_training()
    backend = SingleBackend(build_model(), training)
    backend.update([make_load("sft")], training, seed=0)
    before = weights(backend.model)

    backend.reset_optimizer()

    assert is_same(before, weights(backend.model))
    assert backend.state_dict()["optimizer"]["parts"]["main"]["state"] == {}
    assert backend.updates == 1


def test_state_of_another_model_or_version_is_refused(
    build_model: Build, make_training: MakeTraining
) -> None:
    backend = SingleBackend(build_model(), make_training(), group="actor")
    other = SingleBackend(build_model(hidden_size=32), make_training())
    lion = SingleBackend(build_model(), make_training(optimizer={"name": "lion"}))

    for state in (other.state_dict(), lion.state_dict(), {"version": 0}):
        with pytest.raises(CheckpointError, match="`actor`") as told:
            backend.load_state_dict(state)
        assert len(str(told.value)) < 500


def test_the_backend_fits_its_protocol(build_model: Build, make_training: MakeTraining) -> None:
    backend: Learner = BACKENDS["single"](build_model(), make_training(), group="actor")

    assert backend.score([]) == []
