"""The catalog: everything a form, a palette or a document needs to know about the language.

It is derived: ports from the port table, schemas and help from the sections, words and looks from
`catalog_texts`, what is offered for what from `modes`, what runs from `runnable`. A new kind,
reward, task or algorithm appears here without a change of this module or of the page.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, get_args

from coloop.spec.algorithm import deviation_of
from coloop.spec.algorithm_fields import (
    PORTS_OF,
    PreferenceAlgorithm,
    RewardsAlgorithm,
)
from coloop.spec.algorithms.registry import (
    ALGORITHMS,
    FRAMEWORKS,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
    family_of,
    title_of,
)
from coloop.spec.base import LEVELS, Section
from coloop.spec.builtins import BUILTINS, SCORE_TO_SCORE
from coloop.spec.catalog_texts import (
    FORM_SECTIONS,
    GROUPS,
    KIND_TEXTS,
    PORT_TEXTS,
)
from coloop.spec.catalog_types import Catalog, PresetInfo
from coloop.spec.diagnostics import CODES, UNFINISHED
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.metrics import CHART_ORDER, METRICS, PROBE_METRICS
from coloop.spec.migrate import VERSION
from coloop.spec.modes import MODES, Mode, begins_as
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.placement import Hardware, Run
from coloop.spec.ports import HANDLES, PORTS, InPort, PortType, When, accepts
from coloop.spec.remedies import REMEDIES
from coloop.spec.runnable import RUNNABLE_KINDS, is_runnable_algorithm
from coloop.spec.schedule import Schedule
from coloop.spec.schema import section_schema
from coloop.spec.tasks import TASK_COLUMNS, TaskSource

_TASKS: tuple[type[Section], ...] = get_args(get_args(TaskSource)[0])


def catalog(
    *, architectures: Iterable[PresetInfo] = (), hardware: Iterable[PresetInfo] = ()
) -> Catalog:
    """The catalog; presets of models and hardware are handed in by who knows them."""
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
        "groups": [{"name": name, **asdict(text)} for name, text in GROUPS.items()],
        "form_sections": [{"name": name, **asdict(one)} for name, one in FORM_SECTIONS.items()],
        "kinds": {kind: _kind(kind) for kind in KIND_TEXTS},
        "modes": [_mode(name, mode) for name, mode in MODES.items()],
        "port_types": {str(port): _port_type(port) for port in PortType},
        "algorithms": _algorithms(),
        "rewards": [_builtin(name, section) for name, section in BUILTINS.items()],
        "tasks": [_task(section) for section in _TASKS],
        "metrics": {name: asdict(metric) for name, metric in METRICS.items()},
        "probe_metrics": {name: asdict(metric) for name, metric in PROBE_METRICS.items()},
        "chart_order": list(CHART_ORDER),
        "remedies": [asdict(one) for one in REMEDIES],
        "charts": [asdict(chart) for chart in CHARTS],
        "schema": {
            "loop": _loop_schema(),
            "edge": section_schema(Edge),
            "schedule": section_schema(Schedule),
            "hardware": section_schema(Hardware),
            "run": section_schema(Run),
        },
        "codes": dict(CODES),
        "unfinished": [code for code in CODES if code in UNFINISHED],
    }


def _loop_schema() -> dict[str, Any]:
    """What the loop says of itself: no part that has a schema or a place of its own."""
    schema = section_schema(LoopSpec)
    schema["properties"] = {name: schema["properties"][name] for name in ("mode", "description")}
    return {name: schema[name] for name in ("type", "title", "description", "properties")}


def _kind(kind: str) -> dict[str, Any]:
    text, ports = KIND_TEXTS[kind], PORTS[kind]
    return {
        "kind": kind,
        "title": text.title,
        "help": text.help,
        "group": text.group,
        "icon": text.icon,
        "color": GROUPS[text.group].color,
        "synonyms": _synonyms(kind),
        "summary": list(text.summary),
        "card_fields": [asdict(value) for value in text.card_fields],
        "learning": asdict(text.learning) if text.learning else None,
        "stages": list(ports.stages),
        "inputs": [_in_port(name, port) for name, port in ports.inputs.items()],
        "outputs": [
            {
                "name": name,
                "type": str(port.type),
                "when": _when(port.when),
                "help": port.help,
            }
            for name, port in ports.outputs.items()
        ],
        "schema": _schema(kind),
        "template": copy.deepcopy(text.template),
        "runnable": kind in RUNNABLE_KINDS,
    }


def _mode(name: str, mode: Mode) -> dict[str, Any]:
    return {
        "name": name,
        "title": mode.title,
        "help": mode.help,
        "kinds": list(mode.kinds),
        "of_kind": {kind: _kind_in(mode, kind) for kind in KIND_TEXTS},
    }


def _kind_in(mode: Mode, kind: str) -> dict[str, Any]:
    return {
        "ports": [port for port in PORTS[kind].inputs if mode.hides_port(kind, port)],
        "outputs": list(mode.of(kind).outputs),
        "fields": list(mode.hidden_fields(kind)),
        "algorithms": [
            name
            for section in _learns(kind)
            for name in _names(section)
            if mode.hides_algorithm(name) or _serves_only_hidden(mode, kind, section)
        ],
        "template": begins_as(mode, kind),
    }


def _serves_only_hidden(mode: Mode, kind: str, section: type[Section]) -> bool:
    """Whether no teaching port that is offered of a kind takes this algorithm."""
    ports = set(PORTS_OF[section]) & set(PORTS[kind].teaching)
    return all(mode.hides_port(kind, port) for port in ports)


@lru_cache
def _schema(kind: str) -> dict[str, Any]:
    return section_schema(NODE_CLASSES[kind])


def _learns(kind: str) -> list[type[Section]]:
    """The algorithms that a kind can have, as sections."""
    parts = _schema(kind).get("$defs", {})
    return [section for section in PORTS_OF if section.__name__ in parts]


def _synonyms(kind: str) -> list[str]:
    """Words for the kind, and for what it can do."""
    words = KIND_TEXTS[kind].synonyms.split(", ")
    learns = _learns(kind)
    words += [name for section in learns for name in _names(section) if name == family_of(name)]
    if kind == "reward":
        words += BUILTINS
    if kind == "dataset":
        words += [_task_name(section) for section in _TASKS]
    return list(dict.fromkeys(words))


def _in_port(name: str, port: InPort) -> dict[str, Any]:
    return {
        "name": name,
        "type": str(port.type),
        "max": port.max,
        "phase": port.phase,
        "teaching": port.teaching,
        "required": port.required,
        "of": port.of,
        "when": _when(port.when),
        "help": port.help,
    }


def _when(when: When) -> dict[str, list[str | None]]:
    return {path: list(values) for path, values in when.items()}


def _port_type(port: PortType) -> dict[str, Any]:
    text = PORT_TEXTS[str(port)]
    return {
        "color": text.color,
        "shape": text.shape,
        "handle": port in HANDLES,
        "help": text.help,
        "accepts": [str(source) for source in PortType if accepts(port, source)],
    }


def _algorithms() -> dict[str, list[dict[str, Any]]]:
    by_port: dict[str, list[dict[str, Any]]] = {}
    for section, ports in PORTS_OF.items():
        for port in ports:
            by_port.setdefault(port, [])
            by_port[port] += [_algorithm(name, section) for name in _names(section)]
    return by_port


def _names(section: type[Section]) -> tuple[str, ...]:
    return get_args(section.model_fields["name"].annotation)


def _algorithm(name: str, section: type[Section]) -> dict[str, Any]:
    family, title = family_of(name), title_of(name)
    record, framework = ALGORITHMS[family], FRAMEWORKS.get(ALGORITHMS[name].framework or "")
    return {
        "name": name,
        "family": family,
        "framework": framework,
        "title": f"{title} as in {framework}" if framework else title,
        "help": f"{record.help} With the defaults of {framework}." if framework else record.help,
        "formula": record.formula,
        "defaults": _defaults(name, section),
        "runnable": is_runnable_algorithm(name),
    }


def _defaults(name: str, section: type[Section]) -> dict[str, Any]:
    """What the form shows where nothing is written."""
    if section is RewardsAlgorithm:
        preset = {**REWARDS_BASE, **PRESETS[name]}
        return {**preset, "deviation": preset["deviation"] or deviation_of(preset["advantage"])}
    if section is PreferenceAlgorithm:
        return {**PREFERENCE_BASE, **PRESETS[name]}
    return {
        info.alias or field: _plain(info.get_default())
        for field, info in section.model_fields.items()
        if not info.is_required()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _builtin(name: str, section: type[Section]) -> dict[str, Any]:
    return {
        "name": name,
        "help": inspect.getdoc(section) or "",
        "from_scores": name in SCORE_TO_SCORE,
        "schema": section_schema(section),
    }


def _task_name(section: type[Section]) -> str:
    name: str = get_args(section.model_fields["task"].annotation)[0]
    return name


def _task(section: type[Section]) -> dict[str, Any]:
    name = _task_name(section)
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


# The charts that a run opens with: which metrics stand together, and for which learning.
#
# A chart is shown where one of its metrics was told, and where a node of the loop learns at one
# of its ports. Metrics of evaluations count by their own name, whatever stands before it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Metrics of all nodes on one axis."""

    name: str
    title: str
    metrics: tuple[str, ...]
    ports: tuple[str, ...] = ()
    """Teaching ports for whose algorithms it is; none: for every loop."""


