"""A budget solved again: what changes, what it costs, what stays, and what else would help."""

from itertools import pairwise

import pytest
from tests.engine.estimate.conftest import build

from coloop.plan.cost import estimate
from coloop.plan.cost.placing import advise_backends, place
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import ways_of
from coloop.plan.run_check import check_run
from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.paths import apply_overrides, get_value
from coloop.spec.solvable import SOLVABLE, is_solvable, locks_of
from coloop.validate import validate

ON_GPUS = (
    "grpo-qwen2.5-7b-8xH100",
    "cooper-qwen2.5-1.5b-8xH100",
    "genrm-gemma-2-9b-8xH100",
    "ppo-learned-reward-llama-3.1-8b-8xH100",
    "tango-qwen2.5-7b-8xH200",
)
"""One learner, a judge, two pools, four models, two policies."""
TENSOR = "nodes.actor.training.tensor_parallel"
UTILIZATION = "nodes.actor.rollout.gpu_memory_utilization"
TIGHT = {
    "training": {"micro_batch": 1, "gradient_checkpointing": False, "loss_chunk": 1024},
    "rollout": {"max_new_tokens": 8192},
}
"""An actor that is over, and that recomputing or sharing layers would help."""
CHECKPOINTING = "nodes.actor.training.gradient_checkpointing"


def _loop(name):
    return parse(presets.load_loop_text(name)).spec


def _values(spec):
    """What a loop says, but for what solving may set."""
    document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["hardware"].pop("memory_budget", None)
    for node in document["nodes"].values():
        for section, names in SOLVABLE.items():
            for name in names:
                (node.get(section) or {}).pop(name, None)
    return document


def _written(found):
    return {one.path: one.new for one in found.changes if one.is_written}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ON_GPUS)
def test_every_change_of_a_budget_is_told_with_what_it_costs(name):
    spec = _loop(name)

    for budget in (1.0, 0.4):
        found = solve(spec, budget_fraction=budget)

        told = sum(one.seconds or 0 for one in found.changes)
        moved = found.after.step_of_parts - found.before.step_of_parts
        assert told == pytest.approx(moved, abs=1e-6)
        assert all(one.reason for one in found.changes)
        assert _values(found.spec) == _values(spec)
        assert {one.path for one in found.changes} <= {
            "hardware.memory_budget",
            *(one.path for one in found.changes if is_solvable(one.path)),
        }


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ON_GPUS)
def test_what_was_solved_once_stays(name):
    found = solve(_loop(name), budget_fraction=0.5)

    again = solve(found.spec)

    if found.fits:
        assert again.spec == found.spec
        assert not _written(again)


def test_a_lock_is_kept_and_without_it_the_solution_differs():
    spec = build(nodes={"actor": TIGHT})
    free = solve(spec)

    held = solve(spec, locks=[CHECKPOINTING])

    assert not free.before.estimate.fits
    assert free.fits
    assert get_value(free.spec, CHECKPOINTING) is True
    assert get_value(held.spec, CHECKPOINTING) is False
    assert held.fits
    assert get_value(held.spec, TENSOR) == 2


def test_an_open_setting_that_is_locked_is_written_as_it_was_chosen():
    held = solve(build(), budget_fraction=0.42, locks=[UTILIZATION])

    locked = next(one for one in held.changes if one.path == UTILIZATION)
    assert locked.old_value == locked.new_value == get_value(held.spec, UTILIZATION)
    free = solve(build(), budget_fraction=0.42)
    other = next(one for one in free.changes if one.path == UTILIZATION)
    assert other.new_value != locked.new_value


def test_where_there_is_room_what_only_saved_memory_is_taken_back():
    spec = build(nodes={"actor": {"training": {"gradient_checkpointing": True}}})

    more = solve(spec, budget_fraction=1.0)
    held = solve(spec, budget_fraction=1.0, locks=[CHECKPOINTING])

    assert get_value(more.spec, CHECKPOINTING) is None
    assert more.after.estimate.step_seconds < more.before.estimate.step_seconds
    assert get_value(held.spec, CHECKPOINTING) is True
    assert held.after.estimate.step_seconds == held.before.estimate.step_seconds


def test_open_settings_stay_open_and_what_is_chosen_otherwise_is_told():
    spec = build()

    found = solve(spec, budget_fraction=0.6)

    micro = next(one for one in found.changes if one.path.endswith("micro_batch"))
    assert not micro.is_written
    assert micro.old_value != micro.new_value
    assert get_value(found.spec, micro.path) is None


def test_what_cannot_fit_has_ways_out_each_of_which_fits():
    spec, locks = build(nodes={"actor": TIGHT}), [CHECKPOINTING, TENSOR]
    failed = solve(spec, locks=locks)

    ways = ways_of(spec, failed, locks)

    assert not failed.fits
    assert failed.over_bytes > 0
    assert [way.unlocks for way in ways[:2]] == [(CHECKPOINTING,), (TENSOR,)]
    ranks = ["lock", "budget", "hardware", "learning"]
    found = [ranks.index(way.touches) for way in ways]
    assert found == sorted(found)
    assert found[-1] == ranks.index("learning")
    for way in ways:
        made = apply_overrides(spec, {one.path: one.new for one in way.changes if one.is_written})
        assert estimate(made).fits, way.title
        assert estimate(made).step_seconds == pytest.approx(way.step_seconds)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ON_GPUS)
