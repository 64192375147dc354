"""Findings about a loop: what was found, what is expected, where, and how to fix it.

A `Diagnostic` has a stable `code` from `CODES`; a code that is not listed there is refused when
the diagnostic is made. This module knows nothing of the spec: places are paths of the YAML.

Invariants: a diagnostic with a `node` has its `field` inside that node; without a node `field` is
a full path such as `edges.3` or `schedule.phases.1.steps`. Lines and columns count from 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

Op = Literal["set", "remove", "insert", "rename", "add_edge", "remove_edge"]


class Severity(StrEnum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Change(BaseModel):
    """One edit of a loop document, by its paths."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    op: Op
    """`set`, `remove` a value; `insert` before a list position; `rename` a key; edges by text."""
    path: str
    """What is changed, e.g. `nodes.actor.training.optimizer.lr`, `edges.3`."""
    value: Any = None
    """The new value (`rename`: the new key; `add_edge`: the edge as text or mapping)."""


class Fix(BaseModel):
    """A fix that one click applies."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    title: str
    """What the button says."""
    changes: tuple[Change, ...]
    """The edits, applied in this order."""

    @classmethod
    def set(cls, title: str, path: str, value: Any) -> Fix:
        """A fix that sets one value."""
        return cls(title=title, changes=(Change(op="set", path=path, value=value),))

    @classmethod
    def remove(cls, title: str, path: str) -> Fix:
        """A fix that removes one value."""
        return cls(title=title, changes=(Change(op="remove", path=path),))


class Diagnostic(BaseModel):
    """One finding about a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    code: str
    """A key of `CODES`."""
    severity: Severity = Severity.ERROR
    """Errors stop a run; warnings deserve a look; hints can be ignored."""
    message: str
    """What was found and what is expected."""
    hint: str | None = None
    """What to change."""
    node: str | None = None
    """The node it is about."""
    field: str | None = None
    """The path inside the node, or the full path where there is no node."""
    line: int | None = None
    """Line of the YAML text, from 1."""
    column: int | None = None
    """Column of the YAML text, from 1."""
    text_line: int | None = None
    """Line inside the text that the field is, from 1: of code, of a template."""
    fixes: tuple[Fix, ...] = ()
    """Fixes that one click applies."""

    @field_validator("code")
    @classmethod
    def _is_listed(cls, code: str) -> str:
        if code not in CODES:
            raise ValueError(f"diagnostic code {code!r} is not listed in CODES")
        return code

    @property
    def path(self) -> str | None:
        """The full path of the place, e.g. `nodes.actor.rollout.top_p`."""
        if self.node is None:
            return self.field
        return f"nodes.{self.node}" + (f".{self.field}" if self.field else "")

    @property
    def is_error(self) -> bool:
        """Whether a run must not start with it."""
        return self.severity is Severity.ERROR

    def describe(self) -> str:
        """One line for a terminal: place, severity, message, hint, code."""
        place = f"{self.line}:{self.column}: " if self.line is not None else ""
        where = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity.value}: {where}{self.message}{hint} [{self.code}]"


