"""The text of a row that is scored or learned: a rollout's tokens, or `target` after `prompt`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from coloop.algorithms.batch import Pair, Prompt, Text, completion_sequence, completion_sequences
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.distributions import Teacher, Words
from coloop.data.tables import ABSENT, Row, Table, Tokens
from coloop.data.tables.row import child_row
from coloop.errors import DataError, RequestRefused
from coloop.runtime.roles.protocol import Call, Context, N, NodeRole, Outcome
from coloop.runtime.roles.rows.scored import check_tokens
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.rollout import OnSync, Rollout
from coloop.workers.messages import Sampling, TooLong

SIDES = ("chosen", "rejected")
"""The sides of a pair."""
TOOLS = "tools"
"""Column with the functions that the assistant of a chat may call."""


def as_read(row: Row, **asked: Any) -> TokenSequence:
    """A row as a sequence for scoring, without its log-probs. `asked`: further fields."""
    no_numbers = {} if row.tokens is None else {"log_probs_rollout": None}
    return as_sequence(row, **no_numbers, **asked)


def as_sequence(row: Row, **learned: Any) -> TokenSequence:
    """A row as a sequence: a rollout with its tokens, any other row with its target after its
    prompt. `learned`: further fields; numbers per token are of the completion."""
    if row.tokens is not None:
        return drawn_sequence(row.id, row.tokens, version=row.version, **learned)
    return TokenSequence(id=row.id, text=_imitated(row), **learned)


def _imitated(row: Row) -> Text:
    """The target after the prompt; a list of messages without a prompt is a whole chat."""
    target = _said(row, "target")
    is_whole = isinstance(target, list) and row.column("prompt") is ABSENT
    prompt = [] if is_whole else prompt_of(row)
    return Text(prompt=prompt, target=target, tools=tools_of(row))


def tools_of(row: Row) -> tuple[Mapping[str, Any], ...] | None:
    """Function schemas in column `tools`, None without any. Raises `DataError` if they are
    invalid."""
    tools = row.columns.get(TOOLS)
    if not isinstance(tools, list | str | Mapping):
        return None  # not there, or a number that a node of this name gave
    if isinstance(tools, list) and all(isinstance(tool, Mapping) for tool in tools):
        return tuple(tools)
    raise DataError(
        f"row {row.id}: column `{TOOLS}` must be a list of function schemas for the chat template, "
        f"found {repr(tools)[:80]}; give the column another name if it means something else",
        None,
        f"columns.{TOOLS}",
    )


def is_masked(row: Row, spec: LoopSpec) -> bool:
    """Whether the row was cut at its length limit and its node masks such rows (`truncated:
    mask`)."""
    rollout = getattr(spec.nodes.get(row.writer or ""), "rollout", None)
    is_cut = row.tokens is not None and row.columns.get("finished") is False
    return is_cut and rollout is not None and rollout.truncated == "mask"


def as_pair(
    row: Row,
    reference: Mapping[str, Numbers] | None = None,
    *,
    giver: Row | None = None,
    **learned: Any,
) -> Pair:
    """Both sides of a pair; a generated side keeps its tokens.

    Args:
        reference: log-probs of each side's completion by the reference.
        giver: another pair, whose sides follow this pair's prompt; None: the pair itself.
        learned: further fields of the pair.
    """
    known = reference or {}
    chosen, rejected = (_side(row, giver or row, side, known.get(side)) for side in SIDES)
    return Pair(id=row.id, chosen=chosen, rejected=rejected, **learned)


def strangers(rows: Sequence[Row]) -> dict[str, Row]:
    """For each pair, by id, the next one with another prompt, cyclically; empty if all have the
    same."""
    prompts = [prompt_of(row) for row in rows]
    others: dict[str, Row] = {}
    for here in reversed([*range(len(rows))] * 2):
        after = (here + 1) % len(rows)
        stranger = others.get(rows[after].id) if prompts[after] == prompts[here] else rows[after]
        if stranger is not None:
            others[rows[here].id] = stranger
    return others


def _side(row: Row, giver: Row, side: str, reference: Numbers | None) -> TokenSequence:
    """This side of the giver after the row's prompt."""
    own, given = row.columns.get(f"{side}_tokens"), giver.columns.get(f"{side}_tokens")
    if isinstance(own, Tokens) and isinstance(given, Tokens):
        drawn = replace(given, prompt_ids=own.prompt_ids)
        return drawn_sequence(row.id, drawn, log_probs_reference=reference)
    prompt = row.columns.get(f"{side}_prompt") or prompt_of(row)
    text = Text(prompt=prompt, target=_said(giver, side), tools=tools_of(row))
    return TokenSequence(id=row.id, text=text, log_probs_reference=reference)


