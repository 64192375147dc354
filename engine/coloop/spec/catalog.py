"""The catalog and the JSON Schema: all that forms, palettes and documents need to know.

They are derived: ports from the port table, schemas and help from the sections, words and looks
from `catalog_texts`, what is offered for what from `modes`. A new kind, reward, task or algorithm
appears here without a change of this module or of the page.
"""

import copy
import inspect
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, get_args

from coloop.spec.algorithm import (
    PORTS_OF,
    DistillationAlgorithm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    deviation_of,
)
from coloop.spec.algorithm_reads import READ_WHERE
from coloop.spec.algorithms.registry import (
    ALGORITHMS,
    DISTILLATION_BASE,
    FRAMEWORKS,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
    RUNNABLE_ALGORITHMS,
    family_of,
    help_of,
    texts_of,
    title_of,
)
from coloop.spec.base import LEVELS, Section
from coloop.spec.builtins import BUILTINS, SCORE_TO_SCORE
from coloop.spec.catalog_texts import CATALOG, KIND_TEXTS, PORT_TEXTS
from coloop.spec.catalog_types import (
    Catalog,
    ChartInfo,
    FormSectionInfo,
    GroupInfo,
    InputInfo,
    PresetInfo,
    RemedyInfo,
)
from coloop.spec.diagnostics import CODES, UNFINISHED
from coloop.spec.documents import VERSION
from coloop.spec.fields import field_type
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.metrics import CHART_ORDER, METRICS, PROBE_METRICS
from coloop.spec.modes import MODES, Mode, begins_as
from coloop.spec.nodes import NODE_CLASSES, RUNNABLE_KINDS
from coloop.spec.placement import Hardware, Run
from coloop.spec.plugins import only_word
from coloop.spec.ports import HANDLES, PORTS, PortType, accepts
from coloop.spec.schedule import Schedule
from coloop.spec.tasks import TASK_COLUMNS, TaskSource

_TASKS: dict[str, type[Section]] = {
    only_word(section, "task"): section for section in get_args(get_args(TaskSource)[0])
}

GROUPS: dict[str, GroupInfo] = {
    name: GroupInfo(name=name, title=title, color=f"--group-{name}")
    for name, title in CATALOG["groups"].items()
}
"""Sections of the palette, in order."""
FORM_SECTIONS = tuple(FormSectionInfo(**section) for section in CATALOG["form_sections"])
"""Parts of a form, in order."""
_REMEDY = {"when": "stage", "verbs": [], "amount": 0, "only": None, "saves": 0.0, "metric": None}
REMEDIES = tuple(RemedyInfo(**{**_REMEDY, "reach": 0.0, **texts}) for texts in CATALOG["remedies"])
"""What shortens a step where a run waits for itself."""
CHARTS = tuple(ChartInfo(**{"ports": [], **texts}) for texts in CATALOG["charts"])
"""The charts that a run opens with."""


def catalog(
    *, architectures: Iterable[PresetInfo] = (), hardware: Iterable[PresetInfo] = ()
) -> Catalog:
    """The catalog; the caller provides presets of models and hardware."""
    return Catalog.model_validate(
        {
            **copy.deepcopy(_fixed()),
            "architectures": [preset.model_dump() for preset in architectures],
            "hardware": [preset.model_dump() for preset in hardware],
        }
    )


@lru_cache(maxsize=1)
def _fixed() -> dict[str, Any]:
    return {
        "version": VERSION,
        "levels": list(LEVELS),
        "groups": list(GROUPS.values()),
        "form_sections": list(FORM_SECTIONS),
        "kinds": {kind: _kind(kind) for kind in KIND_TEXTS},
        "modes": [_mode(name, mode) for name, mode in MODES.items()],
        "port_types": {
            str(port): {
                **PORT_TEXTS[str(port)],
                "handle": port in HANDLES,
                "accepts": [str(source) for source in PortType if accepts(port, source)],
            }
            for port in PortType
        },
        "algorithms": _algorithms(),
        "rewards": [_builtin(name, section) for name, section in BUILTINS.items()],
        "tasks": [_task(name, section) for name, section in _TASKS.items()],
        "metrics": METRICS,
        "probe_metrics": PROBE_METRICS,
        "chart_order": list(CHART_ORDER),
        "remedies": list(REMEDIES),
        "charts": list(CHARTS),
        "schema": {
            "loop": _schema_beside_parts(),
            "edge": section_schema(Edge),
            "schedule": section_schema(Schedule),
            "hardware": section_schema(Hardware),
            "run": section_schema(Run),
        },
        "codes": dict(CODES),
        "unfinished": [code for code in CODES if code in UNFINISHED],
    }


