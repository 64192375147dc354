"""Texts between writers: joined rows, new columns, cut rows, children for each element."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.algorithms.batch import Text
from coloop.errors import UserCodeError

Bench = Callable[..., Any]

SUMS = [{"prompt": "1+1=", "answer": "2"}, {"prompt": "2+2=", "answer": "4"}]


def template(**fields: Any) -> dict[str, Any]:
    return {"kind": "template", **fields}


def test_a_text_becomes_the_prompt_of_the_same_row(bench: Bench, rows_of: Any, column: Any) -> None:
    nodes = {
        "sums": rows_of(*SUMS),
        "ask": template(text="Say {{ prompt }}", target="{{ answer }}"),
    }
    loop = bench(nodes, ["sums.rows -> ask.rows"])

    table = loop.give("ask.rows")

    assert column(table, "prompt") == ["Say 1+1=", "Say 2+2="]
    assert column(table, "target") == ["2", "4"]
    assert column(table, "sums.prompt") == ["1+1=", "2+2="]
    assert [row.id for row in table.rows] == ["sums:0.0", "sums:0.1"]


def test_a_chat_becomes_the_prompt_of_the_same_row(bench: Bench, rows_of: Any) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "{{ prompt }}?"},
    ]
    nodes = {"sums": rows_of({"prompt": "1+1"}), "ask": {"kind": "template", "messages": messages}}

    table = bench(nodes, ["sums.rows -> ask.rows"]).give("ask.rows")

    [row] = table.rows
    assert row.id == "sums:0.0"
    assert row.columns["prompt"] == [messages[0], {"role": "user", "content": "1+1?"}]


def test_siblings_of_two_writers_meet_by_their_place(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes = {
        "sums": rows_of(*SUMS),
        "tens": actor(),
        "units": actor(),
        "both": template(columns={"completion": "{{ tens.completion }}|{{ units.completion }}"}),
    }
    edges = [
        "sums.rows -> tens.prompts",
        "sums.rows -> units.prompts",
        "tens.rollouts -> both.rows",
        "units.rollouts -> both.rows",
    ]
    loop = bench(nodes, edges)

    texts = column(loop.give("both.rows"), "completion")

    assert texts == ["1+1=a|1+1=a", "1+1=b|1+1=b", "2+2=a|2+2=a", "2+2=b|2+2=b"]


def test_gathered_rows_become_lists(bench: Bench, rows_of: Any, actor: Any, column: Any) -> None:
    nodes = {
        "sums": rows_of(*SUMS),
        "actor": actor(),
        "all": template(
            text="{{ sums.prompt }}{{ completion | join('/') }}", join={"gather": "sums"}
        ),
    }
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> all.rows"])

    table = loop.give("all.rows")

    assert column(table, "prompt") == ["1+1=1+1=a/1+1=b", "2+2=2+2=a/2+2=b"]
    assert [len(row.parents) for row in table.rows] == [2, 2]


@pytest.mark.parametrize("node", ["ask", "few"])
def test_rows_are_gathered_under_the_rows_that_a_node_hands_on(
    node: str, bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes = {
        "sums": rows_of(*SUMS),
        "ask": template(text="{{ prompt }}?"),
        "few": {"kind": "filter", "keep": [{"rule": "length", "column": "prompt", "max": 9}]},
        "actor": actor(),
        "all": template(
            text="{{ ask.prompt }}{{ sums.answer }}{{ completion | join('/') }}",
            join={"gather": node},
        ),
    }
    edges = [
        "sums.rows -> ask.rows",
        "ask.rows -> few.rows",
        "few.rows -> actor.prompts",
        "actor.rollouts -> all.rows",
    ]
    loop = bench(nodes, edges)

    assert column(loop.give("all.rows"), "prompt") == [
        "1+1=?21+1=?a/1+1=?b",
        "2+2=?42+2=?a/2+2=?b",
    ]


def test_each_makes_a_child_of_every_element(bench: Bench, rows_of: Any, column: Any) -> None:
    rows = [{"prompt": "ab", "answer": "x"}, {"prompt": "c", "answer": "y"}]
    nodes = {
        "texts": rows_of(*rows),
        "letters": template(parse={"letter": {"regex": "([a-z])", "all": True}}, each="letter"),
    }
    nodes["letters"]["parse"]["letter"]["regex"] = "([a-z])"
    nodes["shape"] = template(columns={"completion": "{{ prompt }}"})
    edges = ["texts.rows -> shape.rows", "shape.rows -> letters.rows"]
    loop = bench(nodes, edges)

    table = loop.give("letters.rows")

    assert column(table, "letter") == ["a", "b", "c"]
    assert [row.parents for row in table.rows] == [("texts:0.0",)] * 2 + [("texts:0.1",)]
    assert [row.k for row in table.rows] == [0, 1, 0]


def test_what_is_not_found_is_absent_and_dropped_columns_end(
    bench: Bench, rows_of: Any, column: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p", "completion": "no number", "note": "n"}),
        "read": template(
            parse={"number": "([0-9]+)", "word": "(num)"}, drop=["note"], default={"extra": 7}
        ),
    }
    loop = bench(nodes, ["sums.rows -> read.rows"])

    [row] = loop.give("read.rows").rows

    assert not row.column("number")
    assert row.column("word") == "num"
    assert not row.column("note")
    assert row.column("sums.note") == "n"


def test_code_writes_columns_and_cuts_rows(bench: Bench, rows_of: Any, column: Any) -> None:
    code = """
