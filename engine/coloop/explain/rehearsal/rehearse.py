"""Reduces a loop to its rehearsal, by changes to its document."""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from coloop.explain.rehearsal.lines import scripted, text_for
from coloop.plan.settings.architecture import UnknownArchitecture, count_parameters
from coloop.plan.settings.facts import architecture_of
from coloop.spec.builtins import Choice, CodeTests
from coloop.spec.data import FileSource, HubSource
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, require, to_dict
from coloop.spec.model import Model, PretrainedModel, RunModel, ScratchModel
from coloop.spec.nodes import DatasetNode, FilterNode, TemplateNode, model_of
from coloop.spec.rollout import CHAT
from coloop.spec.shaping import RegexRule
from coloop.validate.columns import missing_columns
from coloop.validate.facts import Facts
from coloop.validate.texts import names_in_function

STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A reduced loop."""

    spec: LoopSpec
    notes: tuple[str, ...]
    """What was replaced, in sentences for the user."""


def rehearsed(spec: LoopSpec, *, steps: int = STEPS, root: Path | None = None) -> Rehearsal:
    """The same loop, reduced for a CPU.

    Args:
        steps: maximum steps per phase.
        root: folder of data files; None: there are none.

    Raises:
        SpecProblem: the reduced loop is invalid.
    """
    document = to_dict(spec)
    notes = [*tiny_models(spec, document, root), *made_rows(spec, document, root)]
    few_rows(spec, document, steps)
    scripted(spec, document)
    short_schedule(document, steps)
    notes += [*without_services(document), *on_a_desk(document)]
    return Rehearsal(spec=require(from_dict(document)), notes=tuple(notes))


# Where a rehearsal runs: the same pools, of one process each, on a CPU.

FREE_TRAINING = (
    *("backend", "micro_batch", "dtype", "master_weights", "gradient_checkpointing"),
    *("zero_stage", "offload", "tensor_parallel", "expert_parallel", "reshard_after_forward"),
    *("pipeline_parallel", "context_parallel", "implementation"),
)
"""Settings of `training` that depend on the hardware; they are removed."""
FREE_ROLLOUT = ("max_num_seqs", "gpu_memory_utilization", "tensor_parallel", "url", "secret")
KEPT_IN_RUN = ("seed", "best")
"""Fields of `run` that a rehearsal keeps."""


def on_a_desk(document: dict[str, Any]) -> list[str]:
    """Remove hardware settings; returns notes on what was left out."""
    before = document.get("hardware", {})
    pools = before.get("pools") or {"main": {}}
    document["hardware"] = {"preset": "cpu", "pools": {name: {"workers": 1} for name in pools}}
    document["run"] = {
        name: value for name, value in document.get("run", {}).items() if name in KEPT_IN_RUN
    }
    notes = []
    for name, node in document["nodes"].items():
        notes += _weights_on_a_desk(name, node)
    return notes


def _weights_on_a_desk(name: str, node: dict[str, Any]) -> list[str]:
    notes = []
    training, rollout, model = (node.get(key) for key in ("training", "rollout", "model"))
    if training is not None:
        for field in FREE_TRAINING:
            training.pop(field, None)
        if training.get("optimizer", {}).get("name") == "adamw8bit":
            training["optimizer"]["name"] = "adamw"
            notes.append(f"`{name}`: `adamw` instead of `adamw8bit`, which needs a GPU")
    if rollout is not None:
        for field in FREE_ROLLOUT:
            rollout.pop(field, None)
        rollout["engine"] = "torch"
    if model is not None and model.pop("quantization", None) is not None:
        notes.append(f"`{name}`: its weights are not quantized")
    return notes


# The schedule of a rehearsal: every phase once, with a few steps.

ENDS = ("next_phase", "stop")
FILLING = 4
"""A phase with `until` may have this many times the steps of others."""


def short_schedule(document: dict[str, Any], steps: int) -> None:
    """Reduce the schedule to every phase once, with at most `steps` steps."""
    schedule = document["schedule"]
    for field in ("steps", "epochs"):
        if schedule.pop(field, None) is not None:
            schedule["steps"] = steps
    for item in schedule.get("phases", ()):
        _cut(item, steps)
    for rule in schedule.get("learn", {}).values():
        # a learner that would begin later, or with more rows, learns in a rehearsal as well
        for field, most in (("every", 1), ("after", steps - 1), ("updates", 2), ("rows", 4)):
            if rule.get(field) is not None:
                rule[field] = min(rule[field], most)
    # triggers that end no phase and no run: a rehearsal goes through all of them
    triggers = schedule.pop("triggers", [])
    for trigger in triggers:
        trigger["do"] = {key: value for key, value in trigger["do"].items() if key not in ENDS}
    if triggers:
        schedule["triggers"] = [trigger for trigger in triggers if trigger["do"]]
    for anneal in schedule.get("anneal", ()):
        for field in ("steps", "cycle"):
            if field in anneal:
                anneal[field] = min(anneal[field], steps)


def _cut(item: dict[str, Any], steps: int) -> None:
    if "phases" in item:
        item["repeat"] = 1
        for inner in item["phases"]:
            _cut(inner, steps)
    elif "steps" in item:
        item["steps"] = min(item["steps"], steps)
    else:
        most = steps * FILLING if "until" in item else steps
        item["max_steps"] = min(item.get("max_steps", most), most)


# What a rehearsal puts in the place of services: it reaches no other machine.

MADE_NUMBERS = """\
def reward(prompts, completions, **columns):
    return [float(len(completion) % 2) for completion in completions]
