"""What a finding says: where, what was found, what is expected, and how one click mends it."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.cost import estimate
from coloop.spec.diagnostics import Diagnostic, Report, Severity
from coloop.spec.groups import updates_of
from coloop.spec.io import parse, patch
from coloop.validate import validate

Finding = Callable[..., Diagnostic]

REPLAY: list[tuple[Any, ...]] = [
    ("set", "nodes.pool", {"kind": "buffer", "capacity": 64}),
    ("add", "actor.rollouts -> pool.rollouts"),
    ("add", "pool.scores -> actor.rewards"),
    ("add", "pool.rollouts -> start.rollouts"),
    ("set", "schedule.phases.1.fill", ["pool"]),
]
"""What a policy wrote is learned when it comes out of a buffer again."""
SCORED_REPLAY: list[tuple[Any, ...]] = [
    *REPLAY,
    ("cut", "exact.scores -> actor.rewards"),
    ("cut", "actor.rollouts -> start.rollouts"),
    ("add", "exact.scores -> pool.scores"),
]
BALANCED = ("set", "nodes.pool.balance", {"by": "exact"})
TOWARDS = {"name": "grpo", "kl": {"coefficient": 0.1, "target": 0.01}}
LEAD = {"type": "builtin", "name": "margin"}
MIX = {"type": "builtin", "name": "weighted", "weights": {"exact": 1.0}}
BRIEF = {"type": "builtin", "name": "length", "max": 9}
MENDED: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("judges", [("edge", "verifier.step_scores -> generator.rewards", {"aggregate": None})]),
    ("grpo", [("edge", "exact.scores -> actor.rewards", {"from": "exakt.scores"})]),
    ("grpo", [("edge", "exact.scores -> actor.rewards", {"from": "exact.score"})]),
    ("grpo", [("add", "problems.rows -> probe.rows")]),
    ("grpo", [("del", "nodes.actor.algorithm.demonstrations")]),
    ("grpo", [("set", "nodes.actor.rollout.completions_per_prompt", 1)]),
    ("grpo", [("set", "nodes.actor.training.mini_batch", 60)]),
    ("grpo", [("set", "nodes.actor.training.mini_batch", 1024)]),
    (
        "self_play",
        [("set", "schedule.learn", {"proposer": {"updates": 4}, "solver": {"updates": 1}})],
    ),
    ("grpo", [("set", "nodes.actor.rollout.max_new_tokens", 512)]),
    ("grpo", [("edge", "exact.scores -> actor.rewards", {"weight": 0.0})]),
    ("grpo", [("set", "nodes.actor.model.architecture", "tiny-qwen")]),
    ("grpo", [("set", "hardware.pools", {"main": {"gpus": 1}})]),
    ("self_play", [("set", "nodes.solver.training", {"optimizer": {"lr": 1.0e-6}})]),
    ("tools", [("del", "schedule.phases.0.max_steps")]),
    ("spin", [("set", "nodes.iterations.rows_per_step", 2048)]),
    ("grpo", [*SCORED_REPLAY, BALANCED]),
    ("grpo", [("set", "nodes.actor.algorithm.rewards", [TOWARDS, {**TOWARDS, "name": "rloo"}])]),
    (
        "grpo",
        [
            ("set", "nodes.mix", {"kind": "reward", "source": MIX}),
            ("add", "exact.scores -> mix.scores"),
            ("set", "nodes.brief", {"kind": "reward", "source": BRIEF}),
            ("add", "actor.rollouts -> brief.rollouts"),
            ("add", "brief.scores -> mix.scores"),
            ("add", "mix.scores -> actor.rewards"),
        ],
    ),
    (
        "judges",
        [
            ("set", "nodes.lead", {"kind": "reward", "source": LEAD}),
            ("add", {"from": "gold.step_scores", "to": "lead.scores", "id": "grades"}),
            ("add", "lead.scores -> generator.rewards"),
        ],
    ),
]


@pytest.mark.parametrize(("base", "changes"), MENDED)
def test_the_first_fix_mends_the_loop(
    base: str, changes: list[tuple[Any, ...]], changed: Callable[..., Any], text: Any
) -> None:
    spoiled = text(changed(base, *changes))
    before = parse(spoiled)
    assert before.spec is not None
    found = validate(before.spec).diagnostics[0]

    mended = parse(patch(spoiled, found.fixes[0].changes))

    assert mended.spec is not None
    assert found.code not in [one.code for one in validate(mended.spec).diagnostics]


def test_a_missing_aggregate_names_the_rows_on_both_sides(finding: Finding) -> None:
    found = finding(
        "judges", ("edge", "verifier.step_scores -> generator.rewards", {"aggregate": None})
    )

    assert found.field == "edges.3"
    assert "rows of `verifier`, which descend from the rows of `generator`" in found.message
    assert found.fixes[0].title == "Add `aggregate: mean`"


def test_clashing_numbers_are_named_with_their_neighbours(finding: Finding) -> None:
    found = finding(
        "grpo",
        ("set", "nodes.actor.training.mini_batch", 60),
        ("del", "schedule.phases.0.set.nodes.problems.rows_per_step"),
    )

    assert "256 rows (32 rows of `problems` x 8 completions)" in found.message
    assert "`mini_batch: 60`" in found.message
    assert found.hint == "nearest valid values: 32 and 64"
    assert (found.node, found.field) == ("actor", "training.mini_batch")


def test_an_ambiguous_name_is_told_with_its_exact_names(finding: Finding) -> None:
    found = finding("two_halves", ("set", "nodes.both.text", "{{ prompt }}"))

    assert "`tens` or `units`" in found.message
    assert found.hint is not None
    assert "`tens.prompt`" in found.hint


SAME_ROWS = [
    ("set", "nodes.first", {"kind": "filter", "keep": [{"rule": "length", "max": 4}]}),
    ("set", "nodes.second", {"kind": "filter", "keep": [{"rule": "length", "min": 4}]}),
    ("add", "actor.rollouts -> first.rollouts"),
    ("add", "actor.rollouts -> second.rollouts"),
    ("cut", "actor.rollouts -> start.rollouts"),
    ("add", "first.rollouts -> start.rollouts"),
    ("add", "second.rollouts -> start.rollouts"),
]


def test_an_ambiguous_name_of_a_pair_is_told_with_its_two_sides(finding: Finding) -> None:
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "pretrained", "path": "judge"},
        "template": {"text": "{{ prompt }}{{ completion }}"},
        "rollout": {"completions_per_prompt": 1, "max_new_tokens": 8},
        "read": {"verdict": "(A|B)", "values": {"A": 1, "B": 0}},
    }
    found = finding(
        "grpo",
        ("set", "nodes.claims", {"kind": "pairs", "method": "all"}),
        ("set", "nodes.judge", judge),
        ("add", "actor.rollouts -> claims.rollouts"),
        ("add", "exact.scores -> claims.scores"),
        ("add", "claims.pairs -> judge.comparisons"),
        ("add", {"from": "judge.scores", "to": "actor.rewards", "aggregate": "mean"}),
    )

    assert found.message == "`completion` is ambiguous: both sides of the pair have it"
    assert found.hint == "write `a.completion` and `b.completion`"


def test_the_same_rows_may_come_on_two_ways_with_one_text(check: Callable[..., Report]) -> None:
    codes = [one.code for one in check("grpo", *SAME_ROWS).diagnostics]

    assert codes == []


JUDGE = {
    "kind": "reward",
    "source": {"type": "model"},
    "model": {"type": "pretrained", "path": "classifier-base"},
}
WATCHED: list[tuple[Any, ...]] = [
    ("set", "nodes.judge", JUDGE),
    ("set", "nodes.watch", {"kind": "evaluate", "metrics": ["calibration"]}),
    ("add", "actor.rollouts -> judge.rollouts"),
    ("add", "judge.scores -> watch.scores"),
    ("add", "exact.scores -> watch.labels"),
]


def test_a_probe_of_a_judge_that_teaches_nobody_is_told_whom_it_misses(finding: Finding) -> None:
    found = finding("grpo", *WATCHED)

    assert (found.node, found.field) == ("watch", "scores")
    assert "no phase runs `judge`" in found.message
    assert found.severity is Severity.WARNING


def test_a_probe_reads_a_judge_by_which_rows_are_cut(check: Callable[..., Report]) -> None:
    report = check(
        "grpo",
        *WATCHED,
        ("set", "nodes.liked", {"kind": "filter", "keep": [{"rule": "score", "min": 0.0}]}),
        ("add", "actor.rollouts -> liked.rollouts"),
        ("add", "judge.scores -> liked.scores"),
        ("cut", "exact.scores -> actor.rewards"),
        ("cut", "actor.rollouts -> start.rollouts"),
        ("add", "liked.rollouts -> start.rollouts"),
        ("add", "liked.scores -> actor.rewards"),
    )

    assert [one.code for one in report.diagnostics] == []


SOFT: list[tuple[Any, ...]] = [
    ("set", "nodes.better", {"kind": "pairs", "method": "all", "soft": True}),
    ("add", "actor.rollouts -> better.rollouts"),
    ("add", "better.pairs -> actor.pairs"),
    ("add", "better.pairs -> start.pairs"),
    ("set", "schedule.phases.1.learn", ["actor.rewards", "actor.pairs"]),
]
OF_PROMPTS: list[tuple[Any, ...]] = [
    (
        "set",
        "nodes.hard",
        {
            "kind": "reward",
            "source": {
                "type": "python",
                "code": "def reward(prompts, completions, **columns):\n"
                "    return [float(len(one) > 5) for one in prompts]\n",
            },
        },
    ),
    ("set", "nodes.known", {"kind": "filter", "keep": [{"rule": "score", "min": 0.0}]}),
    ("add", "problems.rows -> hard.rows"),
    ("add", "problems.rows -> known.rows"),
    ("add", "hard.scores -> known.scores"),
    ("cut", "problems.rows -> actor.prompts"),
    ("add", "known.rows -> actor.prompts"),
    ("set", "nodes.pool.balance", {"by": "hard"}),
]
"""A class that all completions of a prompt have in common."""
DPO, KTO = {"name": "dpo"}, {"name": "kto"}
JUDGED = ("add", "exact.scores -> better.scores")
STEPWISE = {"kind": "reward", "source": {"type": "builtin", "name": "one_minus"}}
GATE = {"type": "builtin", "name": "gate", "value": "gold", "by": "exact", "min": 0.5}
MARK = {"type": "builtin", "name": "length", "max": 4}
SOUND: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "groups of a buffer's rows by words": (
        "grpo",
        [
            *REPLAY,
            ("add", "exact.scores -> pool.scores"),
            (
                "set",
                "nodes.actor.credit",
                {"group_by": ["prompt"], "balance": {"per": "role", "to": 8}},
            ),
        ],
    ),
    "rows beside a buffer by their ancestors": (
        "grpo",
        [("set", "nodes.actor.credit", {"balance": {"per": "problems", "to": 8}})],
    ),
    "a critic that sees what a buffer gives": (
        "ppo",
        [
            *REPLAY,
            ("add", "rm.scores -> pool.scores"),
            ("cut", "rm.scores -> actor.rewards"),
            ("add", "pool.rollouts -> critic.rollouts"),
        ],
    ),
    "soft pairs whose loss reads them": (
        "grpo",
        [*SOFT, JUDGED, ("set", "nodes.actor.algorithm.pairs", DPO)],
    ),
    "pairs of a soft node that nothing scores": (
        "grpo",
        [*SOFT, ("set", "nodes.actor.algorithm.pairs", KTO)],
    ),
    "classes of prompts": ("grpo", [*SCORED_REPLAY, *OF_PROMPTS]),
    "classes of rows that nobody compares": (
        "grpo",
        [
            *SCORED_REPLAY,
            BALANCED,
            ("set", "nodes.actor.algorithm.rewards.name", "reinforce"),
        ],
    ),
    "classes of rows that come out of one buffer into another": (
        "grpo",
        [
            *SCORED_REPLAY,
            ("set", "nodes.old", {"kind": "buffer", "capacity": 64, "balance": {"by": "exact"}}),
            ("cut", "pool.scores -> actor.rewards"),
            ("cut", "pool.rollouts -> start.rollouts"),
            ("add", "pool.rollouts -> old.rollouts"),
            ("add", "pool.scores -> old.scores"),
            ("add", "old.rollouts -> start.rollouts"),
            ("add", "old.scores -> actor.rewards"),
            ("set", "schedule.phases.1.fill", ["pool", "old"]),
            ("set", "nodes.actor.algorithm.rewards.name", "reinforce"),
        ],
    ),
    "rows of rounds that come out of a buffer by their prompts": (
        "two_halves",
        [
            ("set", "nodes.mark", {"kind": "reward", "source": MARK}),
            ("set", "nodes.pool", {"kind": "buffer", "capacity": 64}),
            ("add", "tens.rollouts -> mark.rollouts"),
            ("add", "tens.rollouts -> pool.rollouts"),
            ("add", "mark.scores -> pool.scores"),
            ("cut", "joint.scores -> tens.rewards"),
            ("add", "pool.scores -> tens.rewards"),
            ("set", "schedule", {"steps": 9, "fill": ["pool"]}),
            ("set", "nodes.tens.credit", {"group_by": ["role", "prompt"]}),
        ],
    ),
    "step scores that a gate lets through": (
        "judges",
        [
            ("set", "nodes.open", {"kind": "reward", "source": GATE}),
            ("add", "exact.scores -> open.scores"),
            ("add", "gold.step_scores -> open.scores"),
            ("add", "open.scores -> generator.rewards"),
        ],
    ),
    "labels of steps through a reward": (
        "tools",
        [
            ("set", "nodes.wrong", STEPWISE),
            ("cut", "mc.step_scores -> labelled.scores"),
            ("add", "mc.step_scores -> wrong.scores"),
            ("add", "wrong.scores -> labelled.scores"),
        ],
    ),
}


@pytest.mark.parametrize("what", SOUND)
def test_what_can_be_learned_is_not_refused(what: str, check: Callable[..., Report]) -> None:
    base, changes = SOUND[what]

    assert [one.describe() for one in check(base, *changes).diagnostics] == []


@pytest.mark.parametrize("metric", ["kl", "entropy"])
def test_a_learner_from_pairs_reports_both(metric: str, check: Callable[..., Report]) -> None:
    report = check("spin", ("set", "run", {"best": f"policy.{metric}"}))

    assert [one.describe() for one in report.diagnostics] == []


def test_classes_that_split_groups_are_named_with_their_learner(finding: Finding) -> None:
    found = finding("grpo", *SCORED_REPLAY, BALANCED)

    assert (found.code, found.node, found.field) == ("learning.split_groups", "pool", "balance.by")
    assert "`actor` compares" in found.message


def test_a_mini_batch_that_is_offered_fits_every_phase(check: Callable[..., Report]) -> None:
    """64 rows of a step in one phase and 96 in the other, which alone 48 would mend."""
    report = check(
        "grpo",
        ("set", "nodes.actor.training.mini_batch", 80),
        ("set", "nodes.actor.rollout.completions_per_prompt", 3),
    )

    [found] = [one for one in report.errors if one.code == "numbers.divisibility"]
    for fix in found.fixes:
        [change] = fix.changes
        mended = check(
            "grpo",
            ("set", "nodes.actor.training.mini_batch", change.value),
            ("set", "nodes.actor.rollout.completions_per_prompt", 3),
        )
        assert mended.errors == (), fix.title


@pytest.mark.parametrize(
    ("file", "phases", "is_found"),
    [(4, None, False), (3, None, True), (3, 8, False), (4, 3, True), (3, 3, True)],
)
def test_a_search_finds_something_in_some_phase(
    file: int, phases: int | None, is_found: bool, check: Callable[..., Report]
) -> None:
    """Four completions of a step: allowed by the file, or by what all its phases say."""
    own = {} if phases is None else {"nodes.mc.budget.searches_per_row": phases}
    report = check(
        "tools",
        ("set", "nodes.mc.budget", {"searches_per_row": file}),
        *(("set", f"schedule.phases.{number}.set", own) for number in range(3)),
    )

    assert [one.code for one in report.diagnostics] == ["numbers.search_budget"] * is_found


def test_strict_makes_errors_of_warnings(check: Callable[..., Report]) -> None:
    change = ("del", "schedule.phases.0.max_steps")

    assert check("tools", change).ok
    assert not check("tools", change, strict=True).ok


def test_over_budget_is_a_warning(check: Callable[..., Report]) -> None:
    report = check(
        "asynchronous",
        ("set", "nodes.actor.model.path", "llama-3.1-70b"),
        (
            "set",
            "hardware",
            {"preset": "2x4090", "pools": {"train": {"gpus": 1}, "generate": {"gpus": 1}}},
        ),
    )

    assert report.ok
    assert {one.severity for one in report.diagnostics} == {Severity.WARNING}


@pytest.mark.slow
def test_a_hundred_nodes_have_no_finding() -> None:
    spec = parse(hundred_nodes()).spec
    assert spec is not None
    assert len(spec.nodes) >= 100

    assert validate(spec, estimate=estimate(spec)).ok


def hundred_nodes() -> str:
    """Fifteen co-trained pairs of writer and judge over one dataset."""
    nodes = [
        "  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 32}"
    ]
    edges = []
    for index in range(15):
        nodes += [
            f"  ask_{index}: {{kind: template, text: '{{{{ prompt }}}} in {index} steps:'}}",
            f"  actor_{index}: {{kind: actor, model: {{type: scratch, architecture: tiny-qwen3}}, "
            "rollout: {completions_per_prompt: 4, max_new_tokens: 16}, "
            "algorithm: {rewards: {name: grpo}}}",
            f"  judge_{index}: {{kind: verifier, method: generative, "
            "model: {type: scratch, architecture: tiny-qwen3}, "
            "template: {text: '{{ prompt }}{{ completion }} right?'}, "
            'read: {verdict: "(yes|no)", values: {"yes": 1, "no": 0}}, '
            "rollout: {completions_per_prompt: 4}, "
            "algorithm: {rewards: {name: grpo}}}",
            f"  exact_{index}: {{kind: reward, source: {{type: builtin, name: exact_match}}}}",
            f"  agrees_{index}: {{kind: reward, source: {{type: builtin, name: agreement, "
            f"columns: [judge_{index}, exact_{index}]}}}}",
            f"  kept_{index}: {{kind: filter, keep: [{{rule: nonzero_variance}}]}}",
            f"  meter_{index}: {{kind: evaluate, every: 1, metrics: [score]}}",
        ]
        edges += [
            f"  - problems.rows -> ask_{index}.rows",
            f"  - ask_{index}.rows -> actor_{index}.prompts",
            f"  - actor_{index}.rollouts -> judge_{index}.rollouts",
            f"  - actor_{index}.rollouts -> exact_{index}.rollouts",
            f"  - judge_{index}.scores -> agrees_{index}.scores",
            f"  - exact_{index}.scores -> agrees_{index}.scores",
            f"  - agrees_{index}.scores -> judge_{index}.rewards",
            f"  - exact_{index}.scores -> kept_{index}.scores",
            f"  - kept_{index}.scores -> actor_{index}.rewards",
            f"  - {{from: judge_{index}.scores, to: actor_{index}.rewards, aggregate: mean}}",
            f"  - exact_{index}.scores -> meter_{index}.scores",
        ]
    head = "coloop: 1\nname: hundred\nnodes:\n"
    return head + "\n".join(nodes) + "\nedges:\n" + "\n".join(edges) + "\nschedule: {steps: 10}\n"


def test_roles_of_one_group_that_repeat_differently_are_both_named(finding: Finding) -> None:
    rules = {"proposer": {"updates": 4}, "solver": {"updates": 1}}

    found = finding("self_play", ("set", "schedule.learn", rules))

    assert found.severity is Severity.ERROR
    assert "`proposer` sets `updates: 4` and `solver` sets `updates: 1`" in found.message
    assert [fix.title for fix in found.fixes] == ["1 for all", "4 for all"]


def test_roles_of_one_group_may_differ_in_different_phases(check: Callable[..., Report]) -> None:
    rules = {"proposer": {"updates": 4}, "solver": {"updates": 1}}
    phases = [
        {"name": "one", "steps": 2, "learn": ["proposer"], "fill": ["questions"]},
        {"name": "two", "steps": 2, "learn": ["solver"]},
    ]

    report = check(
        "self_play", ("set", "schedule.learn", rules), ("set", "schedule.phases", phases)
    )

    assert "learning.updates" not in [one.code for one in report.diagnostics]


def test_a_rule_of_one_role_is_that_of_the_joint_stage(
    changed: Callable[..., dict[str, Any]], text: Callable[[dict[str, Any]], str]
) -> None:
    rules = ("set", "schedule.learn", {"solver": {"updates": 4}})
    spec = parse(text(changed("self_play", rules)))
    assert spec.spec is not None

    assert updates_of(spec.spec, ["proposer", "solver"]) == 4
    assert updates_of(spec.spec, ["proposer"]) == 1


def test_a_prompt_and_what_is_written_fit_the_models_positions(finding: Finding) -> None:
    rows = [{"prompt": "1+1=" * 125, "target": "2", "answer": "2"}]

    found = finding(
        "grpo",
        ("set", "nodes.problems.source", {"type": "inline", "rows": rows}),
        ("set", "nodes.problems.rows_per_step", 1),
        ("set", "nodes.actor.training.mini_batch", None),
        ("set", "schedule.phases.0.set", {}),
    )

    assert (found.code, found.severity) == ("numbers.too_long", "warning")
    assert (found.node, found.field) == ("actor", "rollout.max_new_tokens")
    assert found.message.startswith("a prompt of 500 tokens")
    assert "context of 512 tokens" in found.message
    assert [fix.title for fix in found.fixes] == ["Set it to 12"]


def test_code_that_does_not_compile_is_quoted_where_it_breaks(finding: Finding) -> None:
    code = "def reward(prompts, completions):\n    return [1.0 / / 2]\n"

    found = finding("two_halves", ("set", "nodes.joint.source.code", code))

    assert (found.code, found.field) == ("text.code_syntax", "source.code")
    assert found.text_line == 2
    assert "line 2" in found.message
    assert found.hint is not None
    assert "`return [1.0 / / 2]`" in found.hint


def test_of_a_long_line_that_does_not_compile_the_start_is_quoted(finding: Finding) -> None:
    code = f"def reward(prompts, completions):\n    return {'(' * 400}1{')' * 400}\n"

    found = finding("two_halves", ("set", "nodes.joint.source.code", code))

    assert found.code == "text.code_syntax"
    assert found.hint is not None
    assert "((…`" in found.hint
    assert len(found.hint) < 160


def test_a_parameter_that_nothing_gives_is_told_those_of_every_reward(finding: Finding) -> None:
    code = "def reward(prompts, completion_texts):\n    return [1.0 for _ in prompts]\n"

    found = finding("two_halves", ("set", "nodes.joint.source.code", code))

    assert found.code == "structure.unknown_column"
    assert found.hint is not None
    assert "completions" in found.hint


def test_a_number_for_each_row_gathered_is_refused_where_none_is(finding: Finding) -> None:
    found = finding("grpo", ("set", "nodes.exact.per", "row"))

    assert (found.node, found.field, found.severity) == ("exact", "per", Severity.ERROR)
    assert "`exact` gathers none" in found.message


def test_a_coefficient_that_is_multiplied_begins_above_nothing(
    finding: Finding, check: Callable[..., Report]
) -> None:
    kl = "nodes.actor.algorithm.rewards.kl"
    nothing = ("set", kl, {"coefficient": 0.0, "target": 1.0})

    found = finding("grpo", nothing)

    assert (found.node, found.field) == ("actor", "algorithm.rewards.kl.coefficient")
    assert found.severity is Severity.ERROR
    later = ("set", "schedule.phases.1.set", {f"{kl}.coefficient": 0.1})
    assert check("grpo", nothing, later).diagnostics == ()
    assert check("grpo", ("set", kl, {"coefficient": 0.0})).diagnostics == ()  # as dapo has it


@pytest.mark.parametrize("port", ["", ".rewards"])
@pytest.mark.parametrize("by", ["anneal", "set"])
def test_a_coefficient_moves_by_either_spelling_of_its_path(
    port: str, by: str, check: Callable[..., Report]
) -> None:
    kl = {"coefficient": 0.0, "target": 1.0}
    path = f"nodes.actor.algorithm{port}.kl.coefficient"
    move = {"path": path, "from": 0.01, "to": 0.1}
    changes = [
        ("set", "nodes.actor.algorithm", {"name": "grpo", "kl": kl}),
        ("cut", "problems.rows -> actor.demonstrations"),
        ("del", "schedule.phases.0"),
        ("del", "schedule.triggers"),
        ("set", "nodes.start.model.refresh", "never"),
    ]

    still = check("grpo", *changes)
    later = ("set", "schedule.anneal", [move])
    if by == "set":
        later = ("set", "schedule.phases.0.set", {path: 0.1})

    assert [one.code for one in still.diagnostics] == ["structure.unused_setting"]
    assert [one.describe() for one in check("grpo", *changes, later).diagnostics] == []


@pytest.mark.filterwarnings("error::FutureWarning")
def test_a_group_of_a_class_of_characters_may_be_a_number(check: Callable[..., Report]) -> None:
    source = {"type": "builtin", "name": "regex", "pattern": "score: ([[:digit:]])"}

    report = check("grpo", ("set", "nodes.exact.source", source))

    assert [one.describe() for one in report.diagnostics] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("class_weights", {"by": "exact"}),
        ("balance", {"per": "prompt", "to": 2}),
        ("combine", "normalize_then_sum"),
        ("missing", "skip_row"),
        ("group_by", ["prompt"]),
    ],
)
def test_credit_of_who_learns_from_no_rewards_is_refused(
    field: str, value: Any, check: Callable[..., Report]
) -> None:
    cut = ("cut", "exact.scores -> actor.rewards")

    report = check(
        "grpo", cut, ("set", "nodes.actor.credit", {field: value}), ("del", "schedule.phases.1")
    )

    told = {one.field: one for one in report.diagnostics if one.node == "actor"}
    assert told[f"credit.{field}"].severity is Severity.ERROR
    assert "`actor` learns from `demonstrations`" in told[f"credit.{field}"].message


def test_an_average_that_nothing_moves_is_refused(
    finding: Finding, check: Callable[..., Report]
) -> None:
    model = {"type": "snapshot", "of": "actor", "ema": 0.5}
    still = ("set", "nodes.start.model", model)

    found = finding("grpo", still)

    assert (found.node, found.field, found.severity) == ("start", "model.ema", Severity.ERROR)
    order = ("set", "schedule.phases.1.do", {"refresh": {"node": "start"}})
    assert check("grpo", still, order).diagnostics == ()
    assert check("grpo", ("set", "nodes.start.model", {**model, "refresh": {"every": 1}})).ok


@pytest.mark.parametrize(
    ("labels", "is_found"), [(["yes", "no"], False), (["no", "yes"], True)], ids=str
)
def test_of_two_labels_the_first_is_worth_more(
    labels: list[str], is_found: bool, check: Callable[..., Report]
) -> None:
    report = check(
        "tools",
        ("set", "nodes.prm.read", {"labels": labels, "values": {"yes": 1.0, "no": 0.0}}),
        ("set", "nodes.prm.algorithm", {"labels": {"name": "label_ce"}}),
        ("cut", "labelled.scores -> prm.labels"),
        ("cut", "mc.step_scores -> labelled.scores"),
        ("add", "mc.scores -> labelled.scores"),
        ("add", "labelled.scores -> prm.labels"),
    )

    found = [one for one in report.errors if one.field == "read.labels"]
    assert len(found) == is_found
    if found:
        assert found[0].fixes[0].changes[0].value == ["yes", "no"]


@pytest.mark.parametrize(
    ("read", "hint"),
    [
        ({"verdict": "final: (correct|incorrect)"}, "{correct: 1, incorrect: 0}"),
        ({"verdict": r"(\w+)$"}, "{right: 1, wrong: 0}"),
        (
            {"verdict": "=(yes|no|maybe)", "step_verdicts": r"step (\d+): (good|bad)"},
            "{good: 1, bad: 0, yes: 1, no: 0, maybe: 0}",
        ),
    ],
)
def test_words_of_a_verdict_that_are_worth_nothing_are_valued_in_the_hint(
    check: Callable[..., Report], read: dict[str, str], hint: str
) -> None:
    report = check("judges", ("set", "nodes.verifier.read", read))

    unread = [f.hint for f in report.diagnostics if f.code == "structure.unreadable_verdict"]
    assert unread == [f"set a value for each word: `values: {hint}`"]
