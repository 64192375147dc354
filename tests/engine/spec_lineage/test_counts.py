"""Rows of one loop port by port, exact or at most, and in the mean; numbers worked out by hand."""

from typing import Any

import pytest

from coloop.spec.io import from_dict
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.lineage import lineage_throughout
from coloop.spec.table_sizes import TableSize, filled

TINY = {"type": "scratch", "architecture": "tiny-qwen3"}
WRITER = {"kind": "actor", "model": TINY, "algorithm": {"rewards": {"name": "grpo"}}}


def counted(nodes: dict[str, Any], edges: list[str], **lengths: TableSize) -> RowCounts:
    parsed = from_dict(
        {"coloop": 1, "name": "l", "nodes": nodes, "edges": edges, "schedule": {"steps": 1}}
    )
    assert parsed.spec is not None, parsed.diagnostics
    return RowCounts(lineage_throughout(parsed.spec), overrides={}, lengths=lengths)


def writer(completions: int, *, greedy: bool = False) -> dict[str, Any]:
    rollout = {"completions_per_prompt": completions, "max_new_tokens": 10}
    return {**WRITER, "rollout": rollout | ({"greedy_extra": True} if greedy else {})}


PROBLEMS = {
    "kind": "dataset",
    "source": {"type": "inline", "rows": [{"prompt": "a"}]},
    "rows_per_step": 4,
}
MARK = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
STEP = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> mark.rollouts",
    "mark.scores -> sift.scores",
    "sift.scores -> actor.rewards",
]


@pytest.mark.parametrize(
    ("sift", "said", "mean"),
    [
        ({}, "12", 12),
        ({"keep": [{"rule": "nonzero_variance"}]}, "at most 12", 12),
        ({"per_group": {"max": 1, "pick": "first"}}, "at most 12", 4),
        ({"resample": {"rows": 5}}, "at most 5", 5),
        (
            {
                "keep": [{"rule": "nonzero_variance"}],
                "fill": {"groups": 2, "max_rounds": 3, "surplus": "drop"},
            },
            "at most 6",
            6,
        ),
    ],
)
def test_a_learner_learns_from_what_a_filter_leaves(
    sift: dict[str, Any], said: str, mean: float
) -> None:
    nodes = {"problems": PROBLEMS, "actor": writer(3), "mark": MARK}
    counts = counted({**nodes, "sift": {"kind": "filter", **sift}}, STEP)

    assert str(counts.of("actor", "rollouts")) == "12"
    assert counts.worked_on("mark").mean.rows == 12
    assert str(counts.taught("actor", "rewards")) == said
    assert counts.taught("actor", "rewards").mean.rows == mean


def test_a_greedy_extra_is_written_and_never_learned_in_the_mean_as_well() -> None:
    nodes = {"problems": PROBLEMS, "actor": writer(3, greedy=True), "mark": MARK}
    edges = [STEP[0], STEP[1], "mark.scores -> actor.rewards"]
    counts = counted(nodes, edges, problems=TableSize(prompt=2.0, prompt_max=3.0))

    written = counts.of("actor", "rollouts")
    assert (written.rows, written.greedy) == (12, 4)
    assert written.mean == TableSize(
        rows=16, prompt=2, prompt_max=3, written=5, written_max=10, alike=4
    )
    assert counts.taught("actor", "rewards").rows == 12
    assert counts.taught("actor", "rewards").mean.rows == 12


def test_of_scores_of_several_writers_each_learns_from_its_own() -> None:
    nodes = {
        "problems": PROBLEMS,
        "ann": writer(3),
        "again": {"kind": "template", "text": "{{ completion }}"},
        "bob": writer(2),
        "mark": {**MARK, "join": "concat"},
    }
    edges = [
        "problems.rows -> ann.prompts",
        "ann.rollouts -> again.rows",
        "again.rows -> bob.prompts",
        "ann.rollouts -> mark.rollouts",
        "bob.rollouts -> mark.rollouts",
        "mark.scores -> ann.rewards",
        "mark.scores -> bob.rewards",
    ]
    counts = counted(nodes, edges)

    assert str(counts.of("mark", "scores")) == "36"
    for name, rows in (("ann", 12), ("bob", 24)):
        taught = counts.taught(name, "rewards")
        assert (str(taught), taught.mean.rows) == (str(rows), rows)
    assert counts.of("bob", "rollouts").mean.prompt == 5  # what ann wrote


