"""How rows leave a region of rounds, and where rows of several rounds flow."""

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.io import parse
from coloop.spec.lineage import Lineage, compute_lineage

LOOP = """
coloop: 1
name: talk
nodes:
  problems: {kind: dataset, source: {type: inline, rows: [{prompt: a}]}}
  ask: {kind: template, text: "{{ prompt }}"}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: reinforce}
  sum_up: {kind: template, text: "{{ completion }}"}
  mark: {kind: reward, source: {type: builtin, name: length, max: 4}}
  pool: {kind: buffer, capacity: 4}
  probe: {kind: evaluate, metrics: [score]}
edges:
  - problems.rows -> ask.rows
  - ask.rows -> actor.prompts
  - {from: actor.rollouts, to: ask.rows, rounds: 3}
  - actor.rollouts -> sum_up.rows
  - {from: actor.rollouts, to: mark.rollouts, take: ends}
  - mark.scores -> actor.rewards
  - sum_up.rows -> pool.rows
  - pool.rows -> actor.demonstrations
  - actor.rollouts -> probe.rollouts
  - mark.scores -> probe.scores
schedule: {steps: 1}
"""


def read(text: str = LOOP) -> tuple[LoopSpec, Lineage]:
    spec = parse(text).spec
    assert spec is not None
    return spec, compute_lineage(spec)[0]


def edge(spec: LoopSpec, key: str) -> Edge:
    found = spec.graph.edge(key)
    assert found is not None
    return found


def test_an_edge_takes_what_its_port_wants_unless_it_says_so() -> None:
    spec, lineage = read()

    def take(key: str) -> str | None:
        return lineage.take(edge(spec, key))

    assert take("actor.rollouts->sum_up.rows") == "last"
    assert take("actor.rollouts->probe.rollouts") == "last"
    assert take("actor.rollouts->mark.rollouts") == "ends"
    assert take("ask.rows->actor.prompts") is None
    assert take("actor.rollouts->ask.rows") is None
    assert take("mark.scores->actor.rewards") is None


def test_what_a_node_of_the_region_learns_from_it_learns_once_the_rounds_are_over() -> None:
    """A scorer inside of the region: its scores leave it at the port `rewards`."""
    text = LOOP.replace(
        "  - mark.scores -> actor.rewards\n",
        "  - {from: mark.scores, to: ask.scores, rounds: 3, aggregate: max}\n"
        "  - mark.scores -> actor.rewards\n",
    )
    spec, lineage = read(text)
    rewards = edge(spec, "mark.scores->actor.rewards")

    assert lineage.take(rewards) == "all"
    assert lineage.rounds_along(rewards)


def test_rows_of_several_rounds_flow_on_but_not_through_a_buffer() -> None:
    spec, lineage = read()
    name = "rounds of actor.rollouts->ask.rows"

    def along(key: str) -> frozenset[str]:
        return lineage.rounds_along(edge(spec, key))

    assert along("problems.rows->ask.rows") == frozenset()
    assert along("ask.rows->actor.prompts") == frozenset()
    assert along("actor.rollouts->sum_up.rows") == {name}
    assert along("mark.scores->actor.rewards") == {name}
    assert along("sum_up.rows->pool.rows") == {name}
    assert along("pool.rows->actor.demonstrations") == frozenset()