def drawn_sequence(name: str, tokens: Tokens, **learned: Any) -> TokenSequence:
    """A policy's completion as a sequence with this id. `learned`: further fields; numbers per
    token are of the completion."""
    return completion_sequence(
        id=name,
        prompt_ids=tokens.prompt_ids,
        completion_ids=tokens.token_ids,
        loss_mask=tokens.loss_mask,
        writer=tokens.writer,
        tokenizer=tokens.tokenizer,
        **{"log_probs_rollout": tokens.log_probs, **learned},
    )


def drawn_sequences(
    rows: Sequence[Row], texts: Sequence[Tokens], **learned: Sequence[Any]
) -> tuple[TokenSequence, ...]:
    """Completions as sequences, like `drawn_sequence` for many rows. `texts`: of the rows.
    `learned`: further fields, one value per row."""
    return completion_sequences(
        ids=[row.id for row in rows],
        prompt_ids=[text.prompt_ids for text in texts],
        completion_ids=[text.token_ids for text in texts],
        loss_masks=[text.loss_mask for text in texts],
        fields={
            "log_probs_rollout": [text.log_probs for text in texts],
            "writer": [text.writer for text in texts],
            "tokenizer": [text.tokenizer for text in texts],
            "version": [row.version for row in rows],
            "temperature": [text.temperature for text in texts],
            **learned,
        },
    )


def prompt_of(row: Row, node: str | None = None) -> Prompt:
    """The prompt of a row, a text or a chat. Raises `DataError` if it has none."""
    return _said(row, "prompt", node)


def _said(row: Row, column: str, node: str | None = None) -> Prompt:
    value = row.column(column)
    if isinstance(value, str | list):
        return value
    where = "" if node is None else f"{node}: "
    what = "is not there" if value is ABSENT else f"is a {type(value).__name__}"
    raise DataError(
        f"{where}row {row.id} has no text or chat in column `{column}`: it {what}; its columns are "
        f"{', '.join(sorted(row.columns)) or 'none'}; map it with `columns: {{{column}: ...}}` at "
        "the dataset, or write it in a template",
        node,
        f"columns.{column}",
    )


# Log-probs of texts by the weights of a node, each at the temperature at which it was sampled, like
# the log-probs from generation.


def heat_of(row: Row) -> float:
    """The temperature for log-probs of a row: the one it was sampled with, or 1."""
    return (row.tokens.temperature if row.tokens else 1.0) or 1.0


def distributions_of(
    node: str,
    rows: Sequence[Row],
    context: Context,
    words: Words,
    *,
    temperature: float | None = None,
    under: Mapping[str, Row] | None = None,
) -> dict[str, Teacher | TooLong]:
    """What a node says of the trained tokens of rows, and of other words there, by row id.

    `temperature`: of all rows; None: that at which each was sampled. `under`: as for
    `log_probs_of`.
    """
    hosts, group = context.hosts, context.groups[node]
    said: dict[str, Teacher | TooLong] = {}
    for heat, own in _by_heat(rows, temperature).items():
        texts = [_read_under(row, under) for row in own]
        replies = hosts.distributions(group, node, texts, heat, words)
        said.update(zip((row.id for row in own), replies, strict=True))
    return {row.id: said[row.id] for row in rows}


def _by_heat(rows: Sequence[Row], temperature: float | None = None) -> dict[float, list[Row]]:
    by_heat: dict[float, list[Row]] = {}
    for row in rows:
        heat = heat_of(row) if temperature is None else temperature
        by_heat.setdefault(heat, []).append(row)
    return by_heat


def _read_under(row: Row, under: Mapping[str, Row] | None) -> TokenSequence:
    if under is None:
        return as_read(row)
    asking = under[row.id]
    text = Text(prompt=prompt_of(asking), target="", tools=tools_of(asking))
    return as_read(row, under=text)


def log_probs_of(
    node: str, rows: Sequence[Row], context: Context, under: Mapping[str, Row] | None = None
) -> dict[str, Numbers | TooLong]:
    """Log-probs of rows by a node's weights, by row id; one call per temperature.

    `under`: for each row, by its id, the row whose prompt its completion is read after; None: its
    own.
    """
    hosts, group = context.hosts, context.groups[node]
    log_probs: dict[str, Numbers | TooLong] = {}
    for temperature, own in _by_heat(rows).items():
        scored = hosts.score(group, node, [_read_under(row, under) for row in own], temperature)
        log_probs.update(zip((row.id for row in own), scored, strict=True))
    return {row.id: log_probs[row.id] for row in rows}


