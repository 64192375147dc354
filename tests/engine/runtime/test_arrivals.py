"""Rows that are bound to come and do not are told at once; what may legally be empty is not."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coloop.data.tables import Table
from coloop.data.tables.row import root_row
from coloop.errors import RowsMissing
from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan, Stage
from coloop.runtime.roles.protocol import Context, Outcome
from coloop.runtime.schedule.arrivals import AT_END, AT_START, Arrivals, Missing
from coloop.runtime.schedule.calls import StepContext
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict
from coloop.spec.lineage import Lineages

SCORES = "exact.scores->actor.rewards"
ROLLOUTS = "actor.rollouts->exact.rollouts"


def loop(**filters: Any) -> LoopSpec:
    """GRPO with a KL reference; scores go through a filter where one is given."""
    kept = {"kept": {"kind": "filter", **filters}} if filters else {}
    way = ["exact.scores -> kept.scores", "kept.scores -> actor.rewards"]
    parsed = from_dict(
        {
            "coloop": 1,
            "name": "small",
            "nodes": {
                "problems": {
                    "kind": "dataset",
                    "source": {"type": "task", "task": "arithmetic"},
                    "rows_per_step": 4,
                },
                "actor": {
                    "kind": "actor",
                    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
                    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
                    "algorithm": {"rewards": {"name": "grpo", "kl": {"coefficient": 0.1}}},
                },
                "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
                "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
                **kept,
            },
            "edges": [
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> start.rollouts",
                "start.log_probs -> actor.reference",
                *(way if kept else ["exact.scores -> actor.rewards"]),
            ],
            "schedule": {"steps": 3},
            "hardware": {"preset": "cpu"},
        }
    )
    assert parsed.spec is not None
    return parsed.spec


def table(count: int) -> Table:
    return Table(rows=tuple(root_row("problems", f"0.{place}", {}) for place in range(count)))


class Steps:
    """Plays stages to the arrivals, without roles."""

    def __init__(self, spec: LoopSpec) -> None:
        self.plan: Plan = compile_plan(spec)
        self.arrivals = Arrivals(spec.edges)
        context = Context(
            spec=spec,
            lineage=Lineages(spec).at({}),
            groups={},
            hosts=None,  # type: ignore[arg-type]
            root=Path(),
            seed=0,
        )
        self.step_context = StepContext(step=1, phase=self.plan.phases[0].name, context=context)
        self.begin()

    def begin(self) -> None:
        self.step = self.arrivals.of_step(self.plan.phases[0].rows)

    def stage(self, name: str) -> Stage:
        return next(one for one in self.plan.phases[0].stages if one.name == name)

    def start(self, name: str, **step_context: Any) -> list[Missing]:
        known = replace(self.step_context, **step_context)
        return self.step.stage_starts(self.stage(name), known)

    def finish(
        self,
        name: str,
        rows: Mapping[str, int],
        detail: Mapping[str, Any] | None = None,
    ) -> list[Missing]:
        outcome = Outcome(
            outputs={port: table(count) for port, count in rows.items()}, detail=detail or {}
        )
        return self.step.stage_finished(self.stage(name), self.step_context, outcome)

    def told(self, name: str, missing: list[Missing], whats: tuple[str, ...]) -> int:
        """How many of these are told."""
        return len(self.arrivals.note(self.stage(name), whats, missing))

    def until_credit(self, scored: int = 8) -> None:
        self.finish("problems.load", {"rows": 4})
        self.finish("actor.generate", {"rollouts": 8})
        self.finish("start.score", {"log_probs": 8})
        self.finish("exact.score", {"scores": scored})


def test_a_scorer_that_runs_before_its_rows_are_written_is_named() -> None:
    steps = Steps(loop())
    steps.finish("problems.load", {"rows": 4})

    [missing] = steps.start("exact.score")

    assert (missing.stage, missing.node, missing.edge) == ("exact.score", "exact", ROLLOUTS)
    assert missing.message == (
        f"exact.score gets no rows over {ROLLOUTS}, 8 are expected: actor has not run before it"
    )
    assert "coloop plan" in missing.hint


def test_a_giver_that_gave_nothing_is_named() -> None:
    steps = Steps(loop())
    steps.until_credit(scored=0)

    [missing] = steps.start("actor.credit")

    assert missing.edge == SCORES
    assert missing.message.endswith("8 are expected: exact produced none in this step")


def test_rows_that_come_are_not_missed() -> None:
    steps = Steps(loop())

    assert steps.start("problems.load") == []
    steps.until_credit()
    assert steps.start("actor.credit") == []


def test_inputs_whose_rows_do_not_meet_are_named() -> None:
    steps = Steps(loop())
    steps.finish("problems.load", {"rows": 4})
    steps.finish("actor.generate", {"rollouts": 8})

    [missing] = steps.finish("exact.score", {"scores": 0})

    assert (missing.node, missing.edge) == ("exact", None)
    assert f"8 over {ROLLOUTS}" in missing.message
    assert "alerts" in missing.hint


def credit_detail(**values: Any) -> dict[str, Any]:
    given = {"delivered": values.pop("delivered", 8), "none": 0}
    return {"edges": {SCORES: given}, "learned": 8, "without_reference": 0, **values}


def test_scores_that_reach_no_row_of_the_learner_are_named() -> None:
    steps = Steps(loop())
    steps.until_credit()

    [missing] = steps.finish("actor.credit", {}, credit_detail(delivered=0))

    assert (missing.stage, missing.node, missing.edge) == ("actor.credit", "actor", SCORES)
    assert "8 rows" in missing.message
    assert steps.finish("actor.credit", {}, credit_detail()) == []


def test_a_learner_that_wrote_nothing_is_idle_and_told() -> None:
    steps = Steps(loop())
    steps.until_credit()

    [missing] = steps.finish("actor.credit", {}, credit_detail(delivered=0, rows=0))

    assert "actor wrote none in this step that they could reach" in missing.message
    steps.arrivals.check_first([missing], "main")
    [other] = steps.finish("actor.credit", {}, credit_detail(delivered=0, rows=8))
    with pytest.raises(RowsMissing, match="none of them reaches a row that actor wrote"):
        steps.arrivals.check_first([other], "main")


def test_rows_that_all_lack_their_reference_are_named() -> None:
    steps = Steps(loop())
    steps.until_credit()

    [missing] = steps.finish("actor.credit", {}, credit_detail(learned=0, without_reference=8))

    assert missing.edge == "start.log_probs->actor.reference"
    assert "any of the 8 rows" in missing.message
    some = credit_detail(learned=3, without_reference=5)
    assert steps.finish("actor.credit", {}, some) == []


@pytest.mark.parametrize("none", [0, 8])
def test_scores_of_none_are_the_scorers_word_and_no_missing_rows(none: int) -> None:
    steps = Steps(loop())
    steps.until_credit()
    detail = credit_detail(learned=8 - none)
    detail["edges"][SCORES]["none"] = none

    assert steps.finish("actor.credit", {}, detail) == []


@pytest.mark.parametrize(
    "cuts",
    [
        {"keep": [{"rule": "nonzero_variance"}]},
        {"keep": [{"rule": "nonzero_variance"}], "fill": {"groups": 4, "max_rounds": 2}},
        {"resample": {"weight": "power"}},
    ],
    ids=["keep", "fill", "resample"],
)
def test_what_a_filter_cut_is_not_missed(cuts: dict[str, Any]) -> None:
    steps = Steps(loop(**cuts))
    steps.until_credit()
    steps.finish("kept.prepare", {"scores": 0})

    assert steps.start("actor.credit") == []
    steps.finish("kept.prepare", {"scores": 2})
    away = {"edges": {"kept.scores->actor.rewards": {"delivered": 0, "none": 0}}, "learned": 0}
    assert steps.finish("actor.credit", {}, {**away, "without_reference": 0}) == []


def test_later_passes_of_a_refill_are_not_looked_at() -> None:
    steps = Steps(loop())

    assert len(steps.start("exact.score")) == 1
    assert steps.start("exact.score", turn=2) == []


def test_rows_of_an_earlier_pass_have_come() -> None:
    steps = Steps(loop())
    steps.finish("problems.load", {"rows": 4})
    steps.finish("actor.generate", {"rollouts": 8})
    steps.finish("actor.generate", {"rollouts": 0})

    assert steps.start("exact.score") == []


def test_only_the_first_time_in_a_phase_is_an_error_and_a_resume_is_not_the_first() -> None:
    steps = Steps(loop())
    missing = steps.start("exact.score")

    with pytest.raises(RowsMissing, match=r"exact\.score gets no rows") as raised:
        steps.arrivals.check_first(missing, "main")

    assert (raised.value.node, raised.value.stage) == ("exact", "exact.score")
    steps.arrivals.step_finished("main", steps.step)
    steps.arrivals.check_first(missing, "main")
    resumed = Arrivals(())
    resumed.load_state(steps.arrivals.state())
    resumed.check_first(missing, "main")
    with pytest.raises(RowsMissing):
        resumed.check_first(missing, "another")


def test_an_alert_comes_once_and_again_after_rows_came() -> None:
    steps = Steps(loop())
    told = []
    for rows in (0, 0, 8, 0):
        steps.begin()
        steps.finish("problems.load", {"rows": 4})
        steps.finish("actor.generate", {"rollouts": rows})
        told.append(steps.told("exact.score", steps.start("exact.score"), AT_START))

    assert told == [1, 0, 0, 1]
    resumed = Steps(loop())
    resumed.arrivals.load_state(json.loads(json.dumps(steps.arrivals.state())))
    missing = steps.start("exact.score")
    assert resumed.told("exact.score", missing, AT_START) == 0


def test_what_ends_a_stage_badly_is_told_once_though_it_begins_well() -> None:
    steps = Steps(loop())
    told = []
    for delivered in (0, 0, 8, 0):
        steps.begin()
        steps.until_credit()
        told.append(steps.told("actor.credit", steps.start("actor.credit"), AT_START))
        unreached = steps.finish("actor.credit", {}, credit_detail(delivered=delivered))
        told.append(steps.told("actor.credit", unreached, AT_END))

    assert told == [0, 1, 0, 0, 0, 0, 0, 1]
