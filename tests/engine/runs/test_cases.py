"""Loops that once validated and trained on something else than they say: each is run, and its row
counts are those of its first line."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch
from coloop.validate import validate

HERE = Path(__file__).parent / "loops"
BESIDE = Path(__file__).resolve().parents[4] / "shared" / "cases"
CASES = sorted(path.stem for path in HERE.glob("*.yaml"))

Ended = Any
Finished = Callable[[Ended], Ended]
Played = Callable[..., Ended]


@pytest.fixture
def played(runner: Callable[..., Ended], finished: Finished) -> Played:
    """Runs one of the loops, with values set by path so that it is short."""

    def play(name: str, values: Mapping[str, Any] | None = None) -> Ended:
        text = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
        changes = [Change(op="set", path=path, value=v) for path, v in (values or {}).items()]
        return finished(runner(patch(text, changes) if changes else text))

    return play


def samples(ended: Ended, stage: str, step: int | None = None) -> list[int]:
    """Rows of each run of a stage."""
    where = {} if step is None else {"step": step}
    return [event["samples"] for event in ended.of("stage.finished", stage=stage, **where)]


def details(ended: Ended, stage: str) -> list[dict[str, Any]]:
    """What a stage said of its rows, step by step."""
    logs = [event for event in ended.of("log") if event["message"].startswith(f"{stage} in ")]
    return [event["detail"] for event in logs]


@pytest.mark.parametrize("name", CASES)
def test_the_loop_validates(name: str) -> None:
    spec = parse((HERE / f"{name}.yaml").read_text(encoding="utf-8")).spec
    assert spec is not None

    assert [one.describe() for one in validate(spec).diagnostics if one.is_error] == []


@pytest.mark.skipif(not BESIDE.is_dir(), reason="the written cases are not beside this checkout")
@pytest.mark.parametrize("name", sorted(path.stem for path in BESIDE.glob("*.yaml")))
def test_a_written_case_is_the_one_that_is_run(name: str) -> None:
    written = (BESIDE / f"{name}.yaml").read_text(encoding="utf-8")

    assert (HERE / f"{name}.yaml").read_text(encoding="utf-8") == written


@pytest.mark.slow
def test_an_edge_that_a_phase_wakes_teaches(played: Played) -> None:
    ended = played("edge-awake-by-phase", {"schedule.phases.0.steps": 1})

    read = samples(ended, "lessons.read")
    assert read
    assert all(count > 0 for count in read)
    own = [
        port["edges"]["own"]["delivered"]
        for detail in details(ended, "actor.learn")
        for port in detail["ports"]
        if "own" in port["edges"]
    ]
    assert own == read


def test_a_learner_beside_a_fill_gets_the_prompts_of_all_rounds(played: Played) -> None:
    ended = played("fill-beside-a-learner")

    for step in (1, 2):
        rounds = len(samples(ended, "problems.load", step))
        assert samples(ended, "student.generate", step) == [32 * rounds]
    assert all(detail["learned"] > 0 for detail in details(ended, "student.credit"))
    assert all(count > 32 for count in samples(ended, "student.learn"))


def test_two_datasets_are_loaded_anew_with_each_round(played: Played) -> None:
    ended = played("fill-two-datasets")

    for step in (1, 2):
        rounds = len(samples(ended, "informative.prepare", step))
        assert samples(ended, "one.load", step) == samples(ended, "two.load", step) == [4] * rounds
        assert samples(ended, "actor.generate", step) == [32] * rounds
    assert {detail.get("group_size", 4) for detail in details(ended, "actor.credit")} <= {0, 4}


def test_every_learned_row_has_its_reference(played: Played) -> None:
    ended = played("fill-with-reference")

    for step in (1, 2, 3):
        assert samples(ended, "start.score", step) == [sum(samples(ended, "actor.generate", step))]
    credited = [one for one in details(ended, "actor.credit") if "learned" in one]
    assert credited
    assert all(one["without_reference"] == 0 for one in credited)
    assert all(one["learned"] == one["kept"] for one in credited)


@pytest.mark.slow
def test_a_second_reward_scores_what_the_slice_gave(played: Played) -> None:
    ended = played("fill-with-second-reward", {"schedule.phases.0.steps": 1})

    for step in (2, 3, 4, 5):
        scored = samples(ended, "format_ok.score", step)
        assert scored == [sum(samples(ended, "actor.generate", step))]
    for detail in details(ended, "actor.credit"):
        second = detail["edges"]["format_ok.scores->actor.rewards"]
        assert second == {"delivered": detail["rows"], "none": 0}


@pytest.mark.slow
def test_rows_at_unequal_depth_meet_by_the_place_of_their_branch(played: Played) -> None:
    ended = played("join-unequal-depth")

    assert samples(ended, "ask.prepare") == [8]
    assert samples(ended, "umpire.generate") == [16]
    assert [one["learned"] for one in details(ended, "ann.credit")] == [8]


@pytest.mark.slow
def test_a_reading_comes_from_the_probes_own_rows(played: Played) -> None:
    ended = played("probe-over-two-datasets", {"schedule.phases.0.steps": 40})

    rl = 41
    assert samples(ended, "hard.load") == samples(ended, "hard.load", rl) == [3]
    probed = [e for e in ended.of("stage.finished", stage="actor.generate") if e["step"] != rl]
    assert {event["samples"] for event in probed} == {2}
    assert ended.metrics("probe", "accuracy")[-1] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("is_turned", [False, True])
def test_three_siblings_meet_whatever_the_order_of_the_edges(
    is_turned: bool, played: Played
) -> None:
    spec = parse((HERE / "three-actors-judge.yaml").read_text(encoding="utf-8")).spec
    assert spec is not None
    edges = [edge.model_dump(mode="json", by_alias=True, exclude_none=True) for edge in spec.edges]

    ended = played(
        "three-actors-judge",
        {"schedule.steps": 2, "edges": edges[::-1] if is_turned else edges},
    )

    assert samples(ended, "ask_judge.prepare") == [8, 8]
    assert [one["learned"] for one in details(ended, "ann.credit")] == [8, 8]


@pytest.mark.slow
def test_each_of_two_fills_repeats_its_own_slice(played: Played) -> None:
    ended = played("two-fills")

    for step in (1, 2):
        assert ended.stages(step)[0] == "problems.load"
        rounds = {one: len(samples(ended, f"f{one}.prepare", step)) for one in "ab"}
        assert len(samples(ended, "problems.load", step)) == sum(rounds.values()) - 1
        for one in "ab":
            assert samples(ended, f"{one}.generate", step) == [32] * rounds[one]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "last"), [("two-fills", "fb.prepare"), ("fill-with-reference", "informative.prepare")]
)
def test_a_stop_within_a_slice_changes_nothing(
    name: str,
    last: str,
    runner: Callable[..., Ended],
    whole: Callable[[str], Ended],
    finished: Finished,
    equal: Callable[[Any, Any], bool],
) -> None:
    written = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
    text = patch(written, [Change(op="set", path="schedule.steps", value=2)])

    stopped = runner(
        text,
        stop_at=lambda event: (
            event["type"] == "stage.finished" and event["stage"] == last and event["step"] == 2
        ),
    )
    resumed = finished(runner(text, resume=stopped))

    assert equal(resumed.weights(), whole(text).weights())
    assert resumed.readings(1) == whole(text).readings(1)
