"""Nine rules that loops of several models break without notice, what enforces each, and loops that
break it; `test_recipe_rules` holds them against the checks, and the README of `validate` shows
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Wrong = tuple[str, tuple[tuple[Any, ...], ...]]
"""A loop of `coloop.explain.codes`, and changes that break the rule."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is checked before a run and during it."""

    wrong: Mapping[str, Wrong]
    """By the code of the finding, a loop that gets it."""
    alerts: tuple[str, ...] = ()
    """Codes of alerts and errors of a run."""
    tests: tuple[str, ...] = ()
    """Tests of what a run does, under `tests/engine`."""


KEPT = ("set", "nodes.kept", {"kind": "filter", "per_group": {"max": 1}})
SFT = {"demonstrations": {"name": "sft"}}
RULES: Final[Mapping[str, Rule]] = {
    "Rows that are learned carry id, writer, version of the weights and loss mask. A row without a "
    "trained token, or of other weights, leaves the update.": Rule(
        wrong={
            "learning.no_own_rollouts": (
                "judges",
                (
                    ("del", "nodes.verifier.rollout"),
                    ("set", "nodes.verifier.read", {"granularity": "step", "labels": ["y", "n"]}),
                ),
            ),
            "structure.type_mismatch": (
                "grpo",
                (("edge", "actor.rollouts -> exact.rollouts", {"to": "exact.scores"}),),
            ),
            "learning.teacher_tokenizer": (
                "distillation",
                (("set", "nodes.teacher.model.architecture", "tiny-bytes"),),
            ),
        },
        tests=(
            "training/test_single.py::test_rows_without_a_trained_token_are_skipped",
            "workers/test_worker.py::test_token_ids_of_another_tokenizer_are_refused",
            "runs/test_windows.py::test_texts_are_never_older_than_they_may_be",
        ),
    ),
    "Tokens of tools, of other models and of datasets have mask 0.": Rule(
        wrong={
            "learning.others_texts": (
                "distillation",
                (
                    ("add", "problems.rows -> teacher.prompts"),
                    ("add", "teacher.rollouts -> reads.rollouts"),
                ),
            ),
        },
        tests=(
            "recipes/test_credit.py::test_tokens_of_others_between_the_own_ones_bring_nothing",
            "workers/test_masks.py::test_the_content_of_tags_is_found",
            "roles/test_teaching.py::test_rows_imitate_their_target_and_rollouts_their_own_tokens",
        ),
    ),
    "Groups are formed after all filters; a group of one is an error, unless the estimator has no "
    "baseline in the group or the loop sets `allow_group_of_one`.": Rule(
        wrong={
            "learning.group_of_one": (
                "grpo",
                (
                    KEPT,
                    ("cut", "exact.scores -> actor.rewards"),
                    ("add", "exact.scores -> kept.scores"),
                    ("add", "actor.rollouts -> kept.rollouts"),
                    ("add", "kept.scores -> actor.rewards"),
                ),
            ),
        },
        alerts=("credit.group_of_one",),
        tests=("recipes/test_credit.py::test_a_group_of_one_gets_nothing_and_an_alert",),
    ),
    "A weights group has one optimizer; its roles share one update, normalized by role, or `order` "
    "names all of them.": Rule(
        wrong={
            "learning.second_optimizer": (
                "self_play",
                (("set", "nodes.solver.training", {"optimizer": {"name": "adamw", "lr": 1.0e-6}}),),
            ),
            "learning.order": ("self_play", (("set", "schedule.order", ["proposer"]),)),
            "learning.updates": (
                "self_play",
                (
                    (
                        "set",
                        "schedule.learn",
                        {"proposer": {"updates": 4}, "solver": {"updates": 1}},
                    ),
                ),
            ),
        },
        tests=(
            "roles/test_teaching.py::test_roles_that_share_weights_learn_in_one_update",
            "roles/test_teaching.py::test_an_order_is_handed_on",
        ),
    ),
    "Snapshots are never trained; a cycle passes through a teaching port, a buffer or rounds, and "
    "weights depend on each other in no cycle.": Rule(
        wrong={
            "learning.snapshot_trains": (
                "spin",
                (
                    ("set", "nodes.opponent.algorithm", SFT),
                    ("add", "gold.rows -> opponent.demonstrations"),
                ),
            ),
            "structure.cycle": (
                "two_halves",
                (("edge", "both.rows -> ask_tens.rows", {"rounds": None, "branch": None}),),
            ),
            "learning.weights_circle": (
                "spin",
                (
                    (
                        "set",
                        "nodes.previous.model",
                        {"type": "snapshot", "of": "opponent", "refresh": "never"},
                    ),
                    ("set", "nodes.opponent.model.of", "previous"),
                ),
            ),
        },
        tests=("runs/test_ten_schedules.py::test_a_schedule_runs",),
    ),
    "A score may be None: the row leaves the update if all its scores are.": Rule(
        wrong={
            "learning.every_weight_zero": (
                "grpo",
                (("edge", "exact.scores -> actor.rewards", {"weight": 0.0}),),
            ),
        },
        alerts=("learn.no_rows", "learning.no_scores", "run.nothing_learned"),
        tests=(
            "recipes/test_credit.py::test_what_is_missing_counts_nothing_or_the_mean_or_leaves_the_update",
            "roles/test_credit.py::test_nothing_but_none_is_told_and_nothing_is_learned",
        ),
    ),
    "Preference losses say whether they sum or average log-probs over tokens (`reduce`).": Rule(
        wrong={
            "structure.unknown_value": (
                "spin",
                (("set", "nodes.policy.algorithm.pairs.reduce", "median"),),
            ),
            "structure.unknown_field": (
                "ppo",
                (("set", "nodes.rm.algorithm", {"name": "bradley_terry", "reduce": "sum"}),),
            ),
        },
        tests=("validate/test_recipe_rules.py::test_every_preference_loss_sums_or_averages",),
    ),
    "Rows are at most `max_staleness` versions behind the weights that learn from them.": Rule(
        wrong={
            "learning.staleness_one_pool": ("grpo", (("set", "schedule.max_staleness", 1),)),
            "numbers.out_of_range": ("asynchronous", (("set", "schedule.max_staleness", -1),)),
        },
        alerts=("learn.too_stale",),
        tests=(
            "runs/test_windows.py::test_texts_are_never_older_than_they_may_be",
            "roles/test_credit.py::test_rows_that_are_older_than_the_schedule_allows_are_told",
        ),
    ),
    "Whatever repeats until it has enough (refills, rounds, searches, phases that wait, requests) "
    "has a maximum, and a metric or alert.": Rule(
        wrong={
            "structure.wrong_type": (
                "asynchronous",
                (("set", "nodes.informative.fill.max_rounds", None),),
            ),
            "structure.missing_field": ("tools", (("del", "nodes.mc.budget"),)),
            "structure.rounds_explode": (
                "two_halves",
                (
                    ("edge", "both.rows -> ask_tens.rows", {"rounds": 12}),
                    ("edge", "both.rows -> ask_units.rows", {"rounds": 12}),
                ),
            ),
            "learning.until_without_cap": (
                "tools",
                (("del", "schedule.phases.0.max_steps"),),
            ),
            "learning.buffer_never_fills": (
                "tools",
                (("set", "schedule.phases.0.max_steps", 1),),
            ),
        },
        alerts=(
            "filter.not_filled",
            "buffer.not_full",
            "search.out_of_time",
            "service.requests_failed",
            "run.nothing_learned",
        ),
        tests=(
            "roles/test_refill.py::test_after_the_last_round_it_goes_on_with_what_it_has",
            "runs/test_bad_input.py::test_a_buffer_that_cannot_fill_ends_the_run",
            "services/test_service.py::test_a_service_that_stays_busy_is_given_up",
        ),
    ),
}
HEAD = "| rule | before a run | in a run |"


def written() -> str:
    """As the README has it."""
    rows = [
        f"| {says} | {_codes(rule.wrong)} | {_codes(rule.alerts)} |" for says, rule in RULES.items()
    ]
    return "\n".join([HEAD, "|---|---|---|", *rows])


def _codes(codes: Any) -> str:
    return ", ".join(f"`{code}`" for code in codes) or "–"