def test_a_run_would_take_what_is_offered(name):
    for budget in (1.0, 0.5):
        found = solve(_loop(name), budget_fraction=budget)

        if found.fits:
            assert validate(found.spec).ok
            assert check_run(found.spec).refusals == ()


@pytest.mark.slow
@pytest.mark.parametrize("solver", [fit, solve])
@pytest.mark.parametrize(
    ("model", "preset"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "8xH100"),
        ("Qwen/Qwen2.5-14B", "32xH100"),
        ("Qwen/Qwen2.5-32B", "8xH100"),
        ("Qwen/Qwen2.5-32B", "32xH100"),
        ("meta-llama/Llama-3.1-70B", "32xH100"),
    ],
)
def test_less_memory_neither_fits_what_did_not_nor_is_faster(solver, model, preset):
    changes = {"nodes.actor.model.path": model, "hardware.preset": preset}
    spec = apply_overrides(_loop("grpo-qwen2.5-7b-8xH100"), changes)

    found = [solver(spec, budget_fraction=percent / 100) for percent in range(100, 20, -4)]

    for more, less in pairwise(found):
        assert more.fits or not less.fits
        assert bool(less.refusals) >= bool(more.refusals)
        if less.after.estimate.step_seconds is not None:
            assert less.after.estimate.step_seconds >= more.after.estimate.step_seconds - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("solver", [fit, solve])
def test_a_budget_makes_no_loop_one_that_a_run_refuses(solver):
    spec = _loop("grpo-qwen2.5-7b-8xH100")

    for percent in range(100, 20, -2):
        found = solver(spec, budget_fraction=percent / 100)
        assert found.refusals == check_run(found.spec).refusals == ()


def test_settings_that_a_run_refuses_are_not_found():
    """Layers of this type of model are not shared, and those of no adapter."""
    adapter = {"path": "Qwen/Qwen2.5-7B-Instruct", "lora": {"rank": 16}}
    for solver in (fit, solve):
        for model in ({"path": "google/gemma-2-9b"}, adapter):
            spec = build(nodes={"actor": TIGHT | {"model": model}})
            found = solver(spec, budget_fraction=0.8, locks=[CHECKPOINTING])

            assert found.refusals == check_run(found.spec).refusals == ()
            assert not [one for one in found.changes if one.path == TENSOR and one.new]


@pytest.mark.slow
def test_a_message_never_speaks_of_a_command_line():
    texts = []
    for name in ON_GPUS:
        spec = _loop(name)
        for budget in (0.4, 0.1):
            found = solve(spec, budget_fraction=budget)
            texts += [one.reason for one in found.changes]
            texts += [*found.after.advice, *(one.reason for one in found.after.decisions)]
            if not found.fits and name == ON_GPUS[0]:
                ways = ways_of(spec, found, ())
                texts += [text for way in ways for text in (way.title, way.reason)]

    assert texts
    assert not [text for text in texts if "--" in text or "coloop " in text or "`fit`" in text]


def test_a_way_says_which_of_two_settings_of_one_name_it_is_about():
    spec, locks = build(nodes={"actor": TIGHT}), [CHECKPOINTING, TENSOR]
    failed = solve(spec, locks=locks)

    titles = {way.title for way in ways_of(spec, failed, locks) if way.touches == "lock"}

    assert titles == {"Unlock gradient checkpointing of actor"} | {
        "Unlock tensor parallel, training, of actor"
    }


def test_locks_are_read_from_the_layout():
    spec = build(layout={"$locks": [TENSOR], "actor": [1, 2]})

    assert locks_of(spec) == (TENSOR,)
    assert locks_of(build()) == ()


def test_what_fields_say_is_what_may_be_solved():
    assert is_solvable("nodes.actor.training.micro_batch")
    assert is_solvable("nodes.actor.rollout.gpu_memory_utilization")
    for path in (
        "nodes.actor.training.mini_batch",
        "nodes.actor.training.optimizer.lr",
        "nodes.actor.rollout.max_new_tokens",
        "nodes.actor.rollout.completions_per_prompt",
        "hardware.memory_budget",
    ):
        assert not is_solvable(path)


# Placements


def test_a_faster_placement_is_found_and_a_run_would_take_it():
    spec = _loop("genrm-gemma-2-9b-8xH100")

    found = place(spec)

    assert found.suggested is not None
    assert found.suggested.fits
    assert found.suggested.step_seconds < found.yours.step_seconds
    made = apply_overrides(spec, {one.path: one.new or None for one in found.changes if one.new})
    assert estimate(made).step_seconds == pytest.approx(found.suggested.step_seconds)
    assert check_run(made).refusals == ()
    assert sum(home.gpus for home in found.suggested.homes) == 8
    assert found.tried > 1


def test_what_a_run_refuses_is_not_suggested():
    spec = _loop("genrm-gemma-2-9b-8xH100")

    found = place(spec, refusal=lambda other: "no" if other.hardware.pools else None)

    assert found.suggested is None
    assert found.changes == ()


def test_without_gpus_nothing_is_placed(tiny):
    found = place(tiny())

    assert (found.suggested, found.tried) == (None, 0)
    assert "processes" in found.reason


def test_a_backend_is_advised_by_the_compilers_own_choice():
    left_open = build(nodes={"actor": {"training": {"backend": None}}})

    (advice,) = advise_backends(left_open)

    assert (advice.backend, advice.advised, advice.is_said) == ("fsdp2", "fsdp2", False)
    assert "8 GPUs" in advice.reason
    assert {one.backend for one in advice.options} == {"single", "fsdp2", "deepspeed", "megatron"}
