"""The resolver: every setting that a loop leaves open gets a value and a reason, once.

    spec, stages of its phases ──> survey (weights, degrees, engines, types, threads)
      ──> memory (what rests, what an update may take)
      ──> clock (seconds of a step), on a CPU once for each number of processes
      ──> settings of each group and engine, and the decisions in words

The compiler writes the settings into the plan, the run builds its hosts with them, and the estimate
prices them. Values that no memory limits are those that are fastest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coloop.plan.settings.memory import Memory
from coloop.plan.settings.processes import settle
from coloop.plan.settings.processor import Conditions, conditions_here
from coloop.plan.settings.settings import Decision, EnginePlan, UpdateSettings
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.spec.dtypes import Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of, weights_groups
from coloop.spec.training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    updates: dict[str, UpdateSettings]
    """Of the weights groups that train, by their names."""
    engines: dict[tuple[str, str], EnginePlan]
    """By weights group and pool."""
    dtypes: dict[str, Dtypes]
    """Of every weights group."""
    decisions: tuple[Decision, ...]
    survey: Survey
    memory: Memory


def resolve(
    spec: LoopSpec,
    phases: Sequence[PhaseLoad],
    probes: Mapping[str, Sequence[str]],
    root: Path | None = None,
    conditions: Conditions | None = None,
) -> Resolved:
    """Decides what a loop leaves open.

    Args:
        phases: what each phase teaches and runs.
        probes: by evaluation, the nodes that run on rows of its own.
        root: folder for relative model paths; without it no file is opened.
        conditions: None: of a run that begins on this machine.
    """
    conditions = conditions or conditions_here()

    def survey_of(workers: int) -> Survey:
        return Survey(spec, root, phases, probes, conditions, workers)

    settled, processes = settle(spec, conditions, survey_of)
    survey, memory = settled.survey, settled.memory
    updates = {name: _with_memory(found, memory, name) for name, found in survey.updates.items()}
    engines = {
        key: plan.model_copy(
            update={
                "gpu_memory_utilization": memory.shares.get(key),
                "sleep": memory.sleeps.get(key),
            }
        )
        for key, plan in survey.settings.items()
    }
    return Resolved(
        updates=updates,
        engines=engines,
        dtypes=survey.dtypes,
        decisions=tuple(_decisions(spec, survey, memory, processes)),
        survey=survey,
        memory=memory,
    )


def _with_memory(update: UpdateSettings, memory: Memory, group: str) -> UpdateSettings:
    """What depends on the room that a pool leaves; the fastest where nothing of it is known."""
    found = memory.updates.get(group)
    if found is None:
        return update
    return replace(
        update,
        tokens_at_once=found.settings.tokens_at_once,
        gradient_checkpointing=found.settings.checkpointing,
        loss_chunk=found.settings.loss_chunk,
    )


def _decisions(
    spec: LoopSpec, survey: Survey, memory: Memory, processes: Decision | None
) -> Iterator[Decision]:
    yield from _types(spec, survey.dtypes)
    yield from survey.decisions.values()
    for name, update in survey.updates.items():
        if name not in memory.updates:
            yield from _unlimited(name, update, training_of(spec, name))
        if training_of(spec, name).mini_batch is None:
            yield Decision(
                path=f"nodes.{name}.training.mini_batch",
                value="all rows of the step",
                reason="one optimizer step a step, the least off-policy choice",
            )
    if processes is not None:
        yield processes


def _unlimited(name: str, update: UpdateSettings, training: Training) -> Iterator[Decision]:
    """What is decided for weights of which no size is known."""
    path, reason = (
        f"nodes.{name}.training",
        ("the fastest: how much memory it needs is not known here"),
    )
    if training.micro_batch is None:
        at_once = f"{update.tokens_at_once} tokens"
        yield Decision(path=f"{path}.micro_batch", value=at_once, reason=reason)
    if training.gradient_checkpointing is None:
        flag = update.gradient_checkpointing
        yield Decision(path=f"{path}.gradient_checkpointing", value=flag, reason=reason)


def _types(spec: LoopSpec, dtypes: dict[str, Dtypes]) -> Iterator[Decision]:
    """In which types weights are held and computed with, where the loop does not say."""
    for group in weights_groups(spec).values():
        owner, found = spec.nodes[group.name], dtypes[group.name]
        field = "training" if group.trainable else "model"
        section = getattr(owner, field, None)
        is_said = getattr(section, "dtype", None) is not None
        has_field = group.trainable or hasattr(section, "dtype")
        if has_field and not is_said:
            path = f"nodes.{group.name}.{field}.dtype"
            yield Decision(path=path, value=found.compute, reason=found.reason)
