"""Preference pairs: rows that are children of a chosen and a rejected row."""

from typing import Any

from coloop.data.pairing import PairRow, pair_directly, pair_rows, relabel, side_of
from coloop.data.tables import Row, Table, concat_rows, matched_rows
from coloop.data.tables.row import joined_row
from coloop.runtime.roles.protocol import Call, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import deliveries, joined_rows, meetings_of, round_by_round
from coloop.runtime.roles.rows.texts import SIDES, prompt_of
from coloop.spec.nodes import PairsNode
from coloop.spec.shaping import SideColumns


class PairsRole(NodeRole[PairsNode]):
    def run(self, call: Call) -> Outcome:
        match self._section(call.context).method:
            case "direct":
                rows, detail = self._direct(call)
            case "relabel":
                rows, detail = self._relabelled(call)
            case _:
                rows, detail = self._compared(call)
        return Outcome(
            outputs={"pairs": Table(rows=tuple(rows))},
            samples=len(rows),
            metrics={name: float(count) for name, count in {"pairs": len(rows), **detail}.items()},
            detail=detail,
        )

    def _direct(self, call: Call) -> tuple[list[Row], dict[str, int]]:
        names = self._section(call.context).columns
        sides = self._matched(call)
        kept, equal = pair_directly(
            [(chosen.columns, rejected.columns) for chosen, rejected in sides],
            names,
        )
        return [self._pair(names, *sides[index]) for index in kept], {"equal_texts": equal}

    def _matched(self, call: Call) -> list[tuple[Row, Row]]:
        """(chosen, rejected) rows that belong together; rows of different rounds do not."""
        context = call.context
        edges = [context.spec.graph.edges_into(self._node, side) for side in SIDES]
        levels = [frozenset().union(*map(context.lineage.edge_levels, own)) for own in edges]
        meetings = meetings_of(levels)
        pairs: dict[tuple[str, str], tuple[Row, Row]] = {}
        for met in round_by_round(context, call.delivered(*SIDES)):
            chosen, rejected = (
                concat_rows([table for edge, table in met.items() if edge.target.port == side])
                for side in SIDES
            )
            for pair in matched_rows(_sampled(chosen), _sampled(rejected), meetings):
                pairs.setdefault((pair[0].id, pair[1].id), pair)
        return [*pairs.values()]

    def _compared(self, call: Call) -> tuple[list[Row], dict[str, int]]:
        section = self._section(call.context)
        joined = joined_rows(self._node, call.context, call.delivered("rollouts"))
        rows = _sampled(joined)
        score = next(iter(deliveries(call, "scores", rows)), None)
        if score is not None:
            rows = tuple(row for row in rows if row.id in score)
        pairing = pair_rows(
            [
                PairRow(
                    columns=row.columns,
                    score=None if score is None else score[row.id],  # type: ignore[arg-type]
                    group=row.group,
                )
                for row in rows
            ],
            section.method,
            has_scores=score is not None,
            margin=section.margin or 0.0,
            drop_ties=section.drop_ties,
            soft=section.soft,
            columns=section.columns,
        )
        made = [
            self._pair(
                section.columns,
                rows[pair.chosen],
                rows[pair.rejected],
                margin=pair.margin,
                probability=pair.probability,
            )
            for pair in pairing.pairs
        ]
        return made, {"ties": pairing.ties, "equal_texts": pairing.equal_texts}

    def _relabelled(self, call: Call) -> tuple[list[Row], dict[str, int]]:
        section = self._section(call.context)
        rows = concat_rows(call.tables("pairs"))
        given = call.tables("preference")
        if not given:
            return list(rows), {"left_out": 0}
        [delivery] = deliveries(call, "preference", rows)
        rows = tuple(row for row in rows if row.id in delivery)
        low, high = given[0].score_range or (0.0, 1.0)
        labels = relabel(
            [delivery[row.id] for row in rows],  # type: ignore[misc]
            low=low,
            high=high,
            soft=section.soft,
            drop_ties=section.drop_ties,
        )
        made = []
        for label in labels:
            row = rows[label.place]
            columns: dict[str, Any] = {}
            if label.is_swapped:
                columns = {
                    "chosen": row.columns["rejected"],
                    "rejected": row.columns["chosen"],
                    "chosen_tokens": row.columns.get("rejected_tokens"),
                    "rejected_tokens": row.columns.get("chosen_tokens"),
                }
            if label.probability is not None:
                columns["probability"] = label.probability
            made.append(row.with_columns(self._node, columns) if columns else row)
        return made, {"left_out": len(rows) - len(made)}

    def _pair(
        self,
        names: SideColumns,
        chosen: Row,
        rejected: Row,
        *,
        margin: float | None = None,
        probability: float | None = None,
    ) -> Row:
        columns: dict[str, Any] = {
            "prompt": prompt_of(chosen, self._node),
            "chosen": side_of(chosen.columns, names.chosen),
            "rejected": side_of(rejected.columns, names.rejected),
        }
        for side, row in zip(SIDES, (chosen, rejected), strict=True):
            if row.tokens is not None and getattr(names, side) in (None, "completion"):
                columns[f"{side}_tokens"] = row.tokens
        numbers = {"margin": margin, "probability": probability}
        columns |= {name: number for name, number in numbers.items() if number is not None}
        pair = joined_row([chosen, rejected], columns=columns)
        return pair.with_columns(self._node, columns)


def _sampled(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if not row.is_greedy)