CHARTS: tuple[Chart, ...] = (
    Chart(
        name="accuracy",
        title="Accuracy",
        metrics=("accuracy", "score", "agreement", "pair_accuracy", "label_accuracy"),
    ),
    Chart(name="reward", title="Reward", metrics=("reward/mean",), ports=("rewards",)),
    Chart(
        name="loss",
        title="Loss",
        metrics=("loss/demonstrations", "loss/pairs", "loss/labels", "loss/returns"),
        ports=("demonstrations", "pairs", "labels", "returns"),
    ),
    Chart(name="kl", title="KL to the reference", metrics=("kl",), ports=("rewards",)),
    Chart(name="length", title="Length", metrics=("rollout/length",), ports=("rewards",)),
    Chart(
        name="recall",
        title="Recall and false verdicts",
        metrics=("class_recall", "false_positive_rate", "false_negative_rate"),
    ),
    Chart(name="entropy", title="Entropy", metrics=("entropy",), ports=("rewards",)),
    Chart(
        name="margin",
        title="Chosen and rejected",
        metrics=("margin", "log_ratio/chosen", "log_ratio/rejected"),
        ports=("pairs",),
    ),
    Chart(
        name="explained",
        title="Explained variance",
        metrics=("explained_variance",),
        ports=("returns",),
    ),
    Chart(name="clip", title="Clip share", metrics=("clip_fraction",), ports=("rewards",)),
    Chart(
        name="groups",
        title="Groups without variance",
        metrics=("group/zero_variance",),
        ports=("rewards",),
    ),
    Chart(
        name="calibration",
        title="Calibration",
        metrics=("calibration", "brier"),
        ports=("labels",),
    ),
)
