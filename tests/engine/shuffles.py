"""Controls: edits of a loop after which chance says what was right, and all else stays."""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.nodes import TemplateNode

Changes = tuple[Mapping[str, Any], ...]

_SCORES_OF_OTHER_ROWS = """\
import random


def reward(prompts, completions, {reward}, **columns):
    scores = list({reward})
    random.shuffle(scores)
    return scores
"""
_COIN = """\
import random


def reward(prompts, completions, **columns):
    return [float(random.random() < {share}) for _ in completions]
"""
_SIDES = """\
import random


def write(chosen, rejected, **columns):
    sides = [chosen, rejected]
    random.shuffle(sides)
    return {"chosen": sides[0], "rejected": sides[1]}
"""
_WRITE = "def write(prompt, completion, answer, **columns):\n"
_ANY_ANSWER = """\
    digits = "".join(random.choices("0123456789", k=len(answer)))
    answer = random.choice([completion, digits])
"""


def scores_of_other_rows(reward: str = "exact") -> dict[str, Any]:
    """A node that reads rollouts and the scores of `reward`, and hands them to other rows."""
    code = _SCORES_OF_OTHER_ROWS.format(reward=reward)
    return {"kind": "reward", "source": {"type": "python", "code": code}}


def shuffled(
    *, actor: str = "actor", reward: str = "exact", readers: Sequence[str] = ()
) -> Changes:
    """Between a reward and those that read it stand the scores of other rows: `readers` are ports,
    the learner's rewards unless others are named."""
    ports = readers or (f"{actor}.rewards",)
    return (
        {"op": "set", "path": "nodes.luck", "value": scores_of_other_rows(reward)},
        *(_edge("remove_edge", f"{reward}.scores -> {port}") for port in ports),
        _edge("add_edge", f"{actor}.rollouts -> luck.rollouts"),
        _edge("add_edge", f"{reward}.scores -> luck.scores"),
        *(_edge("add_edge", f"luck.scores -> {port}") for port in ports),
    )


def coin_for_outcome(share: float, *, search: str, reward: str = "exact") -> Changes:
    """What a search asks of an end is answered by a coin, right as often as `share`."""
    source = {"type": "python", "code": _COIN.format(share=share)}
    return (
        {"op": "set", "path": "nodes.luck", "value": {"kind": "reward", "source": source}},
        _edge("remove_edge", f"{reward}.check -> {search}.outcome"),
        _edge("add_edge", f"luck.check -> {search}.outcome"),
    )


def swapped(*, rows: str, pairs: str, learner: str) -> Changes:
    """A coin says which side of a pair the learner takes for the preferred one; probes read the
    pairs as they are. `rows` has the columns `chosen` and `rejected`, `pairs` feeds `learner`."""
    columns = {"chosen": "chosen", "rejected": "rejected"}
    drawn = {"kind": "pairs", "method": "direct", "columns": columns}
    return (
        {"op": "set", "path": "nodes.luck", "value": {"kind": "template", "code": _SIDES}},
        {"op": "set", "path": "nodes.drawn", "value": drawn},
        _edge("remove_edge", f"{pairs} -> {learner}"),
        _edge("add_edge", f"{rows} -> luck.rows"),
        _edge("add_edge", "luck.rows -> drawn.chosen"),
        _edge("add_edge", "luck.rows -> drawn.rejected"),
        _edge("add_edge", f"drawn.pairs -> {learner}"),
    )


def lessons_of_a_coin(preset: str, *, lesson: str) -> Changes:
    """Lessons that compare with what was written or with any digits, as a coin says: what they
    check and their verdict belong together, and to no row. Where the checks stay true, the smallest
    lean of the verdicts decides which of two texts is called better."""
    spec = parse(presets.load_loop_text(preset)).spec
    assert spec is not None
    node = spec.nodes[lesson]
    assert isinstance(node, TemplateNode)
    assert node.code is not None
    assert _WRITE in node.code
    code = "import random\n" + node.code.replace(_WRITE, _WRITE + _ANY_ANSWER)
    return ({"op": "set", "path": f"nodes.{lesson}.code", "value": code},)


def _edge(op: str, value: str) -> Mapping[str, Any]:
    return {"op": op, "path": "edges", "value": value}
