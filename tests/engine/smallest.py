"""The smallest loops: one that learns from rewards, and one that writes a step ahead of it."""

GRPO = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""

AHEAD = """
coloop: 1
name: ahead
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 64}, rows_per_step: 2}
  actor:
    kind: actor
    pool: train
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {pool: write, completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: reinforce, advantage: none}
  brief: {kind: reward, source: {type: builtin, name: length, max: 3}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> brief.rollouts
  - brief.scores -> actor.rewards
schedule: {steps: 10, max_staleness: 1}
hardware: {preset: cpu, pools: {train: {workers: 1}, write: {workers: 1}}}
run: {keep: 2}
"""
"""Written in one pool and learned in another, a step ahead; nothing lies between its steps."""