class Report(BaseModel):
    """All findings about one spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    diagnostics: tuple[Diagnostic, ...] = ()
    """In the order of the checks."""

    @property
    def ok(self) -> bool:
        """Whether there is no error (warnings are allowed)."""
        return not any(found.is_error for found in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop a run."""
        return tuple(found for found in self.diagnostics if found.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that deserve a look."""
        return tuple(found for found in self.diagnostics if found.severity is Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        """The shape of `coloop validate --json`."""
        return {
            "ok": self.ok,
            "diagnostics": [found.model_dump(mode="json") for found in self.diagnostics],
        }


def error(
    code: str,
    at: str | None,
    message: str,
    hint: str | None = None,
    *fixes: Fix,
    severity: Severity = Severity.ERROR,
    text_line: int | None = None,
) -> Diagnostic:
    """One finding.

    Args:
        at: the full path of the place, e.g. `nodes.actor.rollout.top_p` or `edges.3`.
    """
    node, field = None, at
    if at is not None and at.startswith("nodes."):
        _, node, *rest = at.split(".", 2)
        field = rest[0] if rest else None
    return Diagnostic(
        code=code,
        severity=severity,
        message=message,
        hint=hint,
        node=node,
        field=field,
        text_line=text_line,
        fixes=fixes,
    )


def fix(title: str, path: str, value: Any = None, op: Op = "set") -> Fix:
    """A fix of one change."""
    return Fix(title=title, changes=(Change(op=op, path=path, value=value),))


def at(
    path: tuple[str | int, ...],
    code: str,
    message: str,
    hint: str | None = None,
    *,
    place: tuple[int, int] | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Diagnostic:
    """A diagnostic at a full path; under `nodes` it names the node. `place`: line and column."""
    is_node = len(path) >= 2 and path[0] == "nodes"
    return Diagnostic(
        code=code,
        message=message,
        hint=hint,
        node=str(path[1]) if is_node else None,
        field=".".join(map(str, path[2:] if is_node else path)) or None,
        line=None if place is None else place[0],
        column=None if place is None else place[1],
        fixes=fixes,
    )


warning = partial(error, severity=Severity.WARNING)
notice = partial(error, severity=Severity.HINT)


def likeness(word: str, option: str) -> float:
    """How alike two words are, from 0 to 1; letter case does not count."""
    return difflib.SequenceMatcher(None, word[:80].lower(), option.lower()).ratio()


def closest(word: str, options: Iterable[str], limit: int = 3) -> list[str]:
    """The options that look like `word`, best first."""
    names = [str(option) for option in options]
    lowered = {name.lower(): name for name in reversed(names)}
    found = difflib.get_close_matches(str(word)[:80].lower(), list(lowered), n=limit, cutoff=0.55)
    return [lowered[name] for name in found]


def did_you_mean(word: str, options: Iterable[str]) -> str | None:
    """`did you mean \\`x\\`?`, or the short list of what is known, or nothing."""
    names = [str(option) for option in options]
    near = closest(word, names)
    if near:
        least = likeness(str(word), near[0]) - 0.08
        likely = [name for name in near[:2] if likeness(str(word), name) >= least]
        return "did you mean " + " or ".join(f"`{name}`" for name in likely) + "?"
    if 0 < len(names) <= 24:
        return "known: " + ", ".join(names)
    return None


CODES: dict[str, str] = {
    # The text itself.
    "yaml.syntax": "The text is not valid YAML; the message says where parsing stopped.",
    "yaml.empty": "The text of the loop is empty.",
    "yaml.not_a_mapping": "The document is a list or a single value; a loop is a mapping.",
    "yaml.too_large": "The text exceeds the size limit of a loop.",
    "yaml.too_deep": "Values are nested too deeply.",
    "yaml.too_many_values": "The text has too many values once its aliases are expanded.",
    "yaml.duplicate_key": "A mapping has the same key twice.",
    "yaml.character": "A string contains half of a character (a lone surrogate).",
    "yaml.key": "A key is not plain text.",
    "yaml.tab": "A tab is used where YAML requires spaces.",
    "yaml.tag": "A YAML tag (`!name`) is used; loops have none.",
    "yaml.alias": "An alias (`*name`) has no anchor before it, or is inside its own anchor.",
    "yaml.merge_key": "A merge key (`<<`) is used, which YAML 1.2 does not have.",
    "yaml.several_documents": "The text contains more than one document.",
    "yaml.not_finite": "A number is not finite (NaN or infinity) or too large.",
    # The version of the language.
    "version.missing": "The key `coloop`, the version of the language, is missing.",
    "version.newer": "The file uses a newer version of the language than this program supports.",
    "version.unknown": "The version of the language does not exist.",
    # Fields and values.
    "structure.unknown_field": "A key is not known here.",
    "structure.missing_field": "A required key is missing.",
    "structure.wrong_type": "A value has the wrong type, e.g. text where a number is expected.",
    "structure.unknown_kind": "A node kind does not exist.",
    "structure.unknown_value": "A value is not one of the allowed ones.",
    "structure.bad_value": "A value has the right type but is not valid.",
    "structure.bad_name": "The name of a node, phase or pool is not allowed.",
    "structure.bad_edge": "An edge is not written as `node.port -> node.port`.",
    "structure.conflict": "Two fields exclude each other, or a field does not belong here.",
    "structure.unknown_path": "A path does not exist in the loop.",
    "structure.not_hot": "A path in `set`, `anneal`, a trigger or an edit cannot change during a "
    "run.",
    "numbers.out_of_range": "A number is outside its allowed range.",
    # The graph: edges, inputs, circles.
    "structure.unknown_node": "A node is named that does not exist.",
    "structure.unknown_port": "A port is named that this kind of node does not have.",
    "structure.type_mismatch": "An edge connects ports of different types.",
    "structure.too_many_edges": "A port has more edges than it accepts.",
    "structure.duplicate_edge": "The same edge appears twice.",
    "structure.duplicate_id": "Several edges have the same id.",
    "structure.duplicate_phase": "Several phases have the same name.",
    "structure.misplaced_option": "An option of an edge has no effect there.",
    "structure.missing_edge": "A required input has no edge.",
    "structure.unread_input": "An input is connected that the node does not use.",
    "structure.output_without_input": "A filter or buffer is read, but nothing is connected to its "
    "input.",
    "structure.silent_output": "An output is read that this node, with its settings, never "
    "produces.",
    "structure.unused_setting": "A setting has no effect because what it applies to is missing.",
    "structure.unreadable_verdict": (
        "Scores of a verdict are used, but no setting defines how to parse it."
    ),
    "structure.unused_node": "A node contributes to nothing that is learned, stored or measured.",
    "structure.cycle": "Nodes depend on each other within one step.",
    "structure.handle_cycle": "Nodes call each other endlessly.",
    "structure.rounds_without_circle": "An edge has `rounds` but closes no cycle.",
    "structure.rounds_differ": "Edges of the same cycle disagree about its rounds.",
    "structure.rounds_without_entry": "Nothing enters a cycle of rounds.",
    "structure.rounds_never_close": "The edge that closes a cycle of rounds never carries rows.",
    "structure.rounds_explode": "A tree over rounds grows too large.",
    "structure.fill_start": "A refill starts at a node that its rows do not come from.",
    "structure.fill_region": "A node that a refill runs again learns, or has its own refill.",
    # Names in fields.
    "structure.wrong_kind": "A node of another kind is expected here.",
    "structure.unknown_phase": "A phase is named that does not exist.",
    "structure.unknown_metric": "A metric is named that nothing reports.",
    "structure.group_not_ancestor": "Groups are named after a node that the rows do not descend "
    "from.",
    "structure.probe_aside": "A probe replaces rows that none of its measurements depend on.",
    "structure.never_measured": "An evaluation reads tables that no step produces.",
    # Columns and scores.
    "structure.unknown_column": "A column is read that the rows do not have.",
    "structure.ambiguous_column": "A column name without its node matches two columns equally "
    "well.",
    "structure.unknown_score": "A score is read that is not connected.",
    "structure.name_clash": "A name is both a node and a column of the same rows.",
    "structure.no_task": "The checker of a task is used on rows that do not come from a task.",
    # Texts and code.
    "text.template_syntax": "A Jinja template is invalid.",
    "text.code_syntax": "Python code does not compile.",
    "text.code_function": "Python code does not define the function that is called.",
    "text.code_import": "Python code imports a module that is neither beside it nor installed.",
    "text.code_closed": "Python code calls a function that the sandbox does not allow.",
    "text.pattern": "A regular expression is invalid.",
    "text.pattern_groups": "A regular expression lacks a group that is used.",
    # Data.
    "data.missing_file": "A file or folder does not exist.",
    "data.outside": "A path leads outside the folders that loops may read.",
    "data.unknown_format": "The format of a file is not known.",
    "data.unreadable": "A file cannot be read in its format.",
    "data.empty": "A source has no rows.",
    "data.missing_column": "A mapped column is missing from the source, or from some of its rows.",
    "data.partial_column": "A column is missing from some rows.",
    "data.unseen_column": "A column is missing from all rows of a large file that were sampled.",
    "data.schema": "A JSON schema has an unsupported keyword or format, or an invalid value.",
    # Learning.
    "learning.no_algorithm": "A teaching port is connected, but the node has no algorithm for it.",
    "learning.algorithm_unused": "An algorithm is set for a port that nothing is connected to.",
    "learning.other_head": "An algorithm trains a score head, but the model is used to generate, "
    "or the other way round.",
    "learning.missing_reference": "An algorithm needs a reference (`kl`, preferences), and none is "
    "connected.",
    "learning.missing_values": "An algorithm needs values of a critic, and none is connected.",
    "learning.missing_prior": "An implicit process reward model has no prior.",
    "learning.reference_elsewhere": "The connected reference does not score any of the rows that "
    "are learned.",
    "learning.values_elsewhere": "The connected critic does not score any of the rows that are "
    "learned.",
    "learning.partly_seen": "The connected reference or critic scores only some of the rows that "
    "are learned; the others are dropped from the update.",
    "learning.label_kind": "Labels are for whole texts where the algorithm learns from labels of "
    "steps, or the other way round.",
    "learning.soft_pairs": "Pairs carry a preference as a probability, but the algorithm treats "
    "every pair as certain.",
    "learning.unread_input": "A reference or critic is connected that no algorithm uses.",
    "learning.no_own_rollouts": "The algorithm learns from rewards of its own rollouts, but the "
    "learner generates none.",
    "learning.no_greedy_row": "A greedy baseline needs a greedy completion, and there is none.",
    "learning.group_of_one": "Rows are compared within groups, and every group has one row.",
    "learning.equal_scores": "Rows are compared within groups, and all of them have the same "
    "score.",
    "learning.rounds_forgotten": "Credit over rounds needs the rounds of each row, which rows of a "
    "buffer no longer have.",
    "learning.split_groups": "A buffer balances by a value that differs within the groups that are "
    "compared.",
    "learning.no_pairs": "Completions of one prompt are paired, but each prompt has only one.",
    "learning.reference_follows": "A reference shares the weights that are trained against it.",
    "learning.class_weights_scorer": "Class weights name a scorer that no reward comes from.",
    "learning.every_weight_zero": "Every edge into a live teaching port, or every score of a "
    "weighted sum, has weight 0.",
    "learning.cut_rows": "Rows that a filter drops for one reward are still learned from another.",
    "learning.dropout": "A model has dropout, which is disabled unless it learns from given texts.",
    "learning.companion": "An algorithm lacks the filter or penalty that it is usually used with.",
    "learning.no_ratio": "A loss without an importance ratio takes several optimizer steps on the "
    "same rows.",
    "learning.second_optimizer": "A weights group would have two optimizers.",
    "learning.snapshot_trains": "A snapshot cannot be trained.",
    "learning.adapter_base": "An adapter is based on weights that change.",
    "learning.adapter_idle": "Nothing trains an adapter.",
    "learning.weights_circle": "Weights depend on each other in a cycle.",
    "learning.no_weights": "A node without weights cannot learn.",
    "learning.nothing_to_train": "A node has a `training` section, but does not learn.",
    "learning.frozen_scratch": "A model with random weights is used, and nothing trains it.",
    "learning.updates": "Roles that train the same weights in one stage disagree on how often to "
    "repeat the update.",
    "learning.order": "`order` does not name exactly the roles that train one weights group.",
    # Time.
    "learning.no_teaching_port": "A teaching port is named that nothing is connected to.",
    "learning.never_live": "A connected teaching port is not live in any phase.",
    "learning.no_goal": "A phase neither learns, fills a buffer nor measures.",
    "learning.measures_only": "A phase neither learns nor fills a buffer; only evaluations run.",
    "learning.bare_learner": "A phase names a learner without its port.",
    "learning.epochs_source": "It is ambiguous which source's epochs are counted.",
    "learning.until_without_cap": "A phase waits for a buffer without a maximum number of steps.",
    "learning.buffer_never_fills": "A buffer that a phase fills can never be full, or receives no "
    "rows.",
    "learning.buffer_never_written": "A buffer is read that no phase fills.",
    "learning.staleness_one_pool": "Off-policy rows are allowed, but generation and learning share "
    "a pool.",
    "learning.before_score": "A node is set to learn before it scores, but it does not score.",
    "learning.best_unknown": (
        "The best checkpoint is used, but no metric defines which one is best."
    ),
    # Numbers.
    "numbers.divisibility": "Numbers of rows, ranks or heads do not divide evenly.",
    "numbers.large_step": "A step uses more rows than the source has, or would take hours.",
    "numbers.too_long": "Prompt and completion may not fit into the model's context.",
    "numbers.mini_batch": "A mini-batch is larger than the step's rows.",
    "numbers.learning_rate": "A learning rate is far outside the usual range.",
    "numbers.product_of_logits": "Step scores are multiplied although they are not probabilities.",
    "numbers.warmup": "A warm-up is as long as its phase.",
    "numbers.empty_band": "The bounds of a filter rule exclude every value.",
    "numbers.buffer": "A buffer should return more rows than it can hold.",
    "numbers.search_budget": "The budget of a search does not cover its first completions.",
    "numbers.fill_unreachable": "A refill waits for more rows than all its passes can produce.",
    "numbers.samples": "A metric needs more samples than are drawn.",
    "numbers.adapter_rank": "The rank of an adapter is as large as a matrix that it adapts.",
    "numbers.no_exploration": "The rows that are compared are all the same greedy completion.",
    # Placement and memory.
    "placement.unknown_preset": "A name of hardware, a GPU, an architecture, an environment or a "
    "checker is not known.",
    "placement.unknown_pool": "A pool is named that does not exist.",
    "placement.unused_pool": "Nothing runs in a pool.",
    "placement.wrong_unit": "A pool counts GPUs on a CPU, or workers on GPUs.",
    "placement.pools_too_large": "The pools need more than the hardware has.",
    "placement.engine": "An engine cannot run this model on this hardware.",
    "placement.needs_gpu": "A setting works on GPUs only.",
    "memory.over_budget": "A GPU needs more memory than the budget allows.",
    "memory.unknown": "The size of a model is not known, so memory and time cannot be estimated.",
    "memory.guessed": "Memory and time of a model are a rough guess.",
    # Lineage: which rows descend from which.
    "lineage.missing_aggregate": "A score is passed to an ancestor, or to another branch, without "
    "`aggregate`.",
    "lineage.no_common_ancestor": "Rows that are joined or scored have no common ancestor.",
    "lineage.aggregate_without_rows": "A score is aggregated, but no rows receive it.",
    "lineage.positions": "Scores of steps go to rows whose text has other steps.",
    "lineage.gather_without_ancestor": "Rows are gathered by a node that they do not descend from.",
    "lineage.rows_meet": "The same rows arrive twice with different texts where each row counts "
    "once.",
    "lineage.scores_meet": "Several scorers score the rows of a buffer whose scores are read.",
    # What comes from outside.
    "foreign.not_allowed": "A model ships Python code, and the owner of this server does not allow "
    "it.",
    "foreign.model_code": "A model ships Python code, which would run in the engine.",
    "foreign.architecture": "The architecture of a model is not supported.",
    "foreign.service": "A service is named that runs on this machine may not call.",
    "foreign.secret": "A service needs a secret that is not set in this environment.",
    # What the compiler and a run say.
    "run.not_yet_runnable": "The loop is valid, but `run` refuses a part of it: this version does "
    "not support it, or a setting has no effect.",
}

UNFINISHED: frozenset[str] = frozenset(
    {
        "structure.missing_edge",
        "structure.output_without_input",
        "structure.unused_node",
        "learning.no_algorithm",
        "learning.algorithm_unused",
        "learning.missing_reference",
        "learning.missing_values",
        "learning.missing_prior",
        "learning.adapter_idle",
        "learning.nothing_to_train",
        "learning.frozen_scratch",
        "learning.no_goal",
    }
)
"""Codes of what is missing while a loop is still being drawn: drawing further fixes them. They keep
their severity, but are shown as the next step rather than as a mistake."""