LEARNS_BY = {
    "algorithm": "algorithm",
    "names": ["algorithm.name", "algorithm.*.name", "algorithm.*.*.name"],
    "rate": "training.optimizer.lr",
    "alike": ["model", "rollout.max_new_tokens", "training.optimizer"],
}
"""Paths at which kinds with weights set how they learn."""


def _schema_beside_parts() -> dict[str, Any]:
    """Schema of the loop's own fields, without parts that are listed separately."""
    schema = section_schema(LoopSpec)
    schema["properties"] = {name: schema["properties"][name] for name in ("mode", "description")}
    return {name: schema[name] for name in ("type", "title", "description", "properties")}


def _kind(kind: str) -> dict[str, Any]:
    about = KIND_TEXTS[kind]
    return {
        **_facts(about, "title", "help", "group", "icon", "summary"),
        **_facts(about, "template", "begins_with"),
        "kind": kind,
        "color": GROUPS[about.group].color,
        "synonyms": _synonyms(kind),
        "card_fields": [{"label": label, "paths": paths} for label, paths in about.shown.items()],
        "learning": LEARNS_BY if "algorithm" in NODE_CLASSES[kind].model_fields else None,
        "stages": list(about.stages),
        "inputs": [
            {"name": name, **_facts(port, *(InputInfo.model_fields.keys() - {"name"}))}
            for name, port in about.inputs.items()
        ],
        "outputs": [
            {"name": name, **_facts(port, "type", "when", "help")}
            for name, port in about.outputs.items()
        ],
        "schema": _schema(kind),
        "runnable": kind in RUNNABLE_KINDS,
    }


