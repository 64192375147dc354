"""The learn and sync stages of a weights group: one update from all live ports of its nodes, then
new weights for its rollout engines.
"""

import math
from collections.abc import Mapping
from typing import Any

from coloop.algorithms.batch import Sequence, Unit
from coloop.data.seeds import derive_seed
from coloop.plan.types import PhasePlan
from coloop.runtime.roles.credit.teaching import (
    LEFT_OUT,
    PAIRS,
    columns_that_no_pair_has,
    teaching_items,
)
from coloop.runtime.roles.protocol import Call, Context, Outcome, Role
from coloop.runtime.roles.rows.kept import Kept
from coloop.runtime.roles.rows.texts import Fits, rows_of
from coloop.spec.groups import updates_of
from coloop.spec.schedule import LearnRule
from coloop.workers.messages import Items, LearnReply, LearnRequest


class GroupRole(Role):
    def __init__(self, group: str, context: Context) -> None:
        self._group = group
        self._members = frozenset(n for n, g in context.groups.items() if g == group)
        self._kept: dict[tuple[str, str], dict[int, Unit]] = {}
        """Rows that wait until there are `learn.X.rows` of them, numbered by arrival."""
        self._came = 0
        """Total number of rows that had to wait."""
        self._fits: dict[str, Fits] = {}
        self._is_new_phase = False
        self._phase_updates: int | None = None

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int], context: Context) -> None:
        """Restart the learning-rate schedule if members learn in the phase."""
        learners = {port.split(".")[0] for port in phase.learn}
        members = sorted(learners & self._members)
        if members:
            turns = len(members) if self._order(context) else 1
            known = [updates[node] for node in members if node in updates]
            self._is_new_phase = True
            self._phase_updates = turns * max(known) if known else None

    def run(self, call: Call) -> Outcome:
        if call.verb == "sync":
            return Outcome(metrics=call.context.hosts.sync(self._group))
        context, before = call.context, self._waiting
        items, details = self._items(call)
        if not any(items.values()):
            return self._nothing_to_learn(call, before, details)
        reply = context.hosts.learn(
            LearnRequest(
                group=self._group,
                items={port: own for port, own in items.items() if own},
                seed=derive_seed(context.seed, self._group, call.step, "learn"),
                updates=updates_of(context.spec, dict.fromkeys(node for node, _ in items)),
                order=self._order(context),
                overrides=context.overrides,
                is_new_phase=self._is_new_phase,
                phase_updates=self._phase_updates,
            )
        )
        self._is_new_phase = False
        left_out, alerts = self._left_out(items, details, reply)
        alerts += self._of_columns(call)
        late = self._staleness(items, reply.before)
        alerts += self._too_late(items, reply.before, context)
        roles = dict.fromkeys((*reply.metrics, *left_out))
        return Outcome(
            member_metrics={
                node: {
                    **reply.metrics.get(node, {}),
                    **late.get(node, {}),
                    **left_out.get(node, {}),
                }
                for node in roles
            },
            samples=reply.samples,
            tokens=reply.tokens,
            detail={
                "ports": details,
                "version": reply.version,
                "freed_bytes": reply.freed_bytes,
            },
            alerts=alerts,
            is_idle=reply.samples == 0,
            reply=reply,
        )

    def _staleness(self, items: Items, version: int) -> dict[str, dict[str, float]]:
        """By node, how many versions its own texts are behind the weights that learn from them:
        mean and maximum."""
        metrics: dict[str, dict[str, float]] = {}
        for node in dict.fromkeys(node for node, _ in items):
            behind = [
                version - item.version
                for port, own in items.items()
                if port[0] == node
                for item in own
                if isinstance(item, Sequence) and item.writer in self._members
            ]
            if behind:
                mean = sum(behind) / len(behind)
                metrics[node] = {"staleness": mean, "staleness/max": float(max(behind))}
        return metrics

    def _too_late(self, items: Items, version: int, context: Context) -> list[tuple[str, str]]:
        """An alert for each node with rows of this step that are further behind the weights than
        `max_staleness` allows. Rows of buffers, and those that waited for others, may be."""
        schedule, alerts = context.spec.schedule, []
        for node in dict.fromkeys(node for node, _ in items):
            rule = schedule.learn.get(node)
            behind = [
                version - item.version
                for port, own in items.items()
                if port[0] == node and (rule is None or rule.rows is None)
                for item in own
                if isinstance(item, Sequence)
                and item.writer in self._members
                and item.id.partition(":")[0] == item.writer
            ]
            if behind and max(behind) > math.ceil(schedule.max_staleness):
                message = (
                    f"{node}: rows are {max(behind)} versions of the weights old, and "
                    f"`schedule.max_staleness` is {schedule.max_staleness:g}"
                )
                alerts.append(("learn.too_stale", message))
        return alerts

    def _left_out(
        self, items: Items, details: list[dict[str, Any]], reply: LearnReply
    ) -> tuple[dict[str, dict[str, float]], list[tuple[str, str]]]:
        """Metrics by node, and alerts, about rows that lack reference log-probs or are too long for
        the model."""
        metrics: dict[str, dict[str, float]] = {}
        for detail in details:
            if LEFT_OUT in detail:
                own_metrics = metrics.setdefault(detail["port"].partition(".")[0], {})
                own_metrics[LEFT_OUT] = max(detail[LEFT_OUT], own_metrics.get(LEFT_OUT, 0.0))
        alerts: list[tuple[str, str]] = []
        for node in dict.fromkeys(node for node, _ in items):
            rows = sum(len(own) for port, own in items.items() if port[0] == node)
            if not rows:
                continue
            fits = self._fits.setdefault(node, rows_of(node))
            dropped, told = fits.count(reply.too_long.get(node, ()), rows)
            if dropped:
                metrics.setdefault(node, {}).update(dropped)
            alerts += told
        return metrics, alerts

    def _nothing_to_learn(
        self, call: Call, waiting_before: int, details: list[dict[str, Any]]
    ) -> Outcome:
        """The outcome without an update: an alert, unless rows are waiting until there are
        enough."""
        detail = {"ports": details, "waiting": self._waiting}
        if self._waiting > waiting_before:
            return Outcome(detail=detail)
        if call.live <= call.items.keys():  # credit has said why
            return Outcome(detail=detail, is_idle=True)
        message = f"{self._group}: nothing to learn from in step {call.step}"
        return Outcome(detail=detail, alerts=[("learn.no_rows", message)], is_idle=True)

    @property
    def _waiting(self) -> int:
        return sum(map(len, self._kept.values()))

    def _order(self, context: Context) -> tuple[str, ...]:
        return tuple(n for n in context.spec.schedule.order if n in self._members)

    def _items(self, call: Call) -> tuple[Items, list[dict[str, Any]]]:
        by_port: dict[tuple[str, str], tuple[Unit, ...]] = {}
        details = []
        for node, port in sorted(call.live):
            if (node, port) in call.items:
                items = call.items[node, port]
            else:
                items, detail = teaching_items(
                    node, port, call.context, call.member_inputs, call.step
                )
                details.append(detail)
            rule = call.context.spec.schedule.learn.get(node)
            by_port[node, port] = self._ripe(node, port, items, rule)
        return by_port, details

    @staticmethod
    def _of_columns(call: Call) -> list[tuple[str, str]]:
        """Alerts about columns that no learned pair has."""
        return [
            alert
            for node, port in sorted(call.live)
            if port == PAIRS and (node, port) not in call.items
            for alert in columns_that_no_pair_has(
                node, call.context, call.member_inputs.get((node, port), {})
            )
        ]

    def _ripe(
        self, node: str, port: str, items: tuple[Unit, ...], rule: LearnRule | None
    ) -> tuple[Unit, ...]:
        """The rows to learn now: with `learn.X.rows`, none until that many have been kept over
        steps."""
        if rule is None or rule.rows is None:
            return items
        kept = self._kept.setdefault((node, port), {})
        for item in items:
            kept[self._came] = item.owned()
            self._came += 1
        if len(kept) < rule.rows:
            return ()
        return tuple(self._kept.pop((node, port)).values())

    def remember(self) -> Any:
        kept = {key: dict(items) for key, items in self._kept.items()}
        return kept, self._came, self._is_new_phase, self._phase_updates

    def recall(self, memory: Any) -> None:
        self._kept, self._came, self._is_new_phase, self._phase_updates = memory

    def state(self) -> dict[str, Any]:
        return {
            "is_new_phase": self._is_new_phase,
            "phase_updates": self._phase_updates,
            "fits": {node: fits.state() for node, fits in self._fits.items()},
            "came": self._came,
            "kept": {
                f"{node}.{port}": Kept(rows=dict(items))
                for (node, port), items in self._kept.items()
                if items
            },
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._is_new_phase = state["is_new_phase"]
        self._phase_updates = state["phase_updates"]
        for node, fits in state.get("fits", {}).items():
            self._fits.setdefault(node, rows_of(node)).load_state(fits)
        self._came = state["came"]
        self._kept = {
            (node, port): dict(kept.rows)
            for (node, _, port), kept in (
                (name.partition("."), kept) for name, kept in state["kept"].items()
            )
        }
