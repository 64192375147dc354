"""Look-ups over edges, and weights groups."""

from __future__ import annotations

import pickle

from coloop.spec.graph import LoopSpec, PortRef
from coloop.spec.groups import group_of, training_of, weights_groups
from coloop.spec.io import parse

LOOP = """\
coloop: 1
name: loop
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 8}
  policy:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {rewards: {name: grpo}, demonstrations: {name: sft}}
    training: {optimizer: {lr: 1.0e-3}}
  judge: {kind: actor, model: {type: shared, with: policy}, algorithm: {rewards: {name: grpo}}}
  old: {kind: actor, model: {type: snapshot, of: policy, refresh: {every: 10}}}
  start: {kind: reference, model: {type: shared, with: old}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  extra: {kind: reward, source: {type: builtin, name: length, max: 8}}
edges:
  - problems.rows -> policy.prompts
  - policy.rollouts -> exact.rollouts
  - policy.rollouts -> extra.rollouts
  - {from: exact.scores, to: policy.rewards, id: outcome}
  - {from: extra.scores, to: policy.rewards, id: brevity, weight: 0}
  - {from: problems.rows, to: policy.demonstrations, id: gold, weight: 0}
schedule:
  steps: 10
  anneal: [{path: edges.gold.weight, from: 0.0, to: 1.0}]
"""


def loop(text: str = LOOP) -> LoopSpec:
    """The loop."""
    found = parse(text)
    assert found.spec is not None, found.diagnostics
    return found.spec


def test_edges_are_found_by_their_ends() -> None:
    graph = loop().graph

    assert [edge.label for edge in graph.edges_into("policy", "rewards")] == [
        "exact.scores -> policy.rewards",
        "extra.scores -> policy.rewards",
    ]
    assert [edge.target for edge in graph.edges_out_of("problems")] == [
        PortRef("policy", "prompts"),
        PortRef("policy", "demonstrations"),
    ]
    assert graph.edges_into("nobody") == ()


def test_an_edge_has_a_key_and_is_found_by_it() -> None:
    graph = loop().graph

    assert [edge.key for edge in graph.spec.edges][:4] == [
        "problems.rows->policy.prompts",
        "policy.rollouts->exact.rollouts",
        "policy.rollouts->extra.rollouts",
        "outcome",
    ]
    assert graph.edge("outcome") is graph.spec.edges[3]
    assert graph.edge("problems.rows -> policy.prompts") is graph.spec.edges[0]
    assert graph.edge("nothing") is None


def test_teaching_edges_and_learners_follow_the_port_table() -> None:
    graph = loop().graph

    assert [edge.key for edge in graph.teaching_edges()] == ["outcome", "brevity", "gold"]
    assert graph.teaching_ports("policy") == ("rewards", "demonstrations")
    assert graph.teaching_ports("judge") == ()
    assert graph.learners() == ("policy",)


def test_an_edge_of_weight_0_is_dead_unless_something_moves_it() -> None:
    graph = loop().graph
    dead = {edge.key: graph.is_dead(edge) for edge in graph.teaching_edges()}

    assert dead == {"outcome": False, "brevity": True, "gold": False}
    assert graph.is_dead(graph.spec.edges[3], {"edges.outcome.weight": 0.0})
    assert graph.is_dead(graph.spec.edges[3], {"edges.3.weight": 0})
    assert not graph.is_dead(graph.spec.edges[4], {"edges.brevity.weight": 0.5})


def test_what_stands_before_and_behind_a_node_is_found() -> None:
    graph = loop().graph

    assert graph.upstream(["exact"]) == {"exact", "policy", "problems", "extra"}
    assert graph.downstream(["exact"]) == {"exact", "policy", "extra"}


def test_nodes_that_share_weights_are_one_group() -> None:
    groups = weights_groups(loop())

    assert {name: group.members for name, group in groups.items()} == {
        "policy": ("policy", "judge"),
        "old": ("old", "start"),
    }
    assert groups["policy"].trainable
    assert (groups["old"].trainable, groups["old"].source) == (False, "snapshot")
    assert group_of(loop(), "start") == groups["old"]
    assert group_of(loop(), "exact") is None


def test_training_is_that_of_the_owner() -> None:
    spec = loop()

    assert training_of(spec, "judge").optimizer.lr == 1e-3
    assert training_of(spec, "old").optimizer.lr == 1e-6


def test_a_group_of_references_in_a_circle_ends() -> None:
    text = LOOP.replace("{type: scratch, architecture: tiny-qwen3}", "{type: shared, with: judge}")

    assert set(weights_groups(loop(text))) == {"judge", "old"}


def test_a_spec_travels_between_processes() -> None:
    spec = loop()
    assert spec.graph.learners() == ("policy",)

    assert pickle.loads(pickle.dumps(spec)) == spec
