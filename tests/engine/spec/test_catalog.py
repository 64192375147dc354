"""The catalog says everything that a form or palette needs, and starting nodes read."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema
import pytest

from coloop.diagnostics import CODES
from coloop.spec.algorithm_fields import PORTS_OF
from coloop.spec.builtins import BUILTIN_NAMES
from coloop.spec.catalog import catalog
from coloop.spec.catalog_texts import ALGORITHM_TEXTS, GROUPS, KIND_TEXTS, TASK_COLUMNS
from coloop.spec.io import from_dict
from coloop.spec.metrics import METRICS, PROBE_METRICS, metric_of, samples_of
from coloop.spec.nodes import KINDS
from coloop.spec.ports import PortType
from coloop.spec.tasks import TaskSource

CATALOG = catalog(architectures=[{"name": "tiny-qwen3"}], hardware=[{"name": "cpu"}])


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(CATALOG, allow_nan=False)) == CATALOG


def test_it_names_every_kind_port_type_reward_and_task() -> None:
    assert set(CATALOG["kinds"]) == set(KINDS) == set(KIND_TEXTS)
    assert set(CATALOG["port_types"]) == {str(port) for port in PortType}
    assert {item["name"] for item in CATALOG["rewards"]} == set(BUILTIN_NAMES)
    tasks = {
        get_args(section.model_fields["task"].annotation)[0]
        for section in get_args(get_args(TaskSource)[0])
    }
    assert {item["name"] for item in CATALOG["tasks"]} == tasks
    assert {task for task, _ in TASK_COLUMNS} == tasks


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_presents_itself(kind: str) -> None:
    entry = CATALOG["kinds"][kind]

    assert entry["title"]
    assert entry["icon"]
    assert len(entry["help"]) > 60
    assert entry["group"] in GROUPS
    assert entry["schema"]["properties"]["kind"]["const"] == kind
    assert all(port["help"] for port in (*entry["inputs"], *entry["outputs"]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_starting_node_reads_and_fits_its_schema(kind: str) -> None:
    entry = CATALOG["kinds"][kind]
    document = {
        "coloop": 1,
        "name": "x",
        "nodes": {"a": entry["template"]},
        "edges": [],
        "schedule": {"steps": 1},
    }

    assert from_dict(document).diagnostics == ()
    jsonschema.Draft202012Validator(entry["schema"]).validate(entry["template"])


def test_later_kinds_are_said_not_to_run() -> None:
    resting = {kind for kind, entry in CATALOG["kinds"].items() if not entry["runnable"]}

    assert resting == {"critic", "verifier", "tool", "search"}


def test_algorithms_stand_at_their_ports_with_formula_and_defaults() -> None:
    by_port = CATALOG["algorithms"]
    assert set(by_port) == {"rewards", "pairs", "labels", "demonstrations", "returns"}
    for entries in by_port.values():
        for entry in entries:
            assert entry["title"]
            assert entry["help"]
            assert entry["formula"]
            assert isinstance(entry["defaults"], dict)
    runnable = {e["name"] for entries in by_port.values() for e in entries if e["runnable"]}
    assert {"grpo", "dr_grpo", "rloo", "reinforce_pp_baseline", "reinforce"} <= runnable
    assert {"sft", "dpo", "spin"} <= runnable
    assert not {"ppo", "vapo", "gspo", "kto", "bradley_terry", "value"} & runnable


def test_every_algorithm_has_words() -> None:
    names = {entry["family"] for entries in CATALOG["algorithms"].values() for entry in entries}

    assert names == set(ALGORITHM_TEXTS)
    assert {port for ports in PORTS_OF.values() for port in ports} == set(CATALOG["algorithms"])


def test_fields_carry_level_hotness_and_help_into_the_schema() -> None:
    schema: dict[str, Any] = CATALOG["kinds"]["actor"]["schema"]
    rollout = schema["$defs"]["Rollout"]["properties"]

    assert rollout["temperature"]["x-hot"] is True
    assert rollout["temperature"]["x-level"] == "simple"
    assert rollout["temperature"]["x-widget"] == "slider"
    assert rollout["temperature"]["description"] == "Randomness of sampling; 0 is greedy."
    assert rollout["completions_per_prompt"]["title"] == "Completions per prompt"
    assert rollout["url"]["x-when"] == {"engine": ["remote"]}


def test_schemas_are_valid() -> None:
    schemas = [entry["schema"] for entry in CATALOG["kinds"].values()]
    schemas += [entry["schema"] for entry in (*CATALOG["rewards"], *CATALOG["tasks"])]
    schemas += list(CATALOG["schema"].values())

    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)


def test_codes_levels_and_presets_are_there() -> None:
    assert CATALOG["codes"] == CODES
    assert CATALOG["levels"] == ["simple", "advanced", "expert"]
    assert CATALOG["architectures"] == [{"name": "tiny-qwen3"}]
    assert CATALOG["hardware"] == [{"name": "cpu"}]


def test_a_caller_cannot_spoil_the_catalog_for_others() -> None:
    catalog()["kinds"]["actor"]["template"]["kind"] = "spoiled"

    assert catalog()["kinds"]["actor"]["template"]["kind"] == "actor"


def test_metrics_say_what_they_should_look_like() -> None:
    for metric in (*METRICS.values(), *PROBE_METRICS.values()):
        assert metric.title
        assert metric.help
        assert metric.expect


@pytest.mark.parametrize(
    ("name", "meant", "samples"),
    [
        ("accuracy", "accuracy", None),
        ("pass@8", "pass@k", 8),
        ("majority@64", "majority@k", 64),
        ("pass@0", None, None),
        ("pass", None, None),
        ("nothing", None, None),
    ],
)
def test_a_metric_of_a_probe_is_known_by_its_name(
    name: str, meant: str | None, samples: int | None
) -> None:
    assert metric_of(name) is (PROBE_METRICS[meant] if meant else None)
    assert samples_of(name) == samples
