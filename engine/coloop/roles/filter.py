"""Keeps rows by rules, removes them from its own outputs and from nothing else; with `fill` it says
whether it has enough yet."""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from coloop.data.filtering import Decision, FilterRow, decide, resampled, spare_wanted
from coloop.rewards.sandbox import Sandbox
from coloop.roles.credit import group_keys
from coloop.roles.inputs import deliver, only_delivered
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.seeds import derive_seed
from coloop.spec.nodes import FilterNode
from coloop.spec.shaping import PythonRule
from coloop.tables import Row, Table, join_rows

PORTS = ("rows", "rollouts", "pairs", "scores")


class FilterRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._context = context
        self._sandboxes: dict[int, Sandbox] = {}

    @property
    def _section(self) -> FilterNode:
        section = self._context.spec.nodes[self._node]
        assert isinstance(section, FilterNode)
        return section

    def run(self, call: Call) -> Outcome:
        given = {port: call.inputs[port][0] for port in PORTS if call.inputs.get(port)}
        scored = [given["scores"]] if "scores" in given else []
        by = call.inputs.get("by", ())
        rows = join_rows([one.table for one in given.values()])
        score = [deliver(self._context, rows, one) for one in scored]
        others = [deliver(self._context, rows, one) for one in by]
        rows = only_delivered(rows, [*score, *others])
        seen = [
            FilterRow(
                columns=row.columns,
                score=score[0].values[row.id] if score else None,
                by={
                    one.edge.source.node: delivery.values[row.id]
                    for one, delivery in zip(by, others, strict=True)
                },
                group=group_of(row),
            )
            for row in rows
        ]
        decision = self._decide(rows, seen, call)
        kept = [rows[place] for place in decision.kept]
        counts = self._counts(kept, [seen[place] for place in decision.kept], call)
        outputs = self._outputs({p: one.table for p, one in given.items()}, kept, counts, call)
        alerts = []
        if rows and not kept and self._section.fill is None:
            cut = ", ".join(f"{rule} cut {count}" for rule, count in decision.cut_by.items())
            alerts.append(
                ("filter.kept_nothing", f"{self._node} kept none of {len(rows)} rows ({cut})")
            )
        return Outcome(
            outputs=outputs,
            samples=len(kept),
            metrics={"kept": len(kept) / len(rows) if rows else 0.0},
            detail={"rows": len(rows), "kept": len(kept), "cut_by": dict(decision.cut_by)},
            alerts=alerts,
        )

    def _decide(self, rows: Sequence[Row], seen: Sequence[FilterRow], call: Call) -> Decision:
        place = {id(one): row for one, row in zip(seen, rows, strict=True)}

        @cache
        def keys(names: tuple[str, ...]) -> Callable[[Row], Hashable]:
            return group_keys(self._node, self._context, names)

        def shared(row: FilterRow, names: tuple[str, ...]) -> Hashable:
            return row.group if not names else keys(names)(place[id(row)])

        seed = derive_seed(self._context.seed, self._node, call.salt, call.step)
        return decide(
            seen,
            self._section.keep,
            None if call.is_probe else self._section.per_group,
            rng=random.Random(seed),
            node=self._node,
            group_of=shared,
            runners=self._runners(),
            seed=seed % 2**31,
        )

    def _counts(
        self, kept: Sequence[Row], seen: Sequence[FilterRow], call: Call
    ) -> dict[str, int] | None:
        """With `resample`: how often each kept row was drawn; a probe draws none."""
        section = self._section.resample
        if section is None or call.is_probe:
            return None
        seed = derive_seed(self._context.seed, self._node, call.step, "resample")
        drawn = resampled(seen, section, rng=random.Random(seed))
        return {row.id: count for row, count in zip(kept, drawn, strict=True) if count}

    def _outputs(
        self,
        tables: Mapping[str, Table],
        kept: Sequence[Row],
        counts: Mapping[str, int] | None,
        call: Call,
    ) -> dict[str, Table]:
        ids = [row.id for row in kept if counts is None or row.id in counts]
        outputs = {}
        for port, table in tables.items():
            smaller = table.restricted_to(ids)
            if counts is not None:
                rows = tuple(
                    row.with_columns(self._node, {"drawn": counts[row.id]}) for row in smaller.rows
                )
                smaller = replace(smaller, rows=rows)
            outputs[port] = smaller
        spare = [row for table in call.tables("spare") for row in table.rows]
        filled = next((p for p in ("rows", "rollouts") if p in outputs), None)
        if spare and filled is not None:
            known = set(ids)
            received = len(tables[filled].rows)
            wanted = spare_wanted(kept=len(ids), received=received, up_to=self._section.up_to)
            extra = [row for row in spare if row.id not in known][:wanted]
            outputs[filled] = replace(outputs[filled], rows=(*outputs[filled].rows, *extra))
        return outputs

    def _runners(self) -> list[Sandbox | None]:
        runners: list[Sandbox | None] = []
        for place, rule in enumerate(self._section.keep):
            if isinstance(rule, PythonRule) and place not in self._sandboxes:
                self._sandboxes[place] = Sandbox(rule.code, function="keep", node=self._node)
            runners.append(self._sandboxes.get(place))
        return runners

    # --- refills

    def has_enough(self, tables: Mapping[tuple[str, str], Table], first_pass: int) -> bool:
        """Whether what was kept so far is what `fill` asks for; `first_pass`: rows at the input of
        the source in the first pass."""
        fill = self._section.fill
        rows = self._kept_rows(tables)
        if fill is None:
            return True
        if fill.rows is not None:
            return len(rows) >= fill.rows
        wanted = first_pass if fill.groups == "all" else int(fill.groups or 0)
        return len({group_of(row) for row in rows}) >= wanted

    def cut_surplus(self, tables: dict[tuple[str, str], Table], first_pass: int) -> None:
        """With `surplus: drop` the outputs hold no more than was asked for; groups stay whole."""
        fill = self._section.fill
        if fill is None or fill.surplus == "keep":
            return
        rows = self._kept_rows(tables)
        if fill.rows is not None:
            ids = [row.id for row in rows[: fill.rows]]
        else:
            wanted = first_pass if fill.groups == "all" else int(fill.groups or 0)
            groups = list(dict.fromkeys(group_of(row) for row in rows))[:wanted]
            ids = [row.id for row in rows if group_of(row) in groups]
        for port in PORTS:
            if (self._node, port) in tables:
                tables[self._node, port] = tables[self._node, port].restricted_to(ids)

    def _kept_rows(self, tables: Mapping[tuple[str, str], Table]) -> tuple[Row, ...]:
        for port in PORTS:
            if (self._node, port) in tables:
                return tables[self._node, port].rows
        return ()

    def close(self) -> None:
        """End the processes of the user's code."""
        for sandbox in self._sandboxes.values():
            sandbox.close()
        self._sandboxes.clear()


def group_of(row: Row) -> Hashable:
    """The group of a row where nothing else is said: what it was written for, else its oldest
    ancestor."""
    return row.group or max(row.trail, key=lambda ancestor: len(row.trail[ancestor]))