# Rows that are longer than a model's positions are dropped and counted, never cut. If no row of a
# run has fitted yet, the run ends with an error.
#
# Rows are counted per node: its prompts, and the rows that it scores or learns.


@dataclass(eq=False)
class Fits:
    """Counts rows that are too long for a node's model."""

    node: str
    code: str
    """Code of the alert."""
    what: str
    """What the rows are, in words: `prompts`."""
    hint: str
    """Which fields make them fit."""
    _has_fitted: bool = field(default=False, init=False)

    def count(
        self, replies: Collection[object], rows: int | None = None, *, is_probe: bool = False
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Metrics and alerts about rows that were left out as too long. `rows`: their number; None:
        that of the replies. Raises `RequestRefused` if none fits and none has before in this run,
        except for a probe's rows."""
        left_out = [reply for reply in replies if isinstance(reply, TooLong)]
        rows = len(replies) if rows is None else rows
        self._has_fitted |= len(left_out) < rows and not is_probe
        if not left_out:
            return {}, []
        longest = max(left_out, key=lambda reply: reply.tokens)
        why = (
            f"the longest needs {longest.tokens} tokens, the model has {longest.limit} positions; "
            f"{self.hint}"
        )
        if len(left_out) == rows and not self._has_fitted and not is_probe:
            raise RequestRefused(f"{self.node}: all {rows} {self.what} are too long: {why}")
        message = f"{self.node}: {len(left_out)} of {rows} {self.what} are dropped: {why}"
        return {f"{self.what}/too_long": float(len(left_out))}, [(self.code, message)]

    def state(self) -> dict[str, Any]:
        return {"has_fitted": self._has_fitted}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._has_fitted = bool(state.get("has_fitted"))


class FittingRole(NodeRole[N]):
    """A role with a model, which remembers whether any rows have fitted it."""

    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self._fits = rows_of(node)

    def _of_tokens(
        self,
        port: Literal["log_probs", "values"],
        rows: Sequence[Row],
        replies: Mapping[str, Any],
        call: Call,
    ) -> Outcome:
        """The model's numbers per token of each row, without rows that are too long. `replies`: by
        row id, numbers, those of each side of a pair, or `TooLong`."""
        metrics, alerts = self._fits.count(replies.values(), len(rows), is_probe=call.is_probe)
        numbers = {key: own for key, own in replies.items() if not isinstance(own, TooLong)}
        by_text = [
            (row_id, text)
            for row_id, own in numbers.items()
            for text in (own.values() if isinstance(own, dict) else (own,))
        ]
        check_tokens(self._node, port.replace("_", "-"), by_text)
        known = tuple(row for row in rows if row.id in numbers)
        of_port: dict[str, Any] = {port: numbers}
        return Outcome(
            outputs={port: Table(rows=known, **of_port)},
            samples=len(known),
            tokens=sum(len(text) for _, text in by_text),
            metrics=metrics,
            alerts=alerts,
        )

    def state(self) -> dict[str, Any]:
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fits.load_state(state)


def prompts_of(node: str) -> Fits:
    hint = "shorten the prompts, or lower `rollout.max_new_tokens`, which share the context"
    return Fits(node, "prompts.too_long", "prompts", hint)


def rows_of(node: str) -> Fits:
    hint = "shorten the rows, or set `model` to one with a longer context"
    return Fits(node, "rows.too_long", "rows", hint)


# Completions as rows, and sampling settings.


def rollout_row(
    node: str,
    parent: Row,
    k: int,
    tokens: Tokens,
    prompt: Prompt,
    columns: Mapping[str, Any],
    key: str | None = None,
) -> Row:
    """A completion as the k-th child of a row. `columns`: further ones, or replacements. `key`: the
    last part of its id; None: k."""
    own = {
        "completion": tokens.text,
        "length": len(tokens.token_ids) - tokens.heard,
        "finished": tokens.finished,
        **columns,
    }
    version = tokens.version
    return child_row(node, parent, k, own, tokens=tokens, version=version, key=key, prompt=prompt)


def sampling_of(
    rollout: Rollout,
    *,
    temperature: float | None = None,
    on_sync: OnSync = "finish",
    stop: Sequence[str] = (),
) -> Sampling:
    """Sampling settings of a node. `temperature`: instead of the node's; `stop`: further stop
    texts."""
    return Sampling(
        max_new_tokens=rollout.max_new_tokens,
        temperature=rollout.temperature if temperature is None else temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        stop=(*as_tuple(rollout.stop), *stop),
        on_sync=on_sync,
        mask=rollout.mask,
    )
