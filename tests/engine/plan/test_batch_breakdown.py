"""The batch of a learner as numbers that multiply out."""

import pytest

from coloop.plan.batch_breakdown import batch_breakdowns
from coloop.plan.compile import compile_plan
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.groups import owner_of
from coloop.spec.io import parse

NAMES = [preset.name for preset in presets.list_loops()]


def _breakdowns(name):
    preset = presets.load_loop(name)
    spec = parse(presets.load_loop_text(name)).spec
    unrolled, root = Unrolled(spec), preset.path.parent
    plan = compile_plan(spec, unrolled, root=root)
    return (
        spec,
        plan,
        unrolled.settings(root),
        batch_breakdowns(plan, spec, unrolled.settings(root)),
    )


@pytest.mark.parametrize("name", NAMES)
def test_counts_multiply_out_on_every_preset(name):
    _, plan, _, breakdowns = _breakdowns(name)

    learners = {
        (learner.node, phase.name)
        for phase in plan.phases
        for update in phase.updates
        for learner in update.learners
        if learner.kept_until or learner.rows.most
    }
    assert {(one.node, one.phase) for one in breakdowns} == learners
    for breakdown in breakdowns:
        first, *counts = breakdown.counts
        assert (first.sign, first.by) == ("", 1)
        count = first.count
        for entry in counts:
            count = count * entry.by if entry.sign == "×" else count / entry.by
            assert entry.count == pytest.approx(count)
        assert breakdown.counts[-1].name == "updates"
        for entry in breakdown.counts:
            if entry.name in ("prompts", "completions", "rows"):
                assert entry.count == round(entry.count), (breakdown.node, entry)
        assert breakdown.is_exact == (not breakdown.note)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_count_is_what_the_estimate_counts_with(name):
    """The estimate sizes a group's greatest update: a breakdown of it has as many optimizer steps;
    where rows are not certain it takes their mean, which is none."""
    spec, _, resolved, breakdowns = _breakdowns(name)

    for group, sized in resolved.memory.updates.items():
        own = [one for one in breakdowns if owner_of(spec, one.node) == group]
        if not own or any("rows come" in one.note for one in own):
            continue
        updates = [one.counts[-1].count for one in own]
        assert pytest.approx(sized.work.mini_batches, rel=0.01) in updates, group


def test_a_grouped_batch_reads_from_prompts_to_updates():
    _, _, _, breakdowns = _breakdowns("grpo-qwen2.5-7b-8xH100")

    (breakdown,) = breakdowns
    assert [(one.name, one.count, one.sign, one.by) for one in breakdown.counts] == [
        ("prompts", 128, "", 1),
        ("completions", 1024, "×", 8),
        ("micro-batches", 128, "÷", 8),
        ("updates", 4, "÷", 32),
    ]
