"""The catalog says everything that a form or palette needs, and starting nodes read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import jsonschema
import pytest

from coloop.explain.algorithm import explain_algorithm
from coloop.spec.algorithm import PORTS_OF
from coloop.spec.algorithm_reads import READ_WHERE
from coloop.spec.algorithms.registry import ALGORITHMS
from coloop.spec.base import NODE_PATTERN
from coloop.spec.builtins import BUILTIN_NAMES
from coloop.spec.catalog import GROUPS, REMEDIES, _algorithms, catalog
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.catalog_types import PresetInfo, RemedyInfo
from coloop.spec.diagnostics import CODES
from coloop.spec.io import from_dict
from coloop.spec.metrics import METRICS, PROBE_METRICS, metric_of, samples_of
from coloop.spec.nodes import KINDS, NODE_CLASSES
from coloop.spec.ports import PortType
from coloop.spec.solvable import SECTIONS, SOLVABLE
from coloop.spec.tasks import TASK_COLUMNS, TaskSource

TINY = PresetInfo(name="tiny-qwen3", title="Tiny", description="A few layers.")
CPU = PresetInfo(name="cpu", title="CPU", description="No GPU.")


@cache
def told() -> dict[str, Any]:
    """The whole, as the service sends it."""
    return catalog(architectures=[TINY], hardware=[CPU]).model_dump(mode="json")


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(told(), allow_nan=False)) == told()


def test_it_names_every_kind_port_type_reward_and_task() -> None:
    assert set(told()["kinds"]) == set(KINDS) == set(KIND_TEXTS)
    assert set(told()["port_types"]) == {str(port) for port in PortType}
    assert {item["name"] for item in told()["rewards"]} == set(BUILTIN_NAMES)
    tasks = {
        get_args(section.model_fields["task"].annotation)[0]
        for section in get_args(get_args(TaskSource)[0])
    }
    assert {item["name"] for item in told()["tasks"]} == tasks
    assert {task for task, _ in TASK_COLUMNS} == tasks


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_presents_itself(kind: str) -> None:
    entry = told()["kinds"][kind]

    assert entry["title"]
    assert entry["icon"]
    assert len(entry["help"]) > 60
    assert entry["group"] in GROUPS
    assert entry["schema"]["properties"]["kind"]["const"] == kind
    assert all(port["help"] for port in (*entry["inputs"], *entry["outputs"]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_starting_node_reads_and_fits_its_schema(kind: str) -> None:
    entry = told()["kinds"][kind]
    document = {
        "coloop": 1,
        "name": "x",
        "nodes": {"a": entry["template"]},
        "edges": [],
        "schedule": {"steps": 1},
    }

    assert from_dict(document).diagnostics == ()
    jsonschema.Draft202012Validator(entry["schema"]).validate(entry["template"])


BEGUN = [
    pytest.param(kind, path, value, id=f"{kind}-{path}-{value}")
    for kind in KINDS
    for path, values in NODE_CLASSES[kind].about.begins_with.items()
    for value in values
]


@pytest.mark.parametrize(("kind", "path", "value"), BEGUN)
def test_a_node_reads_with_what_it_begins_with_at_a_value(kind: str, path: str, value: str) -> None:
    entry = told()["kinds"][kind]
    setting, *inner = path.split(".")
    chosen = {inner[0]: value} if inner else value
    node = {**entry["template"], **entry["begins_with"][path][value], setting: chosen}
    document = {
        "coloop": 1,
        "name": "x",
        "nodes": {"a": node},
        "edges": [],
        "schedule": {"steps": 1},
    }

    assert from_dict(document).diagnostics == ()
    jsonschema.Draft202012Validator(entry["schema"]).validate(node)


def test_every_kind_is_said_to_run() -> None:
    resting = {kind for kind, entry in told()["kinds"].items() if not entry["runnable"]}

    assert resting == set()


def test_algorithms_stand_at_their_ports_with_formula_and_defaults() -> None:
    by_port = told()["algorithms"]
    assert set(by_port) == {
        *("rewards", "pairs", "labels", "demonstrations", "returns", "reference")
    }
    for entries in by_port.values():
        for entry in entries:
            assert entry["title"]
            assert entry["help"]
            assert entry["formula"]
            assert isinstance(entry["defaults"], dict)
    runnable = {e["name"] for entries in by_port.values() for e in entries if e["runnable"]}
    of_policies = {e["name"] for port in ("rewards", "demonstrations") for e in by_port[port]}
    assert of_policies <= runnable
    assert {"dpo", "ipo", "kto", "orpo", "simpo", "spin", "bradley_terry"} <= runnable
    assert {"regression", "outcome", "implicit_prm", "value"} <= runnable


def test_every_algorithm_is_in_the_catalog() -> None:
    names = {entry["name"] for entries in told()["algorithms"].values() for entry in entries}

    assert names == set(ALGORITHMS)
    assert {port for ports in PORTS_OF.values() for port in ports} == set(told()["algorithms"])


def test_an_algorithm_without_words_is_there_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = replace(ALGORITHMS["grpo"], title="", help="", formula="", paper="")
    monkeypatch.setitem(ALGORITHMS, "grpo", bare)

    entries = {entry["name"]: entry for entry in _algorithms()["rewards"]}

    assert (entries["grpo"]["title"], entries["grpo"]["help"]) == ("grpo", "")
    assert entries["trl-grpo"]["title"] == "grpo as in TRL"
    assert entries["rloo"]["title"] == "RLOO"
    assert explain_algorithm({"name": "grpo"}).title == "grpo"


def test_fields_carry_level_hotness_and_help_into_the_schema() -> None:
    schema: dict[str, Any] = told()["kinds"]["actor"]["schema"]
    rollout = schema["$defs"]["Rollout"]["properties"]

    assert rollout["temperature"]["x-hot"] is True
    assert rollout["temperature"]["x-level"] == "simple"
    assert rollout["temperature"]["x-widget"] == "slider"
    assert rollout["temperature"]["description"] == "Randomness of sampling; 0 is greedy."
    assert rollout["completions_per_prompt"]["title"] == "Completions per prompt"
    assert rollout["url"]["x-when"] == {"engine": ["remote"]}


def test_schemas_are_valid() -> None:
    schemas = [entry["schema"] for entry in told()["kinds"].values()]
    schemas += [entry["schema"] for entry in (*told()["rewards"], *told()["tasks"])]
    schemas += list(told()["schema"].values())

    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)


def test_codes_levels_and_presets_are_there() -> None:
    assert told()["codes"] == CODES
    assert told()["levels"] == ["simple", "advanced", "expert"]
    assert told()["architectures"] == [TINY.model_dump()]
    assert told()["hardware"] == [CPU.model_dump()]


def test_a_caller_cannot_spoil_the_catalog_for_others() -> None:
    catalog().kinds["actor"].template["kind"] = "spoiled"

    assert catalog().kinds["actor"].template["kind"] == "actor"


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("probe", "evaluate"),
        ("held-out", "evaluate"),
        ("grpo", "actor"),
        ("dpo", "actor"),
        ("judge", "verifier"),
        ("judge", "reward"),
        ("kl", "reference"),
        ("exact_match", "reward"),
        ("countdown", "dataset"),
        ("preference", "pairs"),
        ("value", "critic"),
    ],
)
def test_a_kind_is_found_by_other_words_for_it(word: str, kind: str) -> None:
    assert word in told()["kinds"][kind]["synonyms"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_sums_up_a_kind_are_fields_of_it(kind: str) -> None:
    entry = told()["kinds"][kind]

    assert entry["color"].startswith("--group-")
    assert entry["summary"]
    for path in entry["summary"]:
        assert leads_to_a_field(entry["schema"], path.split(".")), path


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_card_shows_are_fields_of_its_kind(kind: str) -> None:
    entry = told()["kinds"][kind]

    assert 1 <= len(entry["card_fields"]) <= 3
    for value in entry["card_fields"]:
        assert len(value["label"]) <= 12
        for path in value["paths"]:
            assert leads_to_a_field(entry["schema"], path.split(".")), path


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_with_teaching_ports_says_where_it_says_how_it_learns(kind: str) -> None:
    entry = told()["kinds"][kind]

    learning = entry["learning"]
    assert (learning is not None) == any(port["teaching"] for port in entry["inputs"])
    for path in [learning["algorithm"], *learning["names"], learning["rate"]] if learning else []:
        assert leads_to_a_field(entry["schema"], path.split(".")), path


def leads_to_a_field(schema: dict[str, Any], path: list[str]) -> bool:
    """Whether some value of the schema has this path; `*` is any key or index."""

    def walk(part: Any, rest: list[str]) -> bool:
        if not isinstance(part, dict):
            return False
        if "$ref" in part:
            return walk(schema["$defs"][part["$ref"].rpartition("/")[2]], rest)
        if any(walk(one, rest) for union in ("anyOf", "oneOf") for one in part.get(union, ())):
            return True
        if not rest:
            return part.get("type") != "null"
        name, *after = rest
        fields = part.get("properties", {})
        inner = [*fields.values(), part.get("items")] if name == "*" else [fields.get(name)]
        return any(walk(one, after) for one in inner)

    return walk(schema, path)


def fields_of(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property of a schema and of what it refers to."""
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            if isinstance(field, dict) and "x-level" in field:
                yield name, field
        for part in schema.values():
            yield from fields_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields_of(part)