def _facts(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _mode(name: str, mode: Mode) -> dict[str, Any]:
    return {
        **_facts(mode, "title", "help", "kinds"),
        "name": name,
        "of_kind": {kind: _kind_in(mode, kind) for kind in KIND_TEXTS},
    }


def _kind_in(mode: Mode, kind: str) -> dict[str, Any]:
    return {
        "ports": [port for port in PORTS[kind].inputs if mode.hides_port(kind, port)],
        "outputs": mode.of(kind).outputs,
        "fields": mode.hidden_fields(kind),
        "algorithms": [
            name
            for section in _learns(kind)
            for name in _names(section)
            if family_of(name) in mode.algorithms or _serves_only_hidden(mode, kind, section)
        ],
        "template": begins_as(mode, kind),
    }


def _serves_only_hidden(mode: Mode, kind: str, section: type[Section]) -> bool:
    """Whether none of the kind's offered teaching ports takes this algorithm."""
    ports = set(PORTS_OF[section]) & set(PORTS[kind].teaching)
    return all(mode.hides_port(kind, port) for port in ports)


@lru_cache
def _schema(kind: str) -> dict[str, Any]:
    return section_schema(NODE_CLASSES[kind])


def _learns(kind: str) -> list[type[Section]]:
    parts = _schema(kind).get("$defs", {})
    return [section for section in PORTS_OF if section.__name__ in parts]


def _synonyms(kind: str) -> list[str]:
    words = KIND_TEXTS[kind].synonyms.split(", ")
    learns = _learns(kind)
    words += [name for section in learns for name in _names(section) if name == family_of(name)]
    if kind == "reward":
        words += BUILTINS
    if kind == "dataset":
        words += _TASKS
    return list(dict.fromkeys(words))


def _algorithms() -> dict[str, list[dict[str, Any]]]:
    by_port: dict[str, list[dict[str, Any]]] = {}
    for section, ports in PORTS_OF.items():
        for port in ports:
            entries = by_port.setdefault(port, [])
            entries += [_algorithm(name, section) for name in _names(section)]
    return by_port


def _names(section: type[Section]) -> tuple[str, ...]:
    return get_args(section.model_fields["name"].annotation)


def _algorithm(name: str, section: type[Section]) -> dict[str, Any]:
    family, title = family_of(name), title_of(name)
    framework = FRAMEWORKS.get(ALGORITHMS[name].framework or "")
    return {
        "name": name,
        "family": family,
        "framework": framework,
        "title": f"{title} as in {framework}" if framework else title,
        "help": help_of(name),
        "formula": texts_of(name).formula,
        "defaults": _defaults(name, section),
        "runnable": family_of(name) in RUNNABLE_ALGORITHMS,
    }


def _defaults(name: str, section: type[Section]) -> dict[str, Any]:
    if section is RewardsAlgorithm:
        preset = {**REWARDS_BASE, **PRESETS[name]}
        preset["deviation"] = preset["deviation"] or deviation_of(preset["advantage"])
        return {field: value for field, value in preset.items() if field in section.model_fields}
    if section is PreferenceAlgorithm:
        return {**PREFERENCE_BASE, **PRESETS[name]}
    if section is DistillationAlgorithm:
        return {**DISTILLATION_BASE, **PRESETS[name]}
    return {
        info.alias or field: info.get_default()
        for field, info in section.model_fields.items()
        if not info.is_required()
    }


def _builtin(name: str, section: type[Section]) -> dict[str, Any]:
    return {
        "name": name,
        "help": inspect.getdoc(section) or "",
        "from_scores": name in SCORE_TO_SCORE,
        "schema": section_schema(section),
    }


def _task(name: str, section: type[Section]) -> dict[str, Any]:
    return {
        "name": name,
        "help": inspect.getdoc(section) or "",
        "schema": section_schema(section),
        "columns": list(TASK_COLUMNS[(name, None)]),
        "parts": {
            part: list(columns)
            for (task, part), columns in TASK_COLUMNS.items()
            if task == name and part is not None
        },
    }


# JSON Schema, for forms, editors and `coloop schema`.
#
# It says what fields, types and bounds there are; conditions between fields stand as `x-when` and
# `x-needed`, and by what a field is read as `x-read-when`; forms use them, JSON Schema does not.

EDGE_PATTERN = r"^\s*[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\s*->\s*[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\s*$"


def json_schema() -> dict[str, Any]:
    return copy.deepcopy(_loop_schema())


@lru_cache(maxsize=1)
def _loop_schema() -> dict[str, Any]:
    schema = section_schema(LoopSpec)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = f"coloop loop, version {VERSION}"
    edges = schema["properties"]["edges"]
    edges["items"] = {"anyOf": [{"type": "string", "pattern": EDGE_PATTERN}, edges["items"]]}
    return schema


def section_schema(section: type[Section]) -> dict[str, Any]:
    """The schema of one section, what it refers to under `$defs`."""
    schema = section.model_json_schema(by_alias=True, mode="validation")
    _keep_references(schema)
    _mark_readers(schema.get("$defs", {}))
    return schema


def _mark_readers(parts: dict[str, Any]) -> None:
    """Mark each field with the siblings and values under which it is read; none: always read."""
    for section, fields in READ_WHERE.items():
        for field, readers in fields.items():
            if section.__name__ not in parts:
                continue
            place, _, name = field.rpartition(".")
            holder = parts[_section_at(section, place)] if place else parts[section.__name__]
            holder["properties"][name]["x-read-when"] = {
                reader.by.removeprefix(f"{place}."): sorted(reader.values, key=str)
                for reader in readers
            }


def _section_at(section: type[Section], field: str) -> str:
    found = field_type(section.model_fields[field]).section
    assert found is not None
    return found.__name__


def _keep_references(part: Any) -> None:
    """A discriminator maps to references only; pydantic also maps to unions within a union."""
    if isinstance(part, list):
        for item in part:
            _keep_references(item)
    elif isinstance(part, dict):
        union = part.get("discriminator")
        if isinstance(union, dict) and isinstance(union.get("mapping"), dict):
            mapping = union["mapping"]
            union["mapping"] = {tag: to for tag, to in mapping.items() if isinstance(to, str)}
        for item in part.values():
            _keep_references(item)