def test_the_mean_guesses_where_nobody_knows() -> None:
    nodes = {
        "problems": {**PROBLEMS, "unfold": "parts"},
        "lines": {"kind": "template", "code": "def write(**c): return {}", "each": "line"},
        "actor": writer(3),
        "best": {"kind": "pairs", "method": "all"},
        "mark": MARK,
    }
    edges = [
        "problems.rows -> lines.rows",
        "lines.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "actor.rollouts -> best.rollouts",
        "mark.scores -> best.scores",
    ]
    counts = counted(nodes, edges)

    found = [("problems", "rows"), ("lines", "rows"), ("actor", "rollouts"), ("best", "pairs")]
    assert [str(counts.of(*port)) for port in found] == ["unknown"] * 4
    assert [counts.of(*port).mean.rows for port in found] == [4, 4, 12, 12]
    assert counts.of("best", "pairs").mean.sides == 2
    assert counts.of("best", "pairs").mean.alike == 6


def test_texts_return_through_a_buffer() -> None:
    nodes = {
        "problems": PROBLEMS,
        "pool": {"kind": "buffer", "capacity": 64, "rows_per_step": 6},
        "actor": writer(2),
    }
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> pool.rollouts",
        "pool.rollouts -> actor.demonstrations",
    ]
    counts = counted(nodes, edges, problems=TableSize(prompt=2.0))

    taught = counts.taught("actor", "demonstrations")
    assert (str(taught), taught.mean.rows) == ("at most 6", 6)
    assert (taught.mean.prompt, taught.mean.written) == (2, 5)


COLUMNS = (("question", 20.0, 30.0), ("hint", 4.0, 8.0))


def test_a_template_is_as_long_as_its_text_and_the_columns_that_it_names() -> None:
    """16 characters at 3.2 a token are 5 tokens; a question of 20, and a quarter of the prompt for
    a column that is not known."""
    text = "0123456789{{ question | upper }}012345{{ other }}"
    nodes = {"problems": PROBLEMS, "ask": {"kind": "template", "text": text}}
    rows = TableSize(prompt=8.0, prompt_max=12.0, columns=COLUMNS)
    counts = counted(nodes, ["problems.rows -> ask.rows"], problems=rows)

    asked = counts.of("ask", "rows").mean
    assert (asked.prompt, asked.prompt_max) == (5 + 20 + 2, 5 + 30 + 3)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("{{ prompt | replace('hint', '') }}", 8),
        ("{{ row.question }}", 20),
        ("{{ question ~ hint }}", 24),
        ("{{ rows[0].completion }}", 5),
        ("{{ '0123456789ABCDEF' ~ bob.completion ~ '' if bob.completion }}", 5 + 5),
        ("{{ 1 }}", 2),
        ("{% if hint %}{{ hint }}{% endif %}", 4),
    ],
)
def test_an_expression_is_as_long_as_the_columns_before_its_filters(
    text: str, tokens: float
) -> None:
    """A prompt of 8 tokens and a completion of 5; 16 quoted characters are 5 tokens; without a
    column a quarter of the prompt."""
    rows = TableSize(prompt=8.0, written=5.0, columns=COLUMNS)

    assert filled(rows, [text], 1 / 3.2)[0] == tokens


def test_a_judge_reads_what_its_template_shows_of_a_completion() -> None:
    """32 characters are 10 tokens; a prompt of 8, and a completion of 5 of 10 tokens: 23, at most
    10 + 12 + 10. It writes 2 texts of 5 tokens about each of 12 completions."""
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "pretrained", "path": "judge"},
        "template": {"text": "0123456789ABCDEF{{ prompt }}0123456789{{ completion }}012345"},
        "read": {"verdict": "(yes|no)", "values": {"yes": 1, "no": 0}},
        "rollout": {"completions_per_prompt": 2, "max_new_tokens": 10},
    }
    nodes = {"problems": PROBLEMS, "actor": writer(3), "judge": judge}
    edges = ["problems.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"]
    counts = counted(nodes, edges, problems=TableSize(prompt=8.0, prompt_max=12.0))

    said = counts.of("judge", "rollouts").mean
    assert (said.rows, said.prompt, said.prompt_max, said.written) == (24, 23, 32, 5)
    read = counts.worked_on("judge").mean
    assert (read.rows, read.prompt, read.written) == (12, 23, 0)
