"""Keeps rows by rules, in its own outputs only; with `fill` it also decides whether it has enough
rows.
"""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from coloop.data.filtering import Decision, FilterRow, decide, resampled, spare_wanted
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table, concat_rows, join_rows
from coloop.runtime.roles.credit.credit_rows import group_keys, problem_of
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import by_scorer, deliveries, only_delivered, round_by_round
from coloop.spec.nodes import FilterNode
from coloop.spec.shaping import AccuracyBand, GroupMean, NonzeroVariance, PythonRule

PORTS = ("rows", "rollouts", "pairs", "scores")
GROUP_RULES = (AccuracyBand, GroupMean, NonzeroVariance)


class FilterRole(NodeRole[FilterNode]):
    def run(self, call: Call) -> Outcome:
        tables = {port: call.tables(port)[0] for port in PORTS if port in call.inputs}
        rows = self._rows(call)
        score = next(iter(deliveries(call, "scores", rows)), None)
        others = deliveries(call, "by", rows)
        rows = only_delivered(rows, [*others, *([score] if score is not None else [])])
        seen = [
            FilterRow(
                columns=row.columns,
                score=score[row.id] if score is not None else None,
                by=by,
                group=group_of(row),
                seed=self._seed(call, row.id) % 2**31,
            )
            for row, by in zip(rows, by_scorer(call, "by", others, rows), strict=True)
        ]
        decision = self._decide(rows, seen, call)
        kept = [rows[index] for index in decision.kept]
        counts = self._counts(kept, [seen[index] for index in decision.kept], call)
        if score is not None:
            own = {row.id: score[row.id] for row in rows}
            tables["scores"] = replace(tables["scores"], rows=rows, scores=own)
        outputs = self._outputs(tables, rows, kept, counts, call)
        groups = set(map(group_of, rows))
        return Outcome(
            outputs=outputs,
            samples=len(kept),
            metrics={
                "kept": len(kept) / len(rows) if rows else 0.0,
                "groups_kept": len({group_of(row) for row in kept}) / len(groups)
                if groups
                else 0.0,
            },
            detail={"rows": len(rows), "kept": len(kept), "cut_by": dict(decision.cut_by)},
            alerts=self._alerts(rows, decision, call.context),
            printed=self.take_printed(),
        )

    def _rows(self, call: Call) -> tuple[Row, ...]:
        """The rows to filter: the incoming rows with columns of the scored ones, or with scores
        alone, the scored rows. Scores of descendants add no rows."""
        context, inputs = call.context, dict(call.delivered("rows", "rollouts", "pairs"))
        for edge, table in call.delivered("scores").items():
            if not (inputs and context.lineage.attachment(edge).rises):
                inputs[edge] = table
        return concat_rows(
            [Table(rows=join_rows([*met.values()])) for met in round_by_round(context, inputs)]
        )

    def _alerts(
        self, rows: Sequence[Row], decision: Decision, context: Context
    ) -> list[tuple[str, str]]:
        if not rows or decision.kept or self._section(context).fill is not None:
            return []
        cut = ", ".join(f"{rule} cut {count}" for rule, count in decision.cut_by.items())
        return [("filter.kept_nothing", f"{self._node} kept none of {len(rows)} rows ({cut})")]

    def _decide(self, rows: Sequence[Row], seen: Sequence[FilterRow], call: Call) -> Decision:
        """Decide about the rows that are not greedy; a greedy row stays if any row of its group
        does. If all rows are greedy, the rules for single rows decide."""
        counted = [index for index, row in enumerate(rows) if not row.is_greedy]
        greedy = [index for index, row in enumerate(rows) if row.is_greedy]
        if not counted:
            return self._decided(greedy, rows, seen, call)
        decision = self._decided(counted, rows, seen, call)
        groups = {seen[index].group for index in decision.kept}
        beside = [index for index in greedy if seen[index].group in groups]
        return Decision(kept=tuple(sorted([*decision.kept, *beside])), cut_by=decision.cut_by)

    def _decided(
        self, places: Sequence[int], rows: Sequence[Row], seen: Sequence[FilterRow], call: Call
    ) -> Decision:
        """The decision about the rows at these indices, either all or none of which are greedy."""
        section = self._section(call.context)
        if not places:
            return Decision(kept=(), cut_by={rule.rule: 0 for rule in section.keep})
        in_groups = not rows[places[0]].is_greedy
        rules = {
            index: rule
            for index, rule in enumerate(section.keep)
            if in_groups or not isinstance(rule, GROUP_RULES)
        }
        tick = partial(call.tick, 0, len(places))
        per_group = section.per_group if in_groups and not call.is_probe else None
        row_of = {id(seen[index]): rows[index] for index in places}

        @cache
        def keys(names: tuple[str, ...]) -> Callable[[Row], Hashable]:
            return group_keys(self._node, call.context, names)

        def shared(row: FilterRow, names: tuple[str, ...]) -> Hashable:
            return row.group if not names else keys(names)(row_of[id(row)])

        decided = decide(
            [seen[index] for index in places],
            [*rules.values()],
            per_group,
            node=self._node,
            group_of=shared,
            runners=[
                self._sandbox_at(index, rule.code, "keep", tick)
                if isinstance(rule, PythonRule)
                else None
                for index, rule in rules.items()
            ],
        )
        return Decision(kept=tuple(places[index] for index in decided.kept), cut_by=decided.cut_by)

    def _seed(self, call: Call, what: str) -> int:
        return derive_seed(call.context.seed, self._node, call.salt, call.step, what)

    def _counts(
        self, kept: Sequence[Row], seen: Sequence[FilterRow], call: Call
    ) -> dict[str, int] | None:
        """With `resample`: how often each kept row was drawn. Greedy rows are not drawn. None: no
        resampling."""
        section = self._section(call.context).resample
        if section is None or call.is_probe:
            return None
        seed = self._seed(call, "resample")
        counted = [(row, view) for row, view in zip(kept, seen, strict=True) if not row.is_greedy]
        drawn = resampled([view for _, view in counted], section, rng=random.Random(seed))
        return {row.id: count for (row, _), count in zip(counted, drawn, strict=True) if count}

    def _outputs(
        self,
        tables: Mapping[str, Table],
        rows: Sequence[Row],
        kept: Sequence[Row],
        counts: Mapping[str, int] | None,
        call: Call,
    ) -> dict[str, Table]:
        """The input tables, restricted to kept rows (with columns of the scored ones) or their
        ancestors."""
        members = {row.id: row for row in rows}
        stay = kept if counts is None else _drawn(kept, counts)
        ids = {row.id for row in stay}
        above = {ancestor for row in stay for ancestor in row.trail}
        outputs = {}
        for port, table in tables.items():
            is_own = any(row.id in members for row in table.rows)
            smaller = table.restricted_to(ids if is_own else above)
            if is_own:
                smaller = replace(smaller, rows=tuple(_known(row, members) for row in smaller.rows))
            outputs[port] = smaller if counts is None else self._with_counts(smaller, counts)
        spare = [row for table in call.tables("spare") for row in table.rows]
        filled = next((p for p in ("rows", "rollouts") if p in outputs), None)
        if spare and filled is not None and not call.is_probe:
            known = set(ids)
            received = len(tables[filled].rows)
            wanted = spare_wanted(
                kept=len(ids), received=received, up_to=self._section(call.context).up_to
            )
            extra = [row for row in spare if row.id not in known][:wanted]
            outputs[filled] = replace(outputs[filled], rows=(*outputs[filled].rows, *extra))
        return outputs

    def _with_counts(self, table: Table, counts: Mapping[str, int]) -> Table:
        rows = tuple(
            row.drawn_by(self._node, counts[row.id]) if row.id in counts else row
            for row in table.rows
        )
        return replace(table, rows=rows)

    # --- refills

    def has_enough(
        self, tables: Mapping[tuple[str, str], Table], first_pass: int, context: Context
    ) -> bool:
        """Whether the rows kept so far satisfy `fill`. `first_pass`: input rows of the source in
        the first pass."""
        fill = self._section(context).fill
        rows = [row for row in self._kept_rows(tables) if not row.is_greedy]
        if fill is None:
            return True
        if fill.rows is not None:
            return len(rows) >= fill.rows
        wanted = first_pass if fill.groups == "all" else int(fill.groups or 0)
        return len({group_of(row) for row in rows}) >= wanted

    def cut_surplus(
        self, tables: dict[tuple[str, str], Table], first_pass: int, context: Context
    ) -> None:
        """With `surplus: drop`, cut the outputs to what `fill` needs; groups stay whole."""
        fill = self._section(context).fill
        if fill is None or fill.surplus == "keep":
            return
        rows = self._kept_rows(tables)
        counted = [row for row in rows if not row.is_greedy]
        if fill.rows is not None:
            ids = [row.id for row in counted[: fill.rows]]
        else:
            wanted = first_pass if fill.groups == "all" else int(fill.groups or 0)
            groups = list(dict.fromkeys(group_of(row) for row in counted))[:wanted]
            ids = [row.id for row in rows if group_of(row) in groups]
        for port in PORTS:
            if (self._node, port) in tables:
                tables[self._node, port] = tables[self._node, port].restricted_to(ids)

    def _kept_rows(self, tables: Mapping[tuple[str, str], Table]) -> tuple[Row, ...]:
        for port in PORTS:
            if (self._node, port) in tables:
                return tables[self._node, port].rows
        return ()


def _known(row: Row, filtered: Mapping[str, Row]) -> Row:
    """A row with further columns from the filtered row of the same id; its own take precedence."""
    known = filtered.get(row.id, row)
    if known is row:
        return row
    return replace(
        row,
        columns={**known.columns, **row.columns},
        scoped={**known.scoped, **row.scoped},
        depths={**known.depths, **row.depths},
    )


def _drawn(kept: Sequence[Row], counts: Mapping[str, int]) -> list[Row]:
    """Rows that were drawn, and the greedy rows of their groups."""
    groups = {group_of(row) for row in kept if row.id in counts}
    return [row for row in kept if row.id in counts or (row.is_greedy and group_of(row) in groups)]


def group_of(row: Row) -> Hashable:
    """The default group of a row: its group, for a greedy row its parent, or else its oldest
    ancestor."""
    if row.group is None and row.writer is not None and row.parents:
        return row.parents[0]
    return row.group or problem_of(row)