def test_every_text_that_mentions_nodes_says_how() -> None:
    silent = []
    schemas = [entry["schema"] for entry in told()["kinds"].values()]
    for name, field in fields_of([*schemas, *told()["schema"].values()]):
        written = json.dumps({key: field[key] for key in field if not key.startswith("x-")})
        mentions = NODE_PATTERN.strip("^$") in written
        if mentions and not {"x-reference", "x-key-reference"} & set(field):
            silent.append(name)

    assert set(silent) <= {"id", "node"}, "an edge's own name, and a node of another run"


@pytest.mark.parametrize(
    ("section", "name", "facts"),
    [
        ("schedule", "metric", {"x-choices": "metrics", "x-reference": "metric"}),
        ("schedule", "learn", {"x-choices": "ports", "x-reference": "node"}),
        ("schedule", "set", {"x-key-reference": "path"}),
        ("schedule", "path", {"x-reference": "path"}),
        ("schedule", "until", {"x-reference": "node"}),
        ("run", "best", {"x-choices": "metrics", "x-reference": "metric"}),
        ("hardware", "preset", {"x-choices": "hardware"}),
        ("edge", "from", {"x-choices": "ports", "x-reference": "node"}),
    ],
)
def test_a_field_says_what_it_is_chosen_from_and_how_it_mentions_nodes(
    section: str, name: str, facts: dict[str, str]
) -> None:
    found = [field for own, field in fields_of(told()["schema"][section]) if own == name]

    assert any(facts.items() <= field.items() for field in found)