"""
"""Scores that differ between texts, so that groups have something to learn."""
MADE_LISTS = """\
def reward(prompts, completions, **columns):
    return [[float(len(text) % 2) for text in texts] for texts in completions]
"""
"""The same for gathered rows, with a number for each."""


def without_services(document: dict[str, Any]) -> list[str]:
    """Replace services with local scores, and chat models that judge with tiny models; returns
    notes."""
    notes = []
    for name, node in document["nodes"].items():
        source, rollout = node.get("source", {}), node.get("rollout", {})
        if node["kind"] == "reward" and source.get("type") in ("remote", "chat"):
            per_row = node.get("per") == "row"
            node["source"] = {"type": "python", "code": MADE_LISTS if per_row else MADE_NUMBERS}
            for field in ("template", "read"):
                node.pop(field, None)
            host = urlsplit(source["url"]).hostname
            notes.append(f"`{name}`: made-up scores instead of the service at {host}")
        if rollout.get("engine") == CHAT:
            host = urlsplit(rollout.pop("chat")["url"]).hostname
            node["model"] = {"type": "scratch", "architecture": ANY_TEXT}
            node.pop("on_error", None)
            if node.get("read", {}).get("ask") is not None:
                node["read"]["ask"] = "together"
            notes.append(f"`{name}`: a tiny model instead of the chat model at {host}")
    return notes


# The models of a rehearsal: models that are large or not from scratch are replaced with tiny ones.
#
# Which nodes share, copy or follow weights stays as it is, and so do heads and adapters. If one
# model of a loop is replaced, all are, so that nodes still have the same tokenizer.

ANY_TEXT = "tiny-bytes"
"""The architecture whose tokenizer handles any text."""
RANK = 8
"""Maximum adapter rank."""
TINY_PARAMETERS = 3_000_000
"""Scratch models up to this size stay."""


def tiny_models(spec: LoopSpec, document: dict[str, Any], root: Path | None) -> list[str]:
    """Replace other models with tiny ones; returns notes."""
    kinds = PretrainedModel | RunModel | ScratchModel
    models = ((name, model_of(node)) for name, node in spec.nodes.items())
    own = {name: model for name, model in models if isinstance(model, kinds)}
    if all(_is_tiny(model, root) for model in own.values()):
        return []
    for name in own:
        section: dict[str, Any] = {"type": "scratch", "architecture": ANY_TEXT}
        lora = document["nodes"][name]["model"].get("lora")
        if lora is not None:
            section["lora"] = lora | {"rank": min(RANK, lora.get("rank", RANK))}
        document["nodes"][name]["model"] = section
    for node in document["nodes"].values():
        node.get("model", {}).pop("dtype", None)
    names = ", ".join(f"`{name}` ({_origin(model)})" for name, model in own.items())
    return [f"models: `{ANY_TEXT}`, random weights and one token per byte, instead of {names}"]


def _is_tiny(model: Model, root: Path | None) -> bool:
    if not isinstance(model, ScratchModel):
        return False
    try:
        return count_parameters(architecture_of(model, root)).total <= TINY_PARAMETERS
    except UnknownArchitecture:
        return False


def _origin(model: PretrainedModel | RunModel | ScratchModel) -> str:
    match model:
        case PretrainedModel():
            return model.path
        case RunModel():
            return f"run {model.run}"
    return model.architecture


# The rows of a rehearsal: those of tasks and of existing files; generated ones for the others.
#
# A generated row has the columns that the dataset's `columns` name and those that its readers use;
# numbers where a column must have them.

COUNT = 8
NUMBERS = {"margin": 1.0, "probability": 0.75}
"""Numeric columns and their values."""
PLAIN = ("prompt", "target", "answer")
SIDES = ("chosen", "rejected")
MESSAGES = "messages"
"""Usual column name of a chat."""


def made_rows(spec: LoopSpec, document: dict[str, Any], root: Path | None) -> list[str]:
    """Replace unavailable data with generated rows; returns notes."""
    notes, forms = [], dict(_forms(spec))
    made = {
        name: node
        for name, node in spec.nodes.items()
        if isinstance(node, DatasetNode) and not _is_here(node, root)
    }
    columns_of = {name: dict.fromkeys(_columns(spec, name, node)) for name, node in made.items()}
    named = {name: frozenset(made[name].columns).union(of) for name, of in columns_of.items()}
    if made:
        for name, column in missing_columns(Facts(spec, root, known_columns=named)):
            if name in made:
                columns_of[name][column] = None
    for name, node in made.items():
        columns = list(columns_of[name])
        rows = [
            {column: _value(column, node, k, forms) for column in columns} for k in range(COUNT)
        ]
        document["nodes"][name]["source"] = {"type": "inline", "rows": rows}
        where = getattr(node.source, "path", "")
        names = ", ".join(columns)
        notes.append(f"`{name}`: {COUNT} made-up rows ({names}) instead of {where}")
    return notes


def _is_here(node: DatasetNode, root: Path | None) -> bool:
    if isinstance(node.source, FileSource):
        return root is not None and (root / node.source.path).exists()
    return not isinstance(node.source, HubSource)


def _columns(spec: LoopSpec, name: str, node: DatasetNode) -> Iterator[str]:
    wanted = dict.fromkeys(node.columns)
    outputs = {edge.source.port for edge in spec.graph.edges_out_of(name)}
    wanted |= dict.fromkeys(PLAIN)
    if "pairs" in outputs:
        wanted |= dict.fromkeys(SIDES)
    if node.unfold is not None:
        wanted[node.unfold] = None
    for edge in spec.graph.edges_out_of(name):
        reader = spec.nodes[edge.target.node]
        if isinstance(reader, TemplateNode) and reader.code is not None:
            wanted |= dict.fromkeys(names_in_function(reader.code, "write").parameters)
    for column in wanted:
        yield node.columns.get(column, column)


VALUES: Mapping[str, Callable[[int], Any]] = {
    "choice": lambda k: "ABCD"[k % 4],
    "code_tests": lambda k: [f"assert double({k}) == {2 * k}"],
}
"""By built-in reward, the value that it can read in its column, by the number of the row."""


def _forms(spec: LoopSpec) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Columns that must have values of a form, as a reward reads them."""
    for node in spec.nodes.values():
        source = getattr(node, "source", None)
        if isinstance(source, Choice | CodeTests):
            yield source.column, VALUES[source.name]
        for rule in node.keep if isinstance(node, FilterNode) else ():
            if isinstance(rule, RegexRule) and (text := text_for(rule.pattern)) is not None:
                yield rule.column, partial(_always, text)


