"""Sweeps: their runs, their refusals, and which values lead."""

import pytest

from coloop.errors import SpecProblem, SweepRefused
from coloop.explain.controls import Curve
from coloop.explain.sweeps import Trial, labels_of, stand, sweep_of, values_of
from coloop.spec import presets
from coloop.spec.io import content_hash, parse

LR = "nodes.policy.training.optimizer.lr"
ROWS = "nodes.questions.rows_per_step"


@pytest.fixture(scope="module")
def text():
    return presets.load_loop_text("search-r1")


def spec_of(text):
    return parse(text).spec


def test_every_combination_is_run_with_every_seed(text):
    sweep = sweep_of(text, {LR: [1e-5, 3e-5], ROWS: [4, 8]}, seeds=2)

    runs = [(dict(variant.values), seed) for variant, seed in sweep.runs()]
    first = spec_of(text).run.seed
    assert len(runs) == 2 * 2 * 2
    assert runs[0] == ({LR: 1e-5, ROWS: 4}, first)
    assert {seed for _, seed in runs} == {first, first + 1}
    assert [variant.label for variant in sweep.variants][:2] == [
        "lr 1e-05, rows_per_step 4",
        "lr 1e-05, rows_per_step 8",
    ]


def test_a_run_says_what_it_belongs_to_and_trains_as_without_that(text):
    sweep = sweep_of(text, {LR: [1e-5]}, seeds=2)
    [variant] = sweep.variants

    spec = spec_of(sweep.text_of(variant, 7))

    assert (spec.run.seed, spec.run.sweep.of, spec.run.sweep.fields) == (7, sweep.of, (LR,))
    assert values_of(spec, sweep.fields) == {LR: 1e-5}
    assert spec.nodes["policy"].training.optimizer.lr == 1e-5
    without = spec.model_copy(update={"run": spec.run.model_copy(update={"sweep": None})})
    assert content_hash(spec) == content_hash(without)


def test_more_values_later_belong_to_the_same_sweep(text):
    one = sweep_of(text, {LR: [1e-5]}).of

    assert sweep_of(text, {LR: [1e-5, 2e-5]}, seeds=3).of == one
    assert sweep_of(text, {ROWS: [4]}).of != one
    assert sweep_of(presets.load_loop_text("dapo"), {"run.keep": [1]}).of != one


@pytest.mark.parametrize(
    ("tried", "seeds", "words"),
    [
        ({}, 1, "there is nothing to try: name a setting and its values"),
        ({LR: []}, 1, f"`{LR}` has no value to try; give one or more"),
        ({LR: [1e-5]}, 0, "0 seeds are no run; give 1 or more"),
        ({"run.seed": [1, 2]}, 1, "give the number of seeds instead"),
        (
            {LR: [n / 1e6 for n in range(1, 101)], ROWS: list(range(1, 101))},
            1,
            f"100 of `{LR}` x 100 of `{ROWS}` x 1 seeds are 10,000 runs; a sweep has at most 200",
        ),
    ],
)
def test_what_makes_no_sweep_is_refused_in_words(text, tried, seeds, words):
    with pytest.raises(SweepRefused) as refused:
        sweep_of(text, tried, seeds=seeds)

    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        ({LR: [1e-5, "fast"]}, "lr"),
        ({"nodes.policy.trainning": [1]}, "there is no `trainning`"),
        ({ROWS: [0]}, "rows_per_step"),
    ],
)
def test_a_value_that_does_not_fit_is_named(text, tried, words):
    with pytest.raises(SpecProblem) as refused:
        sweep_of(text, tried)

    assert words in str(refused.value)


def test_settings_are_named_by_what_tells_them_apart():
    fields = ("nodes.a.training.optimizer.lr", "nodes.b.training.optimizer.lr", "run.keep")

    [label] = labels_of(fields, [dict(zip(fields, (0.1, 0.2, 3), strict=True))])

    assert label == "a.training.optimizer.lr 0.1, b.training.optimizer.lr 0.2, keep 3"


def trial(*curves):
    made = [
        Curve(
            seed=seed, run=f"r{seed}", steps=tuple(curve), values=tuple(curve.values()), begins_at=0
        )
        for seed, curve in enumerate(curves)
    ]
    return Trial(values={}, curves=tuple(made))


def test_values_are_compared_at_the_step_that_all_have_reached():
    """At step 20: (0.4 + 0.2) / 2 = 0.3, 0.5, and 0.1; what comes later does not count yet."""
    trials = [
        trial({0: 0.1, 20: 0.4, 40: 0.9}, {0: 0.1, 20: 0.2}),
        trial({0: 0.1, 20: 0.5}),
        trial({0: 0.1, 10: 0.1, 20: 0.1, 30: 0.8}),
        trial(),
    ]

    high, low = stand(trials, 1, "higher"), stand(trials, 2, "lower")

    assert (high.step, high.best, high.losers, high.not_judged) == (20, (1,), (0, 2), (3,))
    assert (low.best, low.losers) == ((2, 0), (1,))
    with pytest.raises(SweepRefused, match="keep 1 or more"):
        stand(trials, 0, "higher")


def test_without_readings_nothing_loses():
    standing = stand([trial(), trial()], 1, "higher")

    assert (standing.step, standing.losers, standing.not_judged) == (None, (), (0, 1))