def test_texts_in_jinja_say_that_they_mention_nodes() -> None:
    parts = told()["kinds"]["verifier"]["schema"]["$defs"]
    template = told()["kinds"]["template"]["schema"]["properties"]

    assert parts["Message"]["properties"]["content"]["x-reference"] == "template"
    assert parts["PromptTemplate"]["properties"]["text"]["x-reference"] == "template"
    for name in ("text", "target", "columns"):
        assert template[name]["x-reference"] == "template"
    assert "x-reference" not in template["note"]


def test_code_begins_with_what_can_run() -> None:
    starters = {
        field["x-starter"]
        for kind in KINDS
        for _, field in fields_of(told()["kinds"][kind]["schema"])
        if field.get("x-widget") == "code"
    }
    found: dict[str, Any] = {}
    for text in starters:
        exec(text, found)

    scores = found["reward"](prompts=["a", "a"], completions=["b", "bb"], answer=["b", "b"])
    assert all(isinstance(score, float) for score in scores)
    assert scores[0] != scores[1], "something can be learned from it"
    assert found["keep"](prompt="a", answer="b") is True
    assert found["write"](prompt="a", answer="b") == {"prompt": "a"}
    environment = found["Environment"]()
    assert environment.reset({"prompt": "a"}) == "a"
    assert {"observation", "reward", "done"} <= set(environment.step("b"))


