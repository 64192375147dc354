"""Phases in time: repeats, ends by steps, epochs and full buffers, and where a resume goes on."""

from collections.abc import Iterator

from coloop.plan.compile import compile_plan
from coloop.runtime.phases.timeline import StepPosition, Timeline, entries_of
from coloop.spec.io import parse

LOOP = """
coloop: 1
name: small
nodes:
  gold: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  policy:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
  pool: {kind: buffer, capacity: 8}
edges:
  - gold.rows -> pool.rows
  - pool.rows -> policy.demonstrations
schedule:
  phases:
    - {name: start, until: pool.full, max_steps: 5, fill: [pool]}
    - repeat: 2
      do: {clear: pool}
      phases:
        - {name: learn, steps: 2, learn: [policy.demonstrations]}
        - {name: pass, epochs: 3, learn: [policy.demonstrations], do: {reset_optimizer: policy}}
"""


class Sources:
    def __init__(self) -> None:
        self.full = False

    def steps_for_epochs(self, node: str, epochs: float) -> int:
        assert node == "pool"
        return int(epochs)

    def is_full(self, buffer: str) -> bool:
        return self.full


def timeline(sources: Sources) -> Timeline:
    return timeline_of(LOOP, sources)


def timeline_of(text: str, sources: Sources | None = None) -> Timeline:
    spec = parse(text).spec
    assert spec is not None
    sources = sources or Sources()
    entries = entries_of(spec, compile_plan(spec))
    return Timeline(entries, sources.steps_for_epochs, sources.is_full)


def walk(line: Timeline) -> Iterator[StepPosition]:
    while not line.is_over:
        if line.must_enter:
            line.enter()
        position = line.next_position()
        if position is None:
            line.leave()
        else:
            yield position


def test_phases_come_in_order_and_groups_come_round() -> None:
    sources = Sources()
    sources.full = True

    moments = list(walk(timeline(sources)))

    assert [m.phase.name for m in moments] == ["learn"] * 2 + ["pass"] * 3 + ["learn"] * 2 + [
        "pass"
    ] * 3
    assert [m.step for m in moments] == list(range(1, 11))
    assert [m.step_in_phase for m in moments] == [1, 2, 1, 2, 3, 1, 2, 1, 2, 3]


def test_until_ends_when_the_buffer_is_full_or_at_its_cap() -> None:
    sources = Sources()
    steps = 0
    for position in walk(timeline(sources)):
        steps += position.phase.name == "start"
    assert steps == 5

    sources = Sources()
    line = timeline(sources)
    seen = []
    for position in walk(line):
        seen.append(position.phase.name)
        sources.full = len(seen) >= 2
    assert seen.count("start") == 2


def test_epochs_end_at_their_cap() -> None:
    sources = Sources()
    sources.full = True
    capped = LOOP.replace("epochs: 3,", "epochs: 3, max_steps: 2,")

    moments = [m for m in walk(timeline_of(capped, sources)) if m.phase.name == "pass"]

    assert [(m.step_in_phase, m.steps_of_phase) for m in moments] == [(1, 2), (2, 2)] * 2


def test_a_groups_do_acts_at_the_start_of_each_round_before_the_phases_own() -> None:
    entries = timeline(Sources()).entries

    does = [
        (entry.plan.name, [bool(a.clear) for a in entry.actions], entry.round) for entry in entries
    ]

    assert does == [
        ("start", [], 1),
        ("learn", [True], 1),
        ("pass", [False], 1),
        ("learn", [True], 2),
        ("pass", [False], 2),
    ]


def test_a_trigger_ends_the_phase_after_this_step() -> None:
    sources = Sources()
    line = timeline(sources)
    names = []
    for position in walk(line):
        names.append(position.phase.name)
        if position.step == 1:
            line.leave_after_this_step()

    assert names[:2] == ["start", "learn"]


def test_a_resumed_timeline_goes_on_at_the_same_moment() -> None:
    sources = Sources()
    whole = [(m.phase.name, m.step, m.step_in_phase) for m in walk(timeline(sources))]

    first = timeline(sources)
    seen = []
    for position in walk(first):
        seen.append((position.phase.name, position.step, position.step_in_phase))
        if position.step == 7:
            break
    second = timeline(sources)
    second.load_state(first.state())
    seen += [(m.phase.name, m.step, m.step_in_phase) for m in walk(second)]

    assert seen == whole


def test_a_step_that_was_taken_back_comes_again() -> None:
    line = timeline(Sources())
    line.enter()
    line.next_position()
    line.take_back_step()

    position = line.next_position()

    assert position is not None
    assert (position.step, position.step_in_phase) == (1, 1)


def test_a_finished_run_goes_on_where_a_fork_gives_its_last_phase_more_steps() -> None:
    text = LOOP[: LOOP.index("schedule:")] + "schedule: {steps: %d}\n"
    finished = timeline_of(text % 3)
    assert [m.step for m in walk(finished)] == [1, 2, 3]

    longer = timeline_of(text % 5)
    longer.load_state(finished.state())

    assert [m.step for m in walk(longer)] == [4, 5]


def test_a_last_phase_that_a_trigger_ended_stays_over_on_resume() -> None:
    text = LOOP[: LOOP.index("schedule:")] + "schedule: {steps: %d}\n"
    ended = timeline_of(text % 5)
    for position in walk(ended):
        if position.step == 2:
            ended.leave_after_this_step()
    resumed, longer = timeline_of(text % 5), timeline_of(text % 7)

    resumed.load_state(ended.state())
    longer.load_state(ended.state())

    assert list(walk(resumed)) == []
    assert [m.step for m in walk(longer)] == [3, 4, 5, 6, 7]


def test_a_total_that_a_full_buffer_may_shorten_is_said_to_be_the_most() -> None:
    line = timeline(Sources())

    line.enter()
    assert line.may_end_early  # `until` may end the first phase
    line.leave()
    line.enter()

    assert not line.may_end_early


def test_a_trigger_that_leaves_a_phase_makes_its_steps_the_most() -> None:
    phases = LOOP[LOOP.index("  phases:") :]
    two = """  phases:
    - {name: first, steps: 5, learn: [policy.demonstrations]}
    - {name: second, steps: 3, learn: [policy.demonstrations]}
  triggers:
    - {in: first, when: {metric: policy.loss, below: 1}, do: {next_phase: true}}
"""
    line = timeline_of(LOOP.replace(phases, two))

    line.enter()
    assert (line.steps_total(), line.may_end_early) == (8, True)
    line.leave()
    line.enter()
    assert (line.steps_total(), line.may_end_early) == (3, False)