def _always(text: str, row: int) -> str:
    return text


def _value(
    column: str, node: DatasetNode, k: int, forms: Mapping[str, Callable[[int], Any]]
) -> Any:
    meaning = next((ours for ours, theirs in node.columns.items() if theirs == column), column)
    if meaning in forms:
        return forms[meaning](k)
    if meaning in NUMBERS:
        return NUMBERS[meaning]
    if meaning == node.unfold:
        return [f"{column} {k}.{place}" for place in range(2)]
    if meaning == MESSAGES:
        texts = {"user": f"What is {k} + {k}?", "assistant": str(2 * k)}
        return [{"role": role, "content": text} for role, text in texts.items()]
    if meaning == "prompt":
        return f"What is {k} + {k}?"
    if meaning in ("answer", "target", "chosen"):
        return str(2 * k)
    return f"{2 * k + 1}" if meaning == "rejected" else f"{column} {k}"


# The sizes of a rehearsal.
#
# Numbers of rows become at most `ROWS`, and products of rows and completions a multiple of it, so
# that groups and mini-batches still divide. A number that a phase or trigger sets is reduced like
# the field itself.

ROWS = 4
"""Rows per step and per mini-batch."""
GROUP = 4
"""Maximum completions per prompt."""
TOKENS = 96
"""Maximum tokens of a completion."""
TASK_ROWS = 32
WHOLE_TABLES = frozenset({"documents", "library", "seed"})
"""Ports that read a dataset as a whole, not by the step."""