def test_the_first_charts_are_of_metrics_that_are_known() -> None:
    assert set(told()["chart_order"]) <= {*METRICS, *PROBE_METRICS}
    for chart in told()["charts"]:
        assert set(chart["metrics"]) <= {*METRICS, *PROBE_METRICS}, chart["name"]


@pytest.mark.parametrize("remedy", REMEDIES, ids=lambda one: f"{one.bound}, {one.label}")
def test_a_remedy_names_a_field_of_kinds_that_have_its_stage(remedy: RemedyInfo) -> None:
    assert f"`{remedy.path.removeprefix('nodes.{node}.')}" in remedy.reason
    if remedy.when == "pools_wait":
        assert leads_to_a_field(told()["schema"]["schedule"], remedy.path.split(".")[1:])
        return
    path = remedy.path.split(".")[2:]
    found = [kind for kind in told()["kinds"].values() if leads_to_a_field(kind["schema"], path)]
    assert remedy.metric is None or remedy.metric in METRICS
    assert set(remedy.verbs) & {verb for kind in found for verb in kind["stages"]}


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


def _titles(part: Any) -> Iterator[str]:
    """Titles of schemas, of what they are made of too."""
    if isinstance(part, dict):
        if isinstance(part.get("title"), str) and not {"kind", "help"} & part.keys():
            yield part["title"]
        for item in part.values():
            yield from _titles(item)
    elif isinstance(part, list):
        for item in part:
            yield from _titles(item)


def test_titles_are_words_and_no_names_of_classes() -> None:
    schemas = [told()["schema"], *(kind["schema"] for kind in told()["kinds"].values())]
    titles = {title for schema in schemas for title in _titles(schema)}

    assert [one for one in titles if re.fullmatch(r"([A-Z][a-z]+){2,}|\w*_\w*", one)] == []


def test_every_shape_of_a_union_has_a_title() -> None:
    """Those that no tag tells apart: a mapping by one form or by another."""
    parts = told()["kinds"]["actor"]["schema"]
    shapes = parts["properties"]["algorithm"]["anyOf"][0]["oneOf"]

    titles = [one.get("title") or _title_of(one, parts) for one in shapes]
    assert titles == ["one algorithm", "one for each port"]


def _title_of(part: dict[str, Any], schema: dict[str, Any]) -> str:
    title: str = schema["$defs"][part["$ref"].split("/")[-1]]["title"]
    return title


def test_a_form_has_every_part_that_a_field_names() -> None:
    parts = {part["name"] for part in told()["form_sections"]}
    named = set(re.findall(r'"x-section": "(\w+)"', json.dumps(told())))

    assert named == parts


def test_a_field_says_by_what_it_is_read() -> None:
    parts = told()["kinds"]["actor"]["schema"]["$defs"]
    marked = {
        (part, field): schema["x-read-when"]
        for part, section in parts.items()
        for field, schema in section.get("properties", {}).items()
        if "x-read-when" in schema
    }

    assert marked["RewardsAlgorithm", "tau_positive"] == {"loss": ["sapo"]}
    assert marked["Kl", "horizon"] == {"target": []}
    assert marked["RewardsAlgorithm", "gae_lambda"] == {
        "advantage": ["gae"],
        "length_alpha": [None],
    }
    inside = {"correction": "Correction", "kl": "Kl"}
    read = {
        (inside[first], rest) if rest else (section.__name__, first)
        for section, fields in READ_WHERE.items()
        if section.__name__ in parts
        for first, _, rest in (field.partition(".") for field in fields)
    }
    assert marked.keys() == read


def test_no_two_settings_that_fitting_may_change_have_the_same_title() -> None:
    titles = [
        SECTIONS[section].model_fields[name].title or name
        for section, names in SOLVABLE.items()
        for name in names
    ]

    assert len(titles) > 8
    assert len(set(titles)) == len(titles), sorted(titles)
