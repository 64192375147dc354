"""The correction of each stage's time by what earlier runs on this machine measured."""

import hashlib
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from coloop.plan.settings.measured import UNCORRECTED, Correction, Timed
from coloop.plan.settings.processor import Processor
from coloop.plan.settings.survey import Survey
from coloop.plan.settings.weights import Weights

VERSIONS = ("coloop", "torch", "vllm")
"""Libraries whose versions change how long a stage takes."""
MODEL_VERBS = ("generate", "score", "learn", "sync")


def correction_of(survey: Survey, stage: str) -> Correction:
    timed = timed_as(survey, stage)
    measured = survey.conditions.measured
    if timed is None or measured is None:
        return UNCORRECTED
    return measured.correction(timed)


def timed_as(survey: Survey, stage: str) -> Timed | None:
    """What the time of a stage depends on; None for evaluations, which are sums of others, and for
    calls of services."""
    node, verb = stage.rsplit(".", 1)
    if verb == "evaluate":
        return None
    machine, section = machine_name(survey), survey.spec.nodes[node]
    weights = _weights(survey, stage)
    if weights is not None:
        return Timed(machine=machine, kind=verb, subject=_model(weights))
    if verb in MODEL_VERBS:
        source: Any = getattr(section, "source", None)
        kind = getattr(source, "type", section.kind)
        if verb != "score" or kind in ("remote", "chat", "service"):
            return None
        code = getattr(source, "code", None)
        name = getattr(source, "name", None) or kind
        return _of_code(machine, "python", code) if code else _named(machine, "rule", str(name))
    code = _code(section)
    if code:
        return _of_code(machine, "python", code)
    return _named(machine, verb, section.kind)


def machine_name(survey: Survey) -> str:
    """Hardware and versions, as far as times depend on them."""
    machine = survey.machine
    if machine.is_cpu:
        return processor_name(machine.processor)
    return _with_versions(f"{machine.preset.gpus} GPUs of {machine.preset.name}")


def processor_name(processor: Processor) -> str:
    """The same for a loop on this CPU."""
    half = ", bfloat16" if processor.has_bf16 else ""
    return _with_versions(f"{processor.cores} cores of {processor.name}{half}")


def _with_versions(hardware: str) -> str:
    known = [f"{name} {_version(name)}" for name in VERSIONS if _version(name)]
    return ", ".join([hardware, *known])


def _weights(survey: Survey, stage: str) -> Weights | None:
    node, verb = stage.rsplit(".", 1)
    if verb not in MODEL_VERBS:
        return None
    engine = survey.engine_of(node) if verb in ("generate", "score") else None
    return engine.weights if engine is not None else survey.weights_of(node)


def _model(weights: Weights) -> str:
    arch = weights.arch
    size = f"{arch.layers} layers of {arch.hidden_size}, vocabulary of {arch.vocab_size}"
    adapter = "" if weights.trains_all or not weights.trains else ", adapter"
    return f"{arch.model_type}, {size}{adapter}"


def _code(section: Any) -> str:
    """Python of a template or a filter."""
    rules = getattr(section, "keep", ())
    return "\n".join(
        code for part in (section, *rules) if (code := getattr(part, "code", None)) is not None
    )


def _of_code(machine: str, kind: str, code: str) -> Timed:
    subject = hashlib.sha256(code.encode()).hexdigest()[:16]
    return Timed(machine=machine, kind=kind, subject=subject, is_alike=False)


def _named(machine: str, kind: str, name: str) -> Timed:
    return Timed(machine=machine, kind=kind, subject=name)


@lru_cache(maxsize=8)
def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
