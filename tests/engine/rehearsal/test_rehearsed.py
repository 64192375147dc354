"""A loop made small: what becomes of models, machines, sizes, phases and rows."""

import json
from pathlib import Path

import pytest

from coloop.explain.rehearsal import rehearsed
from coloop.plan.run_check import check_run
from coloop.spec.io import from_dict, load, require, to_dict
from coloop.validate import validate

LOOPS = Path(__file__).resolve().parents[3] / "presets" / "loops"
LARGE = """
coloop: 1
name: large
nodes:
  questions:
    kind: dataset
    source: {type: hub, path: openai/gsm8k, name: main}
    columns: {prompt: question, answer: answer}
    rows_per_step: 512
  policy:
    kind: actor
    pool: train
    model:
      type: pretrained
      path: Qwen/Qwen2.5-7B
      quantization: nf4
      lora: {rank: 64, targets: [q_proj]}
    rollout:
      engine: vllm
      pool: write
      completions_per_prompt: 16
      max_new_tokens: 4096
      tensor_parallel: 4
    algorithm:
      demonstrations: {name: sft}
      rewards: {name: grpo, kl: {coefficient: 0.01}}
    training:
      backend: fsdp2
      optimizer: {name: adamw8bit, lr: 1.0e-6}
      mini_batch: 1024
      micro_batch: 2
  follower:
    kind: reference
    pool: train
    model: {type: snapshot, of: policy, refresh: {every: 50}}
  judge:
    kind: reward
    pool: train
    source: {type: model}
    model: {type: run, run: judges, node: rm}
  twin: {kind: actor, pool: train, model: {type: shared, with: policy}}
  probe: {kind: evaluate, instead_of: questions, every: 20, metrics: [score]}
edges:
  - questions.rows -> policy.prompts
  - questions.rows -> policy.demonstrations
  - questions.rows -> twin.prompts
  - policy.rollouts -> follower.rollouts
  - policy.rollouts -> judge.rollouts
  - follower.log_probs -> policy.reference
  - judge.scores -> policy.rewards
  - questions.rows -> probe.rows
  - judge.scores -> probe.scores
schedule:
  max_staleness: 1
  phases:
    - name: warm-up
      epochs: 3
      learn: [policy.demonstrations]
      set: {nodes.questions.rows_per_step: 64}
    - repeat: 50
      phases:
        - name: rl
          steps: 100
          learn: [policy.rewards]
          set: {nodes.policy.rollout.completions_per_prompt: 32}
  anneal:
    - {path: nodes.policy.rollout.temperature, from: 1.0, to: 0.5, steps: 5000}
  triggers:
    - when: {metric: probe.score, above: 0.9}
      do: {set: {nodes.policy.rollout.max_new_tokens: 8192}}
hardware: {preset: 8xH100, pools: {train: {gpus: 4}, write: {gpus: 4}}}
run: {seed: 7, best: probe.score, storage: s3://far/away, checkpoint_every: 10}
"""


@pytest.fixture
def small():
    """The document of the large loop's rehearsal."""
    return to_dict(rehearsed(load(LARGE)).spec)


def test_large_and_foreign_models_become_tiny_ones_that_read_any_text(small) -> None:
    nodes = small["nodes"]

    assert nodes["policy"]["model"] == {
        "type": "scratch",
        "architecture": "tiny-bytes",
        "lora": {"rank": 8, "targets": ["q_proj"]},
    }
    assert nodes["judge"]["model"] == {"type": "scratch", "architecture": "tiny-bytes"}


def test_who_follows_and_shares_goes_on_doing_so(small) -> None:
    nodes = small["nodes"]

    assert nodes["twin"]["model"] == {"type": "shared", "with": "policy"}
    assert nodes["follower"]["model"]["of"] == "policy"
    assert nodes["follower"]["model"]["refresh"] == {"every": 1}


def test_a_tiny_model_made_on_the_spot_stays() -> None:
    document = to_dict(load(LARGE))
    document["nodes"]["policy"]["model"] = {"type": "scratch", "architecture": "tiny-qwen3"}
    document["nodes"]["judge"]["model"] = {"type": "copy", "of": "policy"}

    found = rehearsed(require(from_dict(document)))

    assert to_dict(found.spec)["nodes"]["policy"]["model"]["architecture"] == "tiny-qwen3"
    assert not any(note.startswith("models") for note in found.notes)


def test_the_machine_is_a_cpu_with_the_same_pools(small) -> None:
    pools = {"train": {"workers": 1}, "write": {"workers": 1}}

    assert small["hardware"] == {"preset": "cpu", "pools": pools}
    assert small["nodes"]["policy"]["training"] == {
        "optimizer": {"name": "adamw", "lr": 1.0e-6},
        "mini_batch": 4,
    }
    assert small["nodes"]["policy"]["rollout"] == {
        "engine": "torch",
        "completions_per_prompt": 4,
        "max_new_tokens": 96,
        "script": ["$answer", "$target", "$chosen", "$rejected"],
        "pool": "write",
    }
    assert small["run"] == {"seed": 7, "best": "probe.score"}


def test_what_phases_and_triggers_set_is_made_as_small_as_the_field(small) -> None:
    warm_up, group = small["schedule"]["phases"]

    assert small["nodes"]["questions"]["rows_per_step"] == 4
    assert warm_up["set"] == {"nodes.questions.rows_per_step": 4}
    assert group["phases"][0]["set"] == {"nodes.policy.rollout.completions_per_prompt": 4}
    assert small["schedule"]["triggers"][0]["do"]["set"] == {
        "nodes.policy.rollout.max_new_tokens": 96
    }


