"""Triggers fire once, after enough readings in a row, and are armed again when their condition is
false."""

from coloop.runtime.reporting.readings import TriggerWatch
from coloop.spec.schedule import Trigger


def watch(**when: object) -> TriggerWatch:
    phases = when.pop("phases", None)
    body: dict[str, object] = {
        "when": {"metric": "probe.accuracy", **when},
        "do": {"stop": True},
    }
    if phases:
        body["in"] = phases
    return TriggerWatch(triggers=[Trigger.model_validate(body)])


def fired(watcher: TriggerWatch, values: list[float], phase: str = "rl") -> list[int]:
    return [i for i, v in enumerate(values) if watcher.read("probe.accuracy", v, phase)]


def test_above_fires_once_and_is_armed_again() -> None:
    assert fired(watch(above=0.5), [0.4, 0.6, 0.7, 0.3, 0.8]) == [1, 4]


def test_for_wants_readings_in_a_row() -> None:
    assert fired(watch(below=0.5, **{"for": 2}), [0.4, 0.6, 0.4, 0.4, 0.4]) == [3]


def test_falls_by_is_measured_from_the_best_reading() -> None:
    assert fired(watch(falls_by=0.1), [0.5, 0.7, 0.65, 0.6]) == [3]


def test_rises_by_is_measured_from_the_lowest_reading() -> None:
    assert fired(watch(rises_by=0.2), [0.5, 0.3, 0.4, 0.5]) == [3]


def test_in_limits_it_to_phases() -> None:
    assert fired(watch(above=0.5, phases=["warm-up"]), [0.6], phase="rl") == []
    assert fired(watch(above=0.5, phases=["warm-up"]), [0.6], phase="warm-up") == [0]
    assert fired(watch(above=0.5, phases="warm-up"), [0.6], phase="warm") == []


def test_another_metric_sets_nothing_off() -> None:
    watcher = watch(above=0.5)

    assert watcher.read("probe.score", 0.9, "rl") == []


def test_state_survives_a_resume() -> None:
    first = watch(above=0.5, **{"for": 2})
    fired(first, [0.6])
    second = watch(above=0.5, **{"for": 2})
    second.load_state(first.state())

    assert fired(second, [0.6]) == [0]


def test_the_languages_word_for_a_metric_reads_the_events() -> None:
    body = {"when": {"metric": "actor.clip_share", "above": 0.5}, "do": {"stop": True}}
    watcher = TriggerWatch(triggers=[Trigger.model_validate(body)])

    assert len(watcher.read("actor.clip_fraction", 0.6, "rl")) == 1
