"""What rounds make of the rows that are priced, against counts by hand and against what runs."""

from pathlib import Path

import pytest

from coloop.spec.io import parse
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.lineage import lineage_throughout

EXAMPLES = Path(__file__).resolve().parents[4] / "shared" / "language" / "examples"

TALK = """
coloop: 1
name: talk
nodes:
  problems: {{kind: dataset, source: {{type: inline, rows: [{{prompt: a}}]}}, rows_per_step: 3}}
  ask: {{kind: template, text: "{{{{ prompt }}}}"}}
  first:
    kind: actor
    model: &tiny {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 2}}
  again: {{kind: template, text: "{{{{ completion }}}}"}}
  second:
    kind: actor
    model: *tiny
    rollout: {{completions_per_prompt: 4}}
    algorithm: {{name: reinforce}}
  mark: {{kind: reward, source: {{type: builtin, name: length, max: 4}}}}
  end: {{kind: template, text: "{{{{ completion }}}}"}}
  judge: {{kind: actor, model: *tiny, rollout: {{completions_per_prompt: 1}}}}
edges:
  - problems.rows -> ask.rows
  - ask.rows -> first.prompts
  - first.rollouts -> again.rows
  - again.rows -> second.prompts
  - {{from: second.rollouts, to: ask.rows, rounds: 3, branch: {branch}}}
  - second.rollouts -> mark.rollouts
  - second.rollouts -> end.rows
  - end.rows -> judge.prompts
  - mark.scores -> second.rewards
schedule: {{steps: 1}}
"""


@pytest.mark.parametrize(
    ("branch", "first", "second", "judge"),
    [
        # of 3 rows 6 and 24 texts in each of three rounds, the last 24 of them are judged
        ("one", 3 * 6, 3 * 24, 24),
        # 24 lines from the second round on
        ("lines", 6 + 2 * 24, 3 * 24, 24),
        # 3, 24, 192 conversations: each brings 2 and 8 texts
        ("all", (3 + 24 + 192) * 2, (3 + 24 + 192) * 8, 192 * 8),
    ],
)
def test_rows_over_rounds_are_those_of_the_branch(
    branch: str, first: int, second: int, judge: int
) -> None:
    spec = parse(TALK.format(branch=branch)).spec
    assert spec is not None
    counts = RowCounts(lineage_throughout(spec), overrides={})

    assert counts.of("first", "rollouts").mean.rows == first
    assert counts.of("second", "rollouts").mean.rows == second
    assert counts.worked_on("mark").mean.rows == second
    assert counts.of("judge", "rollouts").mean.rows == judge


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")
@pytest.mark.parametrize(
    ("loop", "rows"),
    [
        ("marti-debate", {"alice": 64, "bob": 64}),  # 16 x 2, then 32 lines
        ("magrpo", {"tens": 40, "units": 40}),  # 2 x 4, then 8 x 4
        ("debate", {"debater": 48, "opponent": 48}),  # 8 x 2, then 16 x 2
        ("constitutional", {"critique": 128, "reviser": 128}),  # 32 in each of four rounds
        ("own-scheme", {"left": 64, "left_voice": 128, "judge": 192}),  # 64 lines twice, 64 x 3
    ],
)
def test_examples_are_priced_as_they_run(loop: str, rows: dict[str, int]) -> None:
    spec = parse((EXAMPLES / f"{loop}.yaml").read_text(encoding="utf-8")).spec
    assert spec is not None
    counts = RowCounts(lineage_throughout(spec), overrides={})

    assert {node: counts.of(node, "rollouts").mean.rows for node in rows} == rows
