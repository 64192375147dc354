"""Modes: what is offered hides nothing that loops of the mode use, and a loop shows its mode."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coloop.spec.catalog import catalog
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, parse, patch, require
from coloop.spec.modes import MODES, mode_of
from coloop.spec.nodes import KINDS, NODE_CLASSES
from coloop.spec.ports import PORTS
from coloop.spec.presets import load_new_text
from coloop.spec.text.reader import read
from coloop.validate import validate

OFFLINE = {
    *("examples/debate", "examples/self-rewarding", "examples/spin", "examples/trl-dpo"),
    *("examples/trl-sft", "loops/dpo-from-file", "loops/sft-arithmetic", "loops/spin"),
}
REWARD_MODELING = {
    *("examples/deepseek-grm", "examples/genprm", "examples/genrm", "examples/omegaprm"),
    *("examples/rm-r1", "examples/trl-reward", "loops/omegaprm", "loops/reward-model"),
    *("loops/omegaprm-gemma-2-9b-8xH100", "loops/reward-model-sums"),
    *("loops/reward-model-llama-3.1-8b-8xH100", "loops/genrm", "loops/genrm-gemma-2-9b-8xH100"),
}
ONLINE = {
    *("examples/alphaproof", "examples/constitutional", "examples/cooper", "examples/gram"),
    *("examples/online-dpo", "examples/smolsolver", "examples/think-rm"),
    *("loops/cooper", "loops/cooper-qwen2.5-1.5b-8xH100", "loops/grpo-arithmetic"),
    *("loops/ppo-four-models", "loops/prime", "loops/tango"),
}
"""Those of online in which scorers learn, or policies from more than rewards, and a few more."""

CATALOG = catalog()
OFFERED = {mode.name: mode for mode in CATALOG.modes}


EXPECTED = {
    **dict.fromkeys(ONLINE, "online"),
    **dict.fromkeys(OFFLINE, "offline"),
    **dict.fromkeys(REWARD_MODELING, "reward_modeling"),
}


@cache
def spec_of(path: Path) -> LoopSpec:
    return require(parse(path.read_text("utf-8")))


def paths_in(value: Any, prefix: str = "") -> Iterator[str]:
    """Every path of keys in a value."""
    for key, item in value.items() if isinstance(value, dict) else ():
        yield f"{prefix}{key}"
        yield from paths_in(item, f"{prefix}{key}.")


def algorithms_in(value: Any) -> Iterator[str]:
    """Names of the algorithms in what stands at a node's `algorithm`."""
    for item in value if isinstance(value, list) else [value]:
        if "name" in item:
            yield item["name"]
        else:
            for inner in item.values():
                yield from algorithms_in(inner)


# what a loop is for


def test_a_loop_shows_the_mode_that_it_names(example: Path) -> None:
    spec = spec_of(example)
    nameless = spec.model_copy(update={"mode": None})

    assert spec.mode == mode_of(spec) == mode_of(nameless)
    name = f"{example.parent.name}/{example.stem}"
    assert spec.mode == EXPECTED.get(name, spec.mode)


def test_what_a_loop_names_counts_before_what_it_shows(small: str) -> None:
    named = patch(small, [Change(op="set", path="mode", value="offline")])

    assert mode_of(require(parse(small))) == "online"
    assert mode_of(require(parse(named))) == "offline"


def test_a_loop_in_which_nothing_learns_is_online() -> None:
    document = {"coloop": 1, "name": "x", "nodes": {}, "edges": [], "schedule": {"steps": 1}}

    assert mode_of(require(from_dict(document))) == "online"


COLLECTED = """
coloop: 1
name: collected
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 8}
  writer: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}}
  kept: {kind: buffer, capacity: 64, rows_per_step: 8}
  student: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}}
edges:
  - problems.rows -> writer.prompts
  - writer.rollouts -> kept.rollouts
  - kept.rollouts -> student.demonstrations
schedule:
  phases:
    - {name: collect, steps: 4, fill: [kept]}
    - {name: study, steps: 4, learn: [student.demonstrations]}
"""


def test_texts_that_are_written_while_they_are_learned_make_a_loop_online() -> None:
    meanwhile = COLLECTED.replace("learn: [student", "fill: [kept], learn: [student")
    direct = COLLECTED.replace("kept.rollouts -> student", "writer.rollouts -> student")

    assert mode_of(require(parse(COLLECTED))) == "offline"
    assert mode_of(require(parse(meanwhile))) == "online"
    assert mode_of(require(parse(direct))) == "online"


# what a mode offers


