"""Which score head each node of a group has, where it begins, and which one it follows."""

import pytest
import torch
from tests.engine.training.conftest import tiny_model

from coloop.errors import ModelUnavailable
from coloop.models.heads import score_head, score_heads
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.io import parse
from coloop.workers.initial_weights import Names, renamed, taken_heads, with_heads, without_head

LOOP = """
coloop: 1
name: heads
nodes:
  actor: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}}
  critic: {kind: critic, model: {type: shared, with: actor}}
  judge:
    kind: reward
    source: {type: model}
    model: {type: shared, with: actor}
    read: {labels: [a, b, c]}
  alone: {kind: critic, model: {type: copy, of: actor}}
  later: {kind: critic, model: {type: snapshot, of: critic}}
  twice: {kind: critic, model: {type: shared, with: later}}
  chosen:
    kind: reward
    source: {type: model}
    model: {type: copy, of: judge}
    read: {labels: [a, b, c]}
schedule: {steps: 1}
"""
OWN = {"critic": "score.critic_head.weight", "judge": "score.judge_head.weight"}


@pytest.fixture(scope="module")
def spec() -> LoopSpec:
    found = parse(LOOP).spec
    assert found is not None
    return found


def members(spec: LoopSpec, group: str) -> tuple[str, ...]:
    return weights_groups(spec)[group].members


def test_a_node_begins_with_the_head_of_the_node_that_it_names(spec: LoopSpec) -> None:
    whole = with_heads(tiny_model(), spec, "actor", members(spec, "actor"), seed=0)
    heads = {node: head.weight.clone() for node, head in score_heads(whole).items()}
    assert heads.keys() == OWN.keys()

    for group, of in (("later", "critic"), ("chosen", "judge")):
        source = with_heads(tiny_model(), spec, "actor", members(spec, "actor"), seed=0)
        assert without_head(source, spec, group, members(spec, group)) == ""
        made = with_heads(source, spec, group, members(spec, group), seed=0)
        assert all(head.weight.equal(heads[of]) for head in score_heads(made).values())
    source = with_heads(tiny_model(), spec, "actor", members(spec, "actor"), seed=0)
    assert without_head(source, spec, "alone", ("alone",)) == "alone"  # nobody says which of both
    new = score_head(with_heads(source, spec, "alone", ("alone",), seed=0))
    assert new is not None
    assert not new.weight.equal(heads["critic"])


def test_a_group_follows_the_head_of_the_node_that_it_names(spec: LoopSpec) -> None:
    theirs = members(spec, "actor")

    def names(group: str) -> Names | None:
        return taken_heads(spec, group, members(spec, group), theirs)

    assert names("later") == {OWN["critic"]: ("score.later_head.weight", "score.twice_head.weight")}
    assert names("chosen") == {OWN["judge"]: ("score.weight",)}
    assert names("alone") == {}
    assert taken_heads(spec, "alone", ("alone",), ("chosen",)) is None  # one each, of one name
    weights = [("norm.weight", torch.ones(2)), (OWN["critic"], torch.zeros(1, 2))]
    assert [*renamed(weights, None)] == weights
    taken = renamed(weights, names("later"))
    assert [name for name, _ in taken] == [
        "norm.weight",
        *(f"score.{one}_head.weight" for one in ("later", "twice")),
    ]
    assert [name for name, _ in renamed(weights, names("alone"))] == ["norm.weight"]


def test_of_several_heads_in_a_folder_each_node_takes_that_of_its_name(spec: LoopSpec) -> None:
    several = with_heads(tiny_model(), spec, "actor", members(spec, "actor"), seed=0)
    kept = score_heads(several)["judge"].weight.clone()

    again = with_heads(several, spec, "actor", members(spec, "actor"), seed=9)

    assert score_heads(again)["judge"].weight.equal(kept)
    other = parse(LOOP.replace("judge", "grader")).spec
    assert other is not None
    with pytest.raises(ModelUnavailable, match="grader: its weights have the score heads of "):
        with_heads(several, other, "actor", members(other, "actor"), seed=0)


def test_a_node_beside_those_that_find_their_heads_in_a_folder_begins_with_a_new_one(
    spec: LoopSpec,
) -> None:
    several = with_heads(tiny_model(), spec, "actor", members(spec, "actor"), seed=0)
    kept = {name: head.weight.clone() for name, head in score_heads(several).items()}
    wider = parse(
        LOOP.replace(
            "nodes:\n",
            "nodes:\n  further: {kind: critic, model: {type: shared, with: "
            "actor}, algorithm: {returns: {name: value}}}\n",
            1,
        )
    ).spec
    assert wider is not None

    heads = score_heads(with_heads(several, wider, "actor", members(wider, "actor"), seed=9))

    assert "further" in heads
    assert all(heads[name].weight.equal(weight) for name, weight in kept.items())
