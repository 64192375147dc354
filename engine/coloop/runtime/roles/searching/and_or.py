"""Proofs by an AND/OR tree (AlphaProof): the policy proposes actions, an environment says to which
states they lead, `value` what they promise, and `outcome` has the last word on a finished proof.

    prompt ── reset ──► state ── k actions ──► states that are left to be shown ── ... ──► proof

The first proof ends the search of a row. It gives a row for each state and action, with the return
of the action at its last token, and for each searched row whether it is proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coloop.data.tables import Row
from coloop.runtime.roles.searching.method import Findings, Labelled, Places
from coloop.runtime.roles.searching.proofs import Action, ProofTree, State, proof_of, visited
from coloop.runtime.roles.searching.puct import shares
from coloop.runtime.roles.searching.search_environment import SearchEnvironment
from coloop.runtime.roles.searching.tree_expansion import TreeExpansion, Written, columns_of
from coloop.runtime.roles.searching.trees import Found, Path, Root, Search
from coloop.spec.nodes import SearchNode


class AndOr:
    """Proof search on an AND/OR tree (AlphaProof)."""

    counts_rollouts = False
    score_range = None

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        environment = expansion.environment
        assert environment is not None
        trees = [ProofTree(environment.opening(row), section) for row in rows]
        expansion.grow(
            [
                Root(row=row, key=row.id, search=prove(tree, section.budget.searches_per_row))
                for row, tree in zip(rows, trees, strict=True)
            ],
            lambda written: assess(written, expansion, environment),
        )
        accepted = _checked(rows, trees, expansion, section.step_separator)
        return Findings(
            rows=[
                one
                for row, tree, is_proof in zip(rows, trees, accepted, strict=True)
                for one in _given(row, tree, is_proof, expansion, section, place)
            ],
            searched=[
                float(is_proof) if tree.root.drawn else None
                for tree, is_proof in zip(trees, accepted, strict=True)
            ],
            rejected=sum(
                tree.root.shown is not None and not is_proof
                for tree, is_proof in zip(trees, accepted, strict=True)
            ),
        )


def prove(tree: ProofTree, searches: int | None) -> Search:
    """Visits until the tree is proved, given up, or has had as many as it may.

    Args:
        searches: None: what they write comes to an end by another limit.
    """
    visits = 0
    while tree.is_open and (searches is None or visits < searches):
        visits += 1
        way, state, count = tree.descend()
        [paths] = yield [tree.request(state, count)]
        if paths is None:
            break
        tree.climb(way, state, tree.grow(state, count, paths))
    found: list[Found] = []
    return found


def assess(
    written: Written, expansion: TreeExpansion, environment: SearchEnvironment
) -> list[list[Path]]:
    """Actions with where they lead, and what they promise."""
    led = [
        (
            root,
            request,
            [
                replace(
                    path, leads=environment.move(root.key, path.name, request.state, path.tokens)
                )
                for path in own
            ],
        )
        for root, request, own in written
    ]
    asked = [(root, request, [path for path in own if path.leads]) for root, request, own in led]
    promises = iter(expansion.value(expansion.rows(asked)))
    return [
        [replace(path, score=next(promises)) if path.leads else path for path in own]
        for _, _, own in led
    ]


def _checked(
    rows: Sequence[Row], trees: Sequence[ProofTree], expansion: TreeExpansion, separator: str
) -> list[bool]:
    """Whether each tree has a proof with which `outcome` agrees, where there is one."""
    proved = [tree.root.shown is not None for tree in trees]
    if not expansion.is_graded:
        return proved
    texts = [
        expansion.row(row, _whole(tree.root, separator), 0, f"{row.id}.proof")
        for row, tree, is_proved in zip(rows, trees, proved, strict=True)
        if is_proved
    ]
    grades = iter(expansion.grade(texts))
    return [is_proved and next(grades) == 1.0 for is_proved in proved]


def _whole(root: State, separator: str) -> Path:
    """A proof as one text."""
    actions = [action for _, action in proof_of(root)]
    tokens = actions[0].path.tokens
    text = separator.join(action.text for action in actions)
    return replace(actions[0].path, tokens=replace(tokens, text=text))


@dataclass(frozen=True, slots=True)
class _Step:
    state: State
    action: Action


def _given(
    row: Row,
    tree: ProofTree,
    is_proof: bool,
    expansion: TreeExpansion,
    section: SearchNode,
    place: Places,
) -> list[Labelled]:
    """The rows of one tree."""
    if section.give == "visited":
        steps = [_Step(*one) for one in visited(tree.root)]
    else:
        steps = [_Step(*one) for one in proof_of(tree.root)] if is_proof else []
    found = []
    for number, one in enumerate(steps):
        path = one.action.path
        worth = one.action.worth if one.action.shown is None else one.action.shown
        drawn = np.flatnonzero(path.tokens.loss_mask)
        columns = {**columns_of(one.state.text), "share": _share(one)}
        found.append(
            Labelled(
                row=expansion.row(row, path, place(number), columns=columns),
                score=worth,
                chances={int(drawn[-1]): worth} if len(drawn) else {},
            )
        )
    return found


def _share(step: _Step) -> float:
    """Of the visits of a state, those that took its action; a proof counts as one more."""
    actions = step.state.actions
    visits = [action.visits + (action.shown is not None) for action in actions]
    return shares(visits)[actions.index(step.action)]