def write(prompt, answer, **columns):
    return None if answer == "2" else {"prompt": prompt[::-1], "target": answer}
"""
    nodes = {"sums": rows_of(*SUMS), "turn": template(code=code)}
    loop = bench(nodes, ["sums.rows -> turn.rows"])

    table = loop.give("turn.rows")

    assert column(table, "prompt") == ["=2+2"]
    assert column(table, "target") == ["4"]


ENDS = "def write(prompt, **columns):\n    return {} if prompt == GOES else None\n"


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ({"code": ENDS.replace("GOES", "'1+1='")}, 0.5),
        ({"code": ENDS.replace("GOES", "'3+3='")}, 1.0),
        ({"code": ENDS.replace("GOES", "prompt")}, 0.0),
        ({"parse": {"one": {"regex": "(1)", "all": True}}, "each": "one"}, 0.5),
        ({"parse": {"nine": {"regex": "(9)", "all": True}}, "each": "nine"}, 1.0),
        ({"text": "{{ prompt }}"}, None),
    ],
)
def test_rows_of_which_nothing_goes_on_are_counted(
    fields: dict[str, Any], share: float | None, bench: Bench, rows_of: Any
) -> None:
    loop = bench({"sums": rows_of(*SUMS), "again": template(**fields)}, ["sums.rows -> again.rows"])

    loop.give("again.rows")

    assert loop.outcomes["again.prepare"].metrics.get("rows/none") == share


def test_code_that_fails_names_node_and_row(bench: Bench, rows_of: Any) -> None:
    code = "def write(answer, **columns):\n    return {'prompt': 1 // (int(answer) - 4)}\n"
    nodes = {"sums": rows_of(*SUMS), "turn": template(code=code)}
    loop = bench(nodes, ["sums.rows -> turn.rows"])

    with pytest.raises(UserCodeError) as failed:
        loop.give("turn.rows")

    assert failed.value.node == "turn"
    assert "turn" in str(failed.value)


def test_scores_are_numbers_under_their_node(bench: Bench, rows_of: Any, column: Any) -> None:
    rows = [{"prompt": "p", "completion": "2", "answer": "2"}]
    rows.append({"prompt": "q", "completion": "3", "answer": "2"})
    nodes = {
        "sums": rows_of(*rows),
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        "told": template(text="{% if exact > 0.5 %}right{% else %}wrong{% endif %}"),
    }
    edges = ["sums.rows -> exact.rows", "sums.rows -> told.rows", "exact.scores -> told.scores"]
    loop = bench(nodes, edges)

    assert column(loop.give("told.rows"), "prompt") == ["right", "wrong"]


def test_others_come_from_the_library_and_the_same_way_each_time(
    bench: Bench, rows_of: Any, column: Any
) -> None:
    nodes = {
        "sums": rows_of(*SUMS),
        "shots": rows_of(*({"prompt": f"shot{n}"} for n in range(9))),
        "ask": template(text="{{ others('prompt', 2) | join(',') }};{{ prompt }}"),
    }
    edges = ["sums.rows -> ask.rows", "shots.rows -> ask.library"]

    first, again = (column(bench(nodes, edges).give("ask.rows"), "prompt") for _ in range(2))

    assert first == again
    assert all(text.startswith("shot") for text in first)
    assert first != column(bench(nodes, edges).give("ask.rows", 2), "prompt")


def rewritten(rows_of: Any, actor: Any, fields: dict[str, Any]) -> tuple[Any, Any]:
    """What a writer drew, rewritten by a template, and a learner of its own."""
    nodes = {
        "sums": rows_of({"prompt": "p", "target": "gold"}),
        "actor": actor(),
        "fix": template(**fields),
        "student": {**actor(), "algorithm": {"name": "sft"}},
    }
    edges = ["sums.rows -> actor.prompts", "actor.rollouts -> fix.rows"]
    return nodes, edges


def test_what_is_taught_is_the_text_that_was_written_not_the_one_that_was_drawn(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fields = {"text": "{{ prompt }}, better", "target": "{{ sums.target }}"}
    nodes, edges = rewritten(rows_of, actor, fields)
    loop = bench(nodes, [*edges, "fix.rows -> student.demonstrations"])

    loop.step()

    wanted = Text(prompt="p, better", target="gold")
    assert [item.text for item in loop.items("demonstrations")] == [wanted] * 2


def test_children_of_a_rewritten_row_have_no_tokens_either(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fields = {"parse": {"sign": {"regex": "([a-z])", "all": True}}, "each": "sign"}
    nodes, edges = rewritten(rows_of, actor, fields)
    del nodes["student"]

    assert [row.tokens for row in bench(nodes, edges).give("fix.rows").rows] == [None] * 4


def test_a_rewritten_side_of_a_pair_is_its_new_text(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes, edges = rewritten(rows_of, actor, {"columns": {"completion": "{{ completion }}!"}})
    del nodes["student"]
    nodes["pair"] = {"kind": "pairs", "method": "direct"}
    edges += ["fix.rows -> pair.chosen", "actor.rollouts -> pair.rejected"]
    loop = bench(nodes, edges)

    [pair, _] = loop.give("pair.pairs").rows

    assert (pair.columns["chosen"], pair.columns["rejected"]) == ("pa!", "pa")
    assert "chosen_tokens" not in pair.columns
    assert pair.columns["rejected_tokens"].token_ids.tolist() == [ord("p"), ord("a")]


def test_a_rewritten_row_has_no_tokens_in_a_buffer_although_a_scorer_saw_the_drawn_text(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fields = {"text": "{{ prompt }}, better", "target": "{{ sums.target }}"}
    nodes, edges = rewritten(rows_of, actor, fields)
    nodes["exact"] = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
    nodes["pool"] = {"kind": "buffer", "capacity": 9}
    edges += [
        "actor.rollouts -> exact.rollouts",
        "fix.rows -> pool.rows",
        "exact.scores -> pool.scores",
        "pool.rows -> student.demonstrations",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)

    loop.step(2)

    texts = [item.text for item in loop.items("demonstrations")]
    assert [text.target for text in texts if text] == ["gold"] * 2
