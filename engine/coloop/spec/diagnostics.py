"""Findings about a loop: what was found, what is expected, where, and how to mend it.

A `Diagnostic` has a stable `code` out of `CODES`; a code that is not listed there is refused when
the diagnostic is made. This module knows nothing of the spec: places are paths in words of the
YAML.

Invariants: a diagnostic with a `node` has its `field` inside that node; without a node `field` is
a full path such as `edges.3` or `schedule.phases.1.steps`. Lines and columns count from 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator


class Severity(StrEnum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Change(BaseModel):
    """One edit of a loop document, in words of its paths."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    op: Literal["set", "remove", "insert", "rename", "add_edge", "remove_edge"]
    """`set`, `remove` a value; `insert` before a list position; `rename` a key; edges by text."""
    path: str
    """What is changed, e.g. `nodes.actor.training.optimizer.lr`, `edges.3`."""
    value: Any = None
    """The new value (`rename`: the new key; `add_edge`: the edge as text or mapping)."""


class Fix(BaseModel):
    """A repair that one click applies."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    title: str
    """What the button says."""
    changes: tuple[Change, ...]
    """The edits, applied in this order."""


class Diagnostic(BaseModel):
    """One finding about a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    code: str
    """A key of `CODES`."""
    severity: Severity = Severity.ERROR
    """Errors stop a run; warnings want a look; hints cost nothing to ignore."""
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
    """Repairs that one click applies."""

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
        """The findings that want a look."""
        return tuple(found for found in self.diagnostics if found.severity is Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        """The shape of `coloop validate --json`."""
        return {
            "ok": self.ok,
            "diagnostics": [found.model_dump(mode="json") for found in self.diagnostics],
        }


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
    "yaml.syntax": "The text is no YAML; the message says where reading stopped.",
    "yaml.empty": "The text holds no document.",
    "yaml.not_a_mapping": "The document is a list or a single value; a loop is a mapping.",
    "yaml.too_large": "The text is longer than a loop can be.",
    "yaml.too_deep": "Values are nested deeper than a loop can be.",
    "yaml.too_many_values": "The text, aliases written out, holds more values than a loop can.",
    "yaml.duplicate_key": "A key stands twice in one mapping.",
    "yaml.character": "A text holds half of a character (a lone surrogate).",
    "yaml.key": "A key is no plain text.",
    "yaml.tab": "A tab stands where YAML wants spaces.",
    "yaml.tag": "A YAML tag (`!name`) is used; the loop language has none.",
    "yaml.alias": "An alias (`*name`) has no anchor before it, or stands inside its own anchor.",
    "yaml.merge_key": "A merge key (`<<`) is used, which YAML 1.2 does not have.",
    "yaml.several_documents": "The text holds more than one document.",
    "yaml.not_finite": "A number is not finite (NaN or infinity) or too large.",
    # The version of the language.
    "version.missing": "The key `coloop`, the version of the language, is missing.",
    "version.newer": "The file is of a newer version of the language than this program.",
    "version.unknown": "The version of the language is no number that was ever given out.",
    # Fields and values.
    "structure.unknown_field": "A key that this part of the language does not have.",
    "structure.missing_field": "A key that must be there is missing.",
    "structure.wrong_type": "A value of the wrong type, e.g. text where a number is expected.",
    "structure.unknown_kind": "A node kind that does not exist.",
    "structure.unknown_value": "A word that is not among the allowed ones.",
    "structure.bad_value": "A value of the right type that cannot be meant.",
    "structure.bad_name": "A node, phase or pool name that is not allowed.",
    "structure.bad_edge": "An edge that is not written as `node.port -> node.port`.",
    "structure.conflict": "Two fields that exclude each other, or one that does not belong here.",
    "structure.unknown_path": "A path that names no value of the loop.",
    "structure.not_hot": "A path in `set`, `anneal`, a trigger or an edit that is fixed in a run.",
    "numbers.out_of_range": "A number outside of its bounds.",
    # The graph: edges, inputs, circles.
    "structure.unknown_node": "A node is named that does not exist.",
    "structure.unknown_port": "A port is named that nodes of this kind do not have.",
    "structure.type_mismatch": "An edge joins ports of different types.",
    "structure.too_many_edges": "A port has more edges than it takes.",
    "structure.duplicate_edge": "The same edge is there twice.",
    "structure.duplicate_id": "One id names several edges.",
    "structure.duplicate_phase": "One name names several phases.",
    "structure.misplaced_option": "An option of an edge does nothing where it stands.",
    "structure.missing_edge": "An input that is needed has no edge.",
    "structure.unread_input": "An input is connected that the node does not look at.",
    "structure.output_without_input": "A filter or buffer is read where nothing comes in.",
    "structure.silent_output": "An output is read that this node, as it is set, never gives.",
    "structure.unused_setting": "A setting waits for something that is not there.",
    "structure.unreadable_verdict": "Scores of a verdict are used that nothing says how to read.",
    "structure.unused_node": "A node has no part in what is learned, kept or measured.",
    "structure.cycle": "Nodes wait for one another within one step.",
    "structure.handle_cycle": "Nodes call one another without end.",
    "structure.rounds_without_circle": "An edge has `rounds` but closes no circle.",
    "structure.rounds_differ": "Edges of one region of rounds disagree.",
    "structure.rounds_without_entry": "Nothing enters a region of rounds.",
    "structure.rounds_never_close": "What closes a region of rounds never brings rows to it.",
    "structure.rounds_explode": "A tree over rounds grows beyond every measure.",
    "structure.fill_start": "A refill begins at a node from which its rows do not come.",
    "structure.fill_region": "What a refill runs again learns, or has a refill of its own.",
    # Names in fields.
    "structure.wrong_kind": "A node is named that is not of the kind that is expected there.",
    "structure.unknown_phase": "A phase is named that does not exist.",
    "structure.unknown_metric": "A metric is named that nobody reports.",
    "structure.group_not_ancestor": "Groups are named after a node from which the rows do not "
    "descend.",
    "structure.probe_aside": "A probe replaces rows on which nothing that it measures depends.",
    "structure.never_measured": "An evaluation reads tables that no step has.",
    # Columns and scores.
    "structure.unknown_column": "A column is read that the rows cannot give.",
    "structure.ambiguous_column": "A bare column name has two nearest values.",
    "structure.unknown_score": "A score is read that is not connected.",
    "structure.name_clash": "A name is both a node and a column of its lineage.",
    "structure.no_task": "A task's checker is asked about rows that come from no task.",
    # Texts and code.
    "text.template_syntax": "A Jinja text cannot be read.",
    "text.code_syntax": "Python code does not compile.",
    "text.code_function": "Python code does not define what is called.",
    "text.code_import": "Python code imports what is neither beside it nor installed.",
    "text.code_closed": "Python code calls what its limited process has none of.",
    "text.pattern": "A regular expression cannot be read.",
    "text.pattern_groups": "A regular expression lacks the groups that are read.",
    # Data.
    "data.missing_file": "A file or folder that is named does not exist.",
    "data.outside": "A path leads out of the folder that loops may read.",
    "data.unknown_format": "It cannot be told how a file is written.",
    "data.unreadable": "A file cannot be read in its format.",
    "data.empty": "A source has no rows.",
    "data.missing_column": "A mapped column is not in the source, or not in every row of it.",
    "data.partial_column": "A column that every row should have is missing in some.",
    "data.unseen_column": "No row of a large file has a column, as far as it was looked at.",
    "data.schema": "A JSON schema has a keyword or a format that is not known, or a wrong value.",
    # Learning.
    "learning.no_algorithm": "A teaching port is connected, but the node has no algorithm for it.",
    "learning.algorithm_unused": "An algorithm stands at a port to which nothing is connected.",
    "learning.other_head": "An algorithm teaches what the node's model is not asked for: a score "
    "where words are read, or the other way round.",
    "learning.missing_reference": "An algorithm reads a reference (`kl`, preferences), and none "
    "is connected.",
    "learning.missing_values": "An algorithm reads values of a critic, and none is connected.",
    "learning.missing_prior": "An implicit process reward model has no prior.",
    "learning.reference_elsewhere": "The connected reference sees none of the rows that are "
    "learned.",
    "learning.values_elsewhere": "The connected critic sees none of the rows that are learned.",
    "learning.partly_seen": "The connected reference or critic sees some of the rows that are "
    "learned, and the others leave the update.",
    "learning.label_kind": "Labels of whole texts come where labels of steps are learned, or the "
    "other way round.",
    "learning.soft_pairs": "Pairs that keep a preference as a probability go to an algorithm that "
    "takes each pair as sure.",
    "learning.unread_input": "A reference or critic is connected that no algorithm reads.",
    "learning.no_own_rollouts": "Rewards are of own rollouts, and the learner writes none.",
    "learning.no_greedy_row": "A greedy baseline has no greedy answer to compare with.",
    "learning.group_of_one": "Rows of a group are compared, and every group has one row.",
    "learning.equal_scores": "Rows of a group are compared, and all of them have one score.",
    "learning.rounds_forgotten": "Credit over rounds is asked of rows of a buffer: it has none.",
    "learning.split_groups": "A buffer balances by what differs among rows that are compared.",
    "learning.no_pairs": "Completions of one prompt are to be paired, and there is one of each.",
    "learning.reference_follows": "A reference shares the weights that are held to it.",
    "learning.class_weights_scorer": "Class weights name a scorer from which no reward comes.",
    "learning.every_weight_zero": "Every edge into a live teaching port, or every score of a "
    "weighted sum, has weight 0.",
    "learning.cut_rows": "Rows that a filter cuts on the way of one reward learn from another.",
    "learning.dropout": "A model has dropout, which is off while it learns from other than texts.",
    "learning.companion": "An algorithm lacks the filter or penalty that it is known with.",
    "learning.no_ratio": "A loss without a ratio learns one row set in several optimizer steps.",
    "learning.second_optimizer": "A weights group would have a second optimizer.",
    "learning.snapshot_trains": "A snapshot is to be trained.",
    "learning.adapter_base": "An adapter stands on weights that do not stay as they are.",
    "learning.adapter_idle": "Nothing teaches an adapter.",
    "learning.weights_circle": "Weights come from one another in a circle.",
    "learning.no_weights": "Something is taught to a node that has no weights.",
    "learning.nothing_to_train": "A `training` section stands where nothing learns.",
    "learning.frozen_scratch": "Random weights are used that nothing teaches.",
    "learning.updates": "Roles that learn on the same weights in one stage repeat it differently.",
    "learning.order": "`order` does not name the learning roles of one weights group.",
    # Time.
    "learning.no_teaching_port": "A teaching port is named to which nothing is connected.",
    "learning.never_live": "No phase makes a connected teaching port live.",
    "learning.no_goal": "A phase learns, fills and measures nothing.",
    "learning.measures_only": "A phase learns and fills nothing; only evaluations run.",
    "learning.bare_learner": "A phase names a learner without saying which of its ports.",
    "learning.epochs_source": "It is not clear of which source epochs are counted.",
    "learning.until_without_cap": "A phase waits for a buffer without a cap of steps.",
    "learning.buffer_never_fills": "A buffer that a phase fills can never be full, or gets no "
    "rows.",
    "learning.buffer_never_written": "A buffer is read that no phase writes.",
    "learning.staleness_one_pool": "Late rows are allowed, but generation and learning share a "
    "pool.",
    "learning.before_score": "A node is to learn before it scores, but it scores nothing.",
    "learning.best_unknown": "The best checkpoint is asked for, and nothing says which one that "
    "is.",
    # Numbers.
    "numbers.divisibility": "Two numbers of rows, ranks or heads do not divide.",
    "numbers.large_step": "A step takes more rows than there are, or more than hours.",
    "numbers.too_long": "What may be written does not fit into the model's positions.",
    "numbers.mini_batch": "A mini-batch is larger than the rows of a step.",
    "numbers.learning_rate": "A learning rate is out of any sane range.",
    "numbers.product_of_logits": "Steps are multiplied by numbers that are no chances.",
    "numbers.warmup": "A warm-up is as long as the phase that it is in.",
    "numbers.empty_band": "The bounds of a filter rule exclude every number.",
    "numbers.buffer": "A buffer is to give more rows than it holds.",
    "numbers.search_budget": "A search may not spend what its first texts cost.",
    "numbers.fill_unreachable": "A refill waits for more than all its passes can bring.",
    "numbers.samples": "A metric is of more samples than are drawn.",
    "numbers.adapter_rank": "An adapter is as wide as a matrix that it stands on.",
    "numbers.no_exploration": "Rows that are compared are all the same greedy text.",
    # Placement and memory.
    "placement.unknown_preset": "Hardware, a GPU, an architecture, an environment or a checker "
    "is not known.",
    "placement.unknown_pool": "A pool is named that does not exist.",
    "placement.unused_pool": "A pool in which nothing runs.",
    "placement.wrong_unit": "A pool counts GPUs on a CPU, or workers on GPUs.",
    "placement.pools_too_large": "The pools want more than the hardware has.",
    "placement.engine": "An engine cannot run this model on this hardware.",
    "placement.needs_gpu": "A setting works on GPUs only.",
    "memory.over_budget": "A GPU needs more memory than the budget allows.",
    "memory.unknown": "How large a model is, is not known: neither is its memory or time.",
    "memory.guessed": "Memory and time of a model are a guess.",
    # Lineage: which rows descend from which.
    "lineage.missing_aggregate": "A score has to rise to an ancestor, or cross to another "
    "branch, without `aggregate`.",
    "lineage.no_common_ancestor": "Rows are to be joined or scored that descend from nothing in "
    "common.",
    "lineage.aggregate_without_rows": "A score is to be aggregated where no rows receive it.",
    "lineage.positions": "Numbers at steps go to rows whose text has other steps.",
    "lineage.gather_without_ancestor": "Rows are to be gathered by a node from whose rows they "
    "do not descend.",
    "lineage.rows_meet": "The same rows come twice with different texts where a row counts once.",
    "lineage.scores_meet": "Several scorers score the rows of a buffer whose scores are read.",
    # What comes from outside.
    "foreign.not_allowed": "Python that a model brings, on a server whose owner does not allow it.",
    "foreign.model_code": "A model brings Python of its own, which would run in the engine.",
    "foreign.architecture": "A model is of a type that does not run here.",
    "foreign.service": "A service is named that runs on this machine may not call.",
    "foreign.secret": "A service wants a secret that is not in the environment here.",
    # What the compiler and a run say.
    "run.not_yet_runnable": "The loop is valid, but a part of it does not run: this version "
    "cannot, or it is a setting that nothing reads.",
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
"""Codes of what is not there yet while a loop is drawn: to go on drawing mends it. They weigh what
they weigh, but are no fault of what was drawn, and are told as the next step."""