def test_every_phase_comes_once_and_is_short(small) -> None:
    schedule = small["schedule"]
    warm_up, group = schedule["phases"]

    assert (warm_up["epochs"], warm_up["max_steps"]) == (3, 2)
    assert group["repeat"] == 1
    assert group["phases"][0]["steps"] == 2
    assert schedule["max_staleness"] == 1
    assert schedule["anneal"][0]["steps"] == 2
    assert small["nodes"]["probe"]["every"] == 4


def test_rows_of_the_hub_are_made_from_the_columns_and_it_is_said(small) -> None:
    source = small["nodes"]["questions"]["source"]

    assert source["type"] == "inline"
    assert {"question", "answer"} <= set(source["rows"][0])
    notes = rehearsed(load(LARGE)).notes
    assert any("made-up rows" in note and "openai/gsm8k" in note for note in notes)


def test_made_rows_have_what_the_code_of_a_template_asks_for() -> None:
    spec = rehearsed(load((LOOPS / "retool-qwen2.5-7b-16xH100.yaml").read_text("utf-8"))).spec

    rows = to_dict(spec)["nodes"]["traces"]["source"]["rows"]

    assert [[one["role"] for one in row["messages"]] for row in rows] == [["user", "assistant"]] * 8


def test_made_rows_have_what_a_reward_can_read() -> None:
    coders = rehearsed(load((LOOPS / "magrpo-qwen2.5-coder-3b-2xH100.yaml").read_text("utf-8")))
    students = rehearsed(load((LOOPS / "medvlsynther-qwen2.5-7b-8xH200.yaml").read_text("utf-8")))

    tests, options = (
        to_dict(one.spec)["nodes"]["held_out"]["source"]["rows"][1] for one in (coders, students)
    )

    assert tests["test_list"] == ["assert double(1) == 2"]
    assert options["answer_idx"] == "B"


def test_rows_of_a_file_that_is_there_stay(tmp_path: Path) -> None:
    source = "{type: hub, path: openai/gsm8k, name: main}"
    text = LARGE.replace(source, "{type: file, path: rows.jsonl}")
    row = {"question": "1 + 1?", "answer": "2"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")

    there = to_dict(rehearsed(load(text), root=tmp_path).spec)["nodes"]["questions"]
    elsewhere = to_dict(rehearsed(load(text), root=tmp_path / "not").spec)["nodes"]["questions"]

    assert there["source"] == {"type": "file", "path": "rows.jsonl"}
    assert elsewhere["source"]["type"] == "inline"


def test_a_learner_that_would_begin_late_learns_in_a_rehearsal() -> None:
    rule = "  learn: {policy: {after: 40, every: 10, updates: 8, rows: 512}}\n  max_staleness"
    spec = rehearsed(load(LARGE.replace("  max_staleness", rule))).spec

    found = spec.schedule.learn["policy"]

    assert (found.after, found.every, found.updates, found.rows) == (1, 1, 2, 4)


def test_a_rehearsed_loop_is_valid() -> None:
    report = validate(rehearsed(load(LARGE)).spec)

    assert not report.errors


def test_a_rehearsal_of_a_rehearsal_changes_nothing() -> None:
    once = rehearsed(load(LARGE)).spec

    assert to_dict(rehearsed(once).spec) == to_dict(once)


def test_no_service_is_asked() -> None:
    judge = "source: {type: model}\n    model: {type: run, run: judges, node: rm}"
    service = 'source: {type: remote, url: "https://judge.example/score", secret: judge}'

    made = rehearsed(
        load(
            LARGE.replace(judge, service).replace(
                "judge:\n    kind: reward\n    pool: train\n", "judge:\n    kind: reward\n"
            )
        )
    )

    assert to_dict(made.spec)["nodes"]["judge"]["source"]["type"] == "python"
    assert "`judge`: made-up scores instead of the service at judge.example" in made.notes


HUB = """
coloop: 1
name: hub
nodes:
  problems:
    kind: dataset
    source: {type: hub, path: some/problems}
    columns: {prompt: question}
    rows_per_step: 4
  hard: {kind: filter, keep: [{rule: regex, column: level, pattern: "[345]"}], fill: {rows: 64}}
  ask: {kind: template, text: "{{ problems.subject }}: {{ prompt }} ({{ source }})"}
  actor:
    kind: actor
    model: {type: pretrained, path: Qwen/Qwen2.5-0.5B}
    rollout: {completions_per_prompt: 4}
    algorithm: {rewards: {name: grpo}}
    training: {backend: megatron, pipeline_parallel: 2, context_parallel: 2, implementation: verl}
  exact: {kind: reward, source: {type: builtin, name: exact_match, column: solution}}
  short:
    kind: reward
    source:
      type: python
      code: "def reward(prompts, completions, limit, **columns): return [0.0 for _ in prompts]"
edges:
  - problems.rows -> hard.rows
  - hard.rows -> ask.rows
  - ask.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - actor.rollouts -> short.rollouts
  - exact.scores -> actor.rewards
  - short.scores -> actor.rewards
schedule: {steps: 4}
hardware: {preset: 8xH100}
"""


def test_made_rows_have_every_column_that_filters_texts_and_functions_read() -> None:
    found = rehearsed(load(HUB))

    rows = to_dict(found.spec)["nodes"]["problems"]["source"]["rows"]
    assert {"question", "level", "subject", "source", "solution", "limit"} <= rows[0].keys()
    assert all(row["level"] in ("3", "4", "5") for row in rows)
    assert validate(found.spec).ok
    assert check_run(found.spec).refusals == ()


@pytest.mark.parametrize("path", sorted(LOOPS.glob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.sample(6)
def test_a_rehearsal_of_every_preset_is_valid(path: Path) -> None:
    found = rehearsed(load(path), root=LOOPS)

    assert validate(found.spec, root=LOOPS).ok
    assert check_run(found.spec, root=LOOPS).refusals == ()