def _document(path: Path) -> dict[str, Any]:
    data = read(path.read_text("utf-8")).data
    assert isinstance(data, dict)
    return data


def test_nothing_that_a_loop_uses_is_hidden_by_its_mode(example: Path) -> None:
    spec = spec_of(example)
    mode = OFFERED[mode_of(spec)]
    for name, node in _document(example)["nodes"].items():
        kind = mode.of_kind[node["kind"]]
        used = {edge.target.port for edge in spec.graph.edges_into(name)}

        assert node["kind"] in mode.kinds
        assert not used & set(kind.ports), name
        assert not set(paths_in(node)) & set(kind.fields), name
        assert not set(algorithms_in(node.get("algorithm", []))) & set(kind.algorithms), name


def test_modes_have_a_title_and_one_sentence_each() -> None:
    assert [mode.name for mode in CATALOG.modes] == ["online", "offline", "reward_modeling"]
    for mode in CATALOG.modes:
        assert mode.title
        assert mode.help.endswith(".")
        assert mode.help.count(". ") == 0


def test_online_offers_every_kind_and_the_others_what_they_need() -> None:
    hidden = {name: set(KINDS) - set(mode.kinds) for name, mode in MODES.items()}

    assert hidden == {
        "online": set(),
        "offline": {"critic", "tool", "search", "environment"},
        "reward_modeling": {"critic", "environment"},
    }


@pytest.mark.parametrize(
    ("mode", "kind", "offered", "hidden"),
    [
        ("online", "actor", {"grpo", "ppo", "verl-dapo", "sft", "dpo"}, {"kto", "spin"}),
        ("offline", "actor", {"sft", "dpo", "ipo", "kto", "orpo", "simpo"}, {"grpo", "trl-ppo"}),
        ("offline", "reward", set(), {"bradley_terry", "regression"}),
        ("reward_modeling", "actor", {"sft"}, {"grpo", "dpo"}),
        ("reward_modeling", "reward", {"bradley_terry", "regression", "outcome"}, set()),
        ("reward_modeling", "verifier", {"label_ce", "implicit_prm", "grpo"}, set()),
    ],
)
def test_algorithms_are_those_of_the_ports_that_are_offered(
    mode: str, kind: str, offered: set[str], hidden: set[str]
) -> None:
    found = set(OFFERED[mode].of_kind[kind].algorithms)

    assert not found & offered
    assert found >= hidden


def test_what_is_hidden_is_there() -> None:
    for mode in MODES.values():
        for kind, hidden in ((kind, mode.of(kind)) for kind in KINDS):
            assert set(hidden.ports) <= set(PORTS[kind].inputs)
            assert set(hidden.outputs) <= set(PORTS[kind].outputs)
            schema = CATALOG.kinds[kind].json_schema
            for path in mode.hidden_fields(kind):
                top, _, inner = path.partition(".")
                assert top in schema["properties"]
                assert not inner or any(
                    inner in part.get("properties", {}) for part in schema["$defs"].values()
                )


# what a node begins as


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", list(MODES))
def test_a_node_begins_with_what_its_mode_offers(mode: str, kind: str) -> None:
    begun = OFFERED[mode].of_kind[kind]
    document = {
        "coloop": 1,
        "name": "x",
        "nodes": {"a": begun.template},
        "edges": [],
        "schedule": {"steps": 1},
    }

    assert from_dict(document).diagnostics == ()
    assert set(begun.template) <= set(NODE_CLASSES[kind].model_fields)
    if kind in OFFERED[mode].kinds:
        assert not set(paths_in(begun.template)) & set(begun.fields)
        assert not set(algorithms_in(begun.template.get("algorithm", []))) & set(begun.algorithms)


def test_what_an_actor_or_a_reward_begins_with() -> None:
    def learns(mode: str, kind: str) -> Any:
        return OFFERED[mode].of_kind[kind].template.get("algorithm")

    assert learns("online", "actor") == {"rewards": {"name": "grpo"}}
    assert learns("offline", "actor") == {"pairs": {"name": "dpo"}}
    assert learns("reward_modeling", "reward") == {"pairs": {"name": "bradley_terry"}}
    assert learns("online", "reward") is None


# what a new loop begins as


@pytest.mark.parametrize("mode", list(MODES))
def test_a_new_loop_says_what_it_is_and_is_right(mode: str) -> None:
    parsed = parse(load_new_text(mode))
    spec = require(parsed)
    nameless = require(from_dict({**(parsed.document or {}), "mode": None}))

    assert (spec.mode, mode_of(nameless)) == (mode, mode)
    assert [*parsed.diagnostics, *validate(spec).diagnostics] == []
