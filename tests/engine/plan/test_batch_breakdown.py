"""The batch of a learner as numbers that multiply out."""

import pytest

from coloop.plan.batch_breakdown import ladders_of
from coloop.plan.compile import compile_plan
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.groups import owner_of
from coloop.spec.io import parse

NAMES = [preset.name for preset in presets.list_loops()]


def _ladders(name):
    preset = presets.load_loop(name)
    spec = parse(presets.load_loop_text(name)).spec
    unrolled, root = Unrolled(spec), preset.path.parent
    plan = compile_plan(spec, unrolled, root=root)
    return spec, plan, unrolled.settings(root), ladders_of(plan, spec, unrolled.settings(root))


@pytest.mark.parametrize("name", NAMES)
def test_rungs_multiply_out_on_every_preset(name):
    _, plan, _, ladders = _ladders(name)

    learners = {(one.node, p.name) for p in plan.phases for u in p.updates for one in u.learners}
    assert {(one.node, one.phase) for one in ladders} == learners
    for ladder in ladders:
        first, *rungs = ladder.rungs
        assert (first.sign, first.by) == ("", 1)
        count = first.count
        for rung in rungs:
            count = count * rung.by if rung.sign == "×" else count / rung.by
            assert rung.count == pytest.approx(count)
        assert ladder.rungs[-1].name == "updates"
        for rung in ladder.rungs:
            if rung.name in ("prompts", "completions", "rows"):
                assert rung.count == round(rung.count), (ladder.node, rung)
        assert ladder.is_exact == (not ladder.note)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_rung_is_what_the_estimate_counts_with(name):
    """The estimate sizes a group's greatest update: a ladder of it has as many optimizer steps;
    where rows are not certain it takes their mean, which is none."""
    spec, _, resolved, ladders = _ladders(name)

    for group, sized in resolved.memory.updates.items():
        own = [one for one in ladders if owner_of(spec, one.node) == group]
        if any("rows come" in one.note for one in own):
            continue
        updates = [one.rungs[-1].count for one in own]
        assert pytest.approx(sized.work.mini_batches, rel=0.01) in updates, group


def test_a_grouped_batch_reads_from_prompts_to_updates():
    _, _, _, ladders = _ladders("grpo-qwen2.5-7b-8xH100")

    (ladder,) = ladders
    assert [(one.name, one.count, one.sign, one.by) for one in ladder.rungs] == [
        ("prompts", 128, "", 1),
        ("completions", 1024, "×", 8),
        ("micro-batches", 128, "÷", 8),
        ("updates", 4, "÷", 32),
    ]