Shrink = Callable[[Any], Any]


def at_most(limit: float) -> Shrink:
    def shrink(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return min(value, limit) if is_number else value

    return shrink


def exactly(number: int) -> Shrink:
    return lambda value: None if value is None else number


SIZES: tuple[tuple[str, Shrink], ...] = (
    (r"rows_per_step", exactly(ROWS)),
    (r"source\.size", at_most(TASK_ROWS)),
    (r"tokens\.(mean|max)", at_most(TOKENS)),
    (r"rollout\.completions_per_prompt", at_most(GROUP)),
    (r"rollout\.(max_new_tokens|expected_tokens)", at_most(TOKENS)),
    (r"rollout\.turns\.max", at_most(3)),
    (r"rollout\.turns\.(tokens|observation_tokens)", at_most(TOKENS)),
    (r"training\.mini_batch", exactly(ROWS)),
    (r"training\.epochs", at_most(2)),
    (r"training\.optimizer\.warmup", at_most(1)),
    (r"credit\.balance\.to", exactly(ROWS)),
    (r"per_group\.max", at_most(GROUP)),
    (r"(fill\.groups|up_to|resample\.rows)", at_most(ROWS)),
    (r"fill\.rows", at_most(2 * ROWS)),
    (r"fill\.max_rounds", at_most(3)),
    (r"capacity", at_most(2 * ROWS)),
    (r"(completions|completions\.bands\.\d+\.use|expand\.samples)", at_most(2)),
    (r"budget\.searches_per_row", at_most(4)),
    (r"budget\.nodes", at_most(16)),
    (r"budget\.tokens", at_most(8_000)),
    (r"budget\.seconds", at_most(20)),
    (r"pack\.tokens", at_most(TOKENS)),
    (r"model\.refresh\.every", at_most(1)),
)
"""By a pattern of the path below a node: how to reduce a number."""


def few_rows(spec: LoopSpec, document: dict[str, Any], steps: int) -> None:
    """Reduce every size of the loop, including overrides of phases and triggers."""
    for name, node in document["nodes"].items():
        _say_defaults(spec, name, node)
        _shrink(node, "")
    for values in _settings(document["schedule"]):
        for path in values:
            values[path] = small(re.sub(r"^nodes\.\w+\.", "", path), values[path])
    for node in document["nodes"].values():
        if node["kind"] == "evaluate" and (node.get("instead_of") or node.get("of")):
            # so seldom that a probe is read when the rehearsal begins and when it ends
            node["every"] = steps * max(1, _phases(document["schedule"].get("phases", ())))
        if "clear" in node:
            node["clear"]["every"] = min(node["clear"]["every"], steps)


def small(path: str, value: Any) -> Any:
    """The reduced value of a field below a node."""
    for pattern, shrink in SIZES:
        if re.fullmatch(pattern, path):
            return shrink(value)
    return value


def _say_defaults(spec: LoopSpec, name: str, node: dict[str, Any]) -> None:
    """Set fields that are missing and whose default is too large."""
    if "rollout" in node or node["kind"] == "actor":
        node.setdefault("rollout", {}).setdefault("max_new_tokens", TOKENS)
    if node["kind"] == "dataset":
        targets = {edge.target.port for edge in spec.graph.edges_out_of(name, "rows")}
        if not targets or targets - WHOLE_TABLES:
            node.setdefault("rows_per_step", ROWS)


def _shrink(value: Any, path: str) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        below = f"{path}.{key}" if path else str(key)
        value[key] = small(below, item)
        if isinstance(item, dict | list):
            _shrink(item, below)


def _settings(part: Any) -> Iterator[MutableMapping[str, Any]]:
    for item in [*part.get("phases", ()), *part.get("triggers", ())]:
        for holder in (item, item.get("do") or {}):
            if "set" in holder:
                yield holder["set"]
        yield from _settings(item)


def _phases(items: Any) -> int:
    return sum(_phases(item["phases"]) if "phases" in item else 1 for item in items)
