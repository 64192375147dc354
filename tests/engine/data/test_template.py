"""Template programs over plain rows: every field of a template node."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from coloop.data.template import TemplateProgram, TemplateRow, Written, column_of, json_values
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox
from coloop.spec.nodes import TemplateNode


def program(**fields: Any) -> TemplateProgram:
    section = TemplateNode.model_validate({"kind": "template", **fields})
    return TemplateProgram.from_section(section, node="ask")


def row(**columns: Any) -> TemplateRow:
    return TemplateRow(columns=columns)


def only(fields: Mapping[str, Any], one: TemplateRow) -> Written:
    written = program(**fields).apply([one])
    assert len(written) == 1
    assert written[0] is not None
    return written[0]


def test_text_becomes_the_prompt() -> None:
    assert only({"text": "{{ prompt }} tens:"}, row(prompt="2+2")).columns == {
        "prompt": "2+2 tens:"
    }


def test_messages_become_a_chat() -> None:
    messages = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "{{ prompt }}"},
    ]

    assert only({"messages": messages}, row(prompt="2+2")).columns["prompt"] == [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "2+2"},
    ]


def test_target_and_columns_are_rendered_too() -> None:
    written = only(
        {"text": "{{ prompt }}", "target": "{{ first }}!", "columns": {"n": "{{ first|length }}"}},
        row(prompt="p", first="abc"),
    )

    assert written.columns == {"prompt": "p", "target": "abc!", "n": "3"}


def test_exact_names_reach_what_a_node_wrote() -> None:
    one = TemplateRow(
        columns={"prompt": "p"},
        scoped={"tens.completion": "6", "units.completion": "5"},
        scores={"exact": 1.0},
    )
    text = "{{ tens.completion }}{{ units.completion }}{{ ' ok' if exact }}"

    assert only({"text": text}, one).columns["prompt"] == "65 ok"


def test_parsed_columns_can_be_used_and_travel_on() -> None:
    written = only(
        {"parse": {"question": r"(\d+\+\d+)="}, "text": "{{ question }}="},
        row(prompt="new:", completion="1+1= no, 2+3= yes"),
    )

    assert written.columns == {"question": "2+3", "prompt": "2+3="}


def test_what_is_not_found_is_absent_even_where_an_ancestor_has_it() -> None:
    written = only(
        {"parse": {"question": r"Q: (.+)"}, "text": "[{{ question }}]"},
        row(completion="nothing", question="old"),
    )

    assert written.columns == {"prompt": "[]"}
    assert written.absent == {"question"}


def test_a_default_fills_what_is_not_found() -> None:
    fields = {"parse": {"answer": "A: (.)"}, "default": {"answer": "?"}, "text": "{{ answer }}"}

    assert only(fields, row(completion="none")).columns == {"answer": "?", "prompt": "?"}
    assert only(fields, row(completion="A: B")).columns == {"answer": "B", "prompt": "B"}


def test_a_default_leaves_what_is_there_alone() -> None:
    fields = {"default": {"hint": "none"}, "text": "{{ hint }}"}

    assert only(fields, row(prompt="p", hint="look")).columns == {"prompt": "look"}
    assert only(fields, row(prompt="p")).columns == {"hint": "none", "prompt": "none"}


def test_the_prompt_is_parsed_where_nothing_was_written() -> None:
    assert only({"parse": {"n": r"(\d+)"}}, row(prompt="take 7")).columns == {"n": "7"}


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        (r"\d+", "1 and 22", "22"),
        (r"(\d)-|(\d)\+", "1- 2+", "2"),
        ({"regex": r"(\d+)", "all": True}, "1 and 22", ["1", "22"]),
        ({"tag": "answer"}, "<answer>a</answer><answer> b\n</answer>", " b\n"),
        ({"tag": "answer"}, "<answer>open <answer>b</answer>", "b"),
        ({"tag": "answer", "all": True}, "<answer>a</answer> <answer>b</answer>", ["a", "b"]),
        ({"tag": "answer"}, "<answer>never closed", None),
        ({"json": "answer.value"}, 'x {"answer": {"value": 3}} y', 3),
        ({"json": "items.1"}, '{"items": ["a", "b"]}', "b"),
        ({"json": "a"}, '{"a": 1} {"a": 2} {"b": 3}', 2),
        ({"json": "a", "all": True}, '{"a": 1} {broken {"a": 2}', [1, 2]),
        ({"json": "a"}, "{not json", None),
        ({"json": "a"}, "[" * 5000, None),
    ],
)
def test_rules_of_parse(rule: Any, text: str, value: Any) -> None:
    section = TemplateNode.model_validate({"kind": "template", "parse": {"x": rule}})

    assert column_of(text, section.parse["x"]) == value


def test_json_values_are_not_looked_for_inside_one_another() -> None:
    assert list(json_values('a {"b": [1]} c [2] 3')) == [{"b": [1]}, [2]]


def test_dropped_columns_end_here() -> None:
    written = only(
        {"parse": {"question": "(.+)"}, "text": "{{ question }}", "drop": ["target", "answer"]},
        row(completion="why", target="t", answer="a"),
    )

    assert written.columns == {"question": "why", "prompt": "why"}
    assert written.absent == {"target", "answer"}


def test_a_column_that_is_only_read_here_may_be_dropped() -> None:
    written = only(
        {"parse": {"question": "(.+)"}, "text": "{{ question }}", "drop": ["question"]},
        row(completion="why"),
    )

    assert written.columns == {"prompt": "why"}
    assert "question" in written.absent


def test_each_makes_a_row_of_every_element() -> None:
    fields = {
        "parse": {"item": {"regex": "- (.+)", "all": True}},
        "each": "item",
        "text": "do {{ item }}",
    }

    written = only(fields, row(completion="- wash\n- dry"))

    assert written.elements is not None
    assert [element.columns for element in written.elements] == [
        {"item": "wash", "prompt": "do wash"},
        {"item": "dry", "prompt": "do dry"},
    ]


def test_each_of_a_column_that_the_row_brings() -> None:
    written = only({"each": "options", "text": "{{ options }}?"}, row(options=["a", "b"]))

    assert written.elements is not None
    assert [element.columns["prompt"] for element in written.elements] == ["a?", "b?"]


def test_each_of_nothing_gives_no_rows() -> None:
    written = only({"parse": {"item": {"regex": "- (.+)", "all": True}}, "each": "item"}, row())

    assert written.elements == ()


def test_each_of_a_text_is_told() -> None:
    with pytest.raises(UserCodeError, match="ask, row 0: each: column `item` must be a list"):
        program(each="item").apply([row(item="wash")])


def test_code_writes_columns_or_cuts_the_row() -> None:
    code = (
        "def write(prompt, exact, **columns):\n"
        "    return None if exact is None else {'prompt': prompt.upper(), 'hard': exact < 1}\n"
    )
    rows = [
        TemplateRow(columns={"prompt": "a"}, scores={"exact": 1.0}),
        TemplateRow(columns={"prompt": "b"}),
    ]
    with Sandbox(code, function="write", node="ask") as runner:
        written = program(code=code, columns={"shout": "{{ prompt }}!"}).apply(rows, runner=runner)

    assert written[0] is not None
    assert written[0].columns == {"prompt": "A", "hard": False, "shout": "A!"}
    assert written[1] is None


def test_code_and_each_ask_both_ways() -> None:
    code = "def write(theorem, **c): return {'prompt': [theorem, 'not ' + theorem]}"
    with Sandbox(code, function="write", node="ask") as runner:
        written = program(code=code, each="prompt").apply([row(theorem="a")], runner=runner)

    assert written[0] is not None
    assert written[0].elements is not None
    assert [element.columns["prompt"] for element in written[0].elements] == ["a", "not a"]


def test_others_are_drawn_from_the_other_rows_and_repeat_with_the_seed() -> None:
    rows = [TemplateRow(columns={"prompt": f"p{i}"}, seed=i) for i in range(6)]
    ask = program(text="{% for p in others('prompt', 3) %}{{ p }} {% endfor %}")

    first = [one.columns["prompt"] for one in ask.apply(rows) if one]

    assert first == [one.columns["prompt"] for one in ask.apply(rows) if one]
    for place, text in enumerate(first):
        drawn = text.split()
        assert len(set(drawn)) == 3
        assert f"p{place}" not in drawn
    assert len(set(first)) > 1


def test_others_give_what_there_is_and_skip_rows_without_the_column() -> None:
    rows = [row(prompt="a"), row(prompt="b", n=1), row(prompt="c")]

    written = program(text="{{ others('n', 4) }}").apply(rows)

    assert [one.columns["prompt"] for one in written if one] == ["[1]", "[]", "[1]"]


def test_others_come_from_the_library_alone_where_there_is_one() -> None:
    library = [row(principle="no x"), row(principle="no y")]

    written = program(text="{{ others('principle', 1)[0] }}").apply(
        [row(prompt="p", principle="own")], library=library
    )

    assert written[0] is not None
    assert written[0].columns["prompt"] in ("no x", "no y")


def test_past_lists_the_earlier_rounds() -> None:
    one = TemplateRow(columns={"prompt": "p"}, earlier=({"completion": "a"}, {"completion": "b"}))

    assert only({"text": "{{ past('completion')|join('>') }}"}, one).columns["prompt"] == "a>b"


def test_a_text_that_does_not_compile_names_node_and_field() -> None:
    with pytest.raises(UserCodeError, match=r"ask: columns\.n: line 1"):
        program(columns={"n": "{{ x"})


def test_a_text_that_cannot_be_rendered_names_the_row() -> None:
    rows: Sequence[TemplateRow] = [row(n=1), row()]

    with pytest.raises(UserCodeError, match="ask, row 1: text: 'n' is undefined") as caught:
        program(text="{{ n + 1 }}").apply(rows)

    assert caught.value.row == 1


def test_a_pattern_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coloop.data.patterns.TIMEOUT_SECONDS", 0.2)

    with pytest.raises(UserCodeError, match=r"ask, row 0: parse\.x: the pattern"):
        program(parse={"x": "^(a|aa)+$"}).apply([row(completion="a" * 40 + "b")])
