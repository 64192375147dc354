"""Rewards that ask a library in the limited process: math-verify and jsonschema."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards import judging
from coloop.data.rewards.builtin import judge_of, score_builtin
from coloop.data.rewards.judging import LibraryJudge, source_of
from coloop.data.rewards.scoring import Question, ScoringRow
from coloop.data.rewards.user_code import OnError, ScoredRows
from coloop.errors import DataError
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox
from coloop.spec.builtins import BuiltinSource
from coloop.spec.reward import ScoreAs

OPTIONS: TypeAdapter[Any] = TypeAdapter(BuiltinSource)


@pytest.fixture(scope="module")
def library() -> Iterator[LibraryJudge]:
    """One process for all tests that do not spoil it: it takes a second to start."""
    judge = LibraryJudge("mathematics", "mine", library="math-verify")
    yield judge
    judge.close()


def judged(
    name: str,
    rows: list[dict[str, Any]],
    *,
    judge: LibraryJudge | None = None,
    on_error: OnError = "stop",
    **options: Any,
) -> ScoredRows[Any]:
    source = OPTIONS.validate_python({"type": "builtin", "name": name, **options})
    given = [ScoringRow(columns=columns) for columns in rows]
    return score_builtin(source, given, node="mine", on_error=on_error, judge=judge)


def pairs(*given: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"completion": f"so \\boxed{{{said}}}", "answer": gold} for said, gold in given]


def nothing() -> None: ...


@pytest.mark.slow
def test_sets_intervals_and_expressions_are_compared_as_mathematics(library: LibraryJudge) -> None:
    rows = pairs(
        (r"\{1,2\}", r"\{2,1\}"),
        ("[1,2)", r"1 \le x < 2"),
        (r"(-\infty,3)\cup(4,5)", r"(4,5)\cup(-\infty,3)"),
        ("(x+1)^2", "x^2+2x+1"),
        (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt2}"),
        (r"\sin^2 x+\cos^2 x", "1"),
        (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{bmatrix}1&2\end{bmatrix}"),
        ("4i+3", "3+4i"),
        (r"\binom{5}{2}", "10"),
    )

    found = judged("math_equal", rows, judge=library)

    assert found.scores == [1.0] * len(rows)
    assert found.failures == ()


def test_other_sets_intervals_and_expressions_are_told_apart(library: LibraryJudge) -> None:
    rows = pairs(
        (r"\{1,2\}", r"\{1,3\}"),
        ("[1,2)", "(1,2)"),
        ("(1,2)", "(2,1)"),
        ("(x+1)^2", "x^2+1"),
        ("x", "7"),
        ("(" * 300, "x+1"),
        ("dog", "god"),
    )

    assert judged("math_equal", rows, judge=library).scores == [0.0] * len(rows)


def test_one_of_several_answers_is_enough(library: LibraryJudge) -> None:
    [row] = pairs(("b+a", ""))

    assert judged("math_equal", [{**row, "answer": ["7", "a+b"]}], judge=library).scores == [1.0]


@pytest.mark.slow
def test_a_text_that_would_hold_the_library_scores_nothing_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "CPU_SECONDS", 0.3)
    hostile, right = ("x+9^{9^{9^{9}}}", "x+1"), ("1+x", "x+1")

    found = judged("math_equal", pairs(hostile, right))

    assert found.scores == [0.0, 1.0]
    [failure] = found.failures
    assert failure.row == 0
    assert "math-verify did not decide" in failure.message
    assert "0.3 seconds" in failure.message

    monkeypatch.setattr(judging, "PATIENCE_SECONDS", 0.01)
    found = judged("math_equal", pairs(hostile, right))

    assert found.scores == [0.0, None]
    assert "was not asked" in found.failures[1].message


def test_the_same_question_is_asked_once(
    library: LibraryJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(columns={"answer": "a+b", "golds": ["b+a"]})
    [first] = library.verdicts([question], nothing)
    monkeypatch.setattr(library, "_ask", pytest.fail)

    assert library.verdicts([question, question], nothing) == [first, first]


def test_a_run_that_stops_ends_the_question() -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    judge = LibraryJudge("mathematics", "mine", library="math-verify")
    try:
        with pytest.raises(KeyboardInterrupt):
            judge.verdicts([Question(columns={"answer": "x", "golds": ["9^{9^{9^9}}"]})], stops)
    finally:
        judge.close()


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "source_of", lambda name: "import no_such_library\n")
    rows = pairs(("x+1", "1+x"))

    with pytest.raises(DataError, match=r"mine: math-verify cannot be used here.*no_such_library"):
        judged("math_equal", rows)


@pytest.mark.sample(1)
@pytest.mark.parametrize("isolation", [Isolation.NAMESPACES, Isolation.CALLS, Isolation.NONE])
def test_behind_every_isolation_the_libraries_answer_alike(isolation: Isolation) -> None:
    questions: dict[str, list[dict[str, Any]]] = {
        "mathematics": [
            {"answer": r"\{1,2\}", "golds": [r"\{2,1\}"]},
            {"answer": "(1,2)", "golds": ["[1,2]"]},
            {"answer": r"\int_0^1 x dx", "golds": [r"\frac{1}{2}"]},
            {"answer": r"\sum_{i=1}^{10} i", "golds": ["55"]},
            {"answer": r"90^\circ", "golds": ["90"]},
        ],
        "schema": [
            {"schema": {"type": "integer"}, "text": "3"},
            {"schema": {"type": "string", "pattern": "^a"}, "text": '"b"'},
        ],
    }
    expected = {"mathematics": [1.0, 0.0, 1.0, 1.0, 1.0], "schema": [1.0, 0.0]}

    for name, rows in questions.items():
        with Sandbox(
            source_of(name),
            function="judge",
            node="mine",
            isolation=isolation,
            is_ours=True,
            timeout_seconds=60,
            memory_mib=1024,
        ) as sandbox:
            said = sandbox.write(rows)
        assert [one and one["score"] for one in said] == expected[name]


SCHEMA = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"$ref": "#/$defs/age"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "additionalProperties": False,
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}
FORMS = {
    '{"name": "x", "age": 3}': 1.0,
    '{"name": "x", "age": 3, "tags": ["a", "b"]}': 1.0,
    '{"name": "x"}': 0.0,
    '{"name": "", "age": 3}': 0.0,
    '{"name": "x", "age": -1}': 0.0,
    '{"name": "x", "age": 1.5}': 0.0,
    '{"name": "x", "age": true}': 0.0,
    '{"name": "x", "age": 3, "tags": ["c"]}': 0.0,
    '{"name": "x", "age": 3, "more": 1}': 0.0,
    "[]": 0.0,
    "no json": 0.0,
    '{"name": "x", "age": NaN}': 0.0,
    "[" * 100_000: 0.0,
}


def test_json_schema() -> None:
    found = judged("json_schema", [{"completion": text} for text in FORMS], shape=SCHEMA)

    assert dict(zip(FORMS, found.scores, strict=True)) == FORMS


def test_json_schema_of_the_row_and_none_at_all() -> None:
    rows = [
        {"completion": "[1]", "form": '{"type": "array"}'},
        {"completion": "{}", "form": {"type": "array"}},
        {"completion": "{}", "form": {}},
    ]

    assert judged("json_schema", rows, column="form").scores == [1.0, 0.0, 1.0]
    assert judged("json_schema", rows[1:2]).scores == [1.0]


@pytest.mark.slow
def test_a_row_without_its_schema_is_told() -> None:
    rows = [{"completion": "1", "form": {}}, {"completion": "1"}, {"completion": "1", "form": None}]
    what = "mine, row 1: json_schema: column `form` must be a JSON schema"

    with pytest.raises(DataError, match=what):
        judged("json_schema", rows, column="form")
    found = judged("json_schema", rows, column="form", on_error="skip_row")
    assert found.scores == [1.0, None, None]
    assert [failure.row for failure in found.failures] == [1, 2]


@pytest.mark.slow
def test_a_format_of_a_schema_is_checked() -> None:
    texts = {'{"e": "x", "d": "2024-02-29"}': 0.0, '{"e": "x@y.org", "d": "2023-02-29"}': 0.0}
    texts |= {'{"e": "x@y.org", "d": "2024-02-29"}': 1.0}
    shape = {"properties": {"e": {"format": "email"}, "d": {"format": "date"}}}

    found = judged("json_schema", [{"completion": text} for text in texts], shape=shape)

    assert dict(zip(texts, found.scores, strict=True)) == texts
    named_so = {"properties": {"format": {"type": "integer"}}}
    assert judged("json_schema", [{"completion": '{"format": 1}'}], shape=named_so).scores == [1.0]


DATES = {
    "2024-02-29T00:00:00Z": 1.0,
    "2024-02-29t10:20:30.25+05:30": 1.0,
    "2023-02-29T00:00:00Z": 0.0,
    "2024-02-29T25:00:00Z": 0.0,
    "2024-02-29T00:00:00": 0.0,
    "2024-02-29": 0.0,
    "soon": 0.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("draft", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_other_formats_of_the_drafts_are_notes(draft: dict[str, str]) -> None:
    named = ("uri", "time", "hostname", "idn-hostname", "json-pointer", "duration", "int32")
    forms: list[dict[str, Any]] = [{"format": name} for name in named]
    rows = [{"completion": '"x y"', "form": form | draft} for form in forms]
    rows.append({"completion": '"x y"', "form": {"format": "uuid"} | draft})

    assert judged("json_schema", rows, column="form").scores == [1.0] * len(named) + [0.0]
    dates = [{"completion": json.dumps(text)} for text in DATES]
    found = judged("json_schema", dates, shape={"format": "date-time"} | draft)
    assert dict(zip(DATES, found.scores, strict=True)) == DATES


BAD_SCHEMAS = {
    "refers to something that it does not contain": {"$ref": "#/x"},
    r"\$\.requird is not known": {"type": "object", "requird": ["a"]},
    r"\$\.properties\.a\.typ is not known": {"properties": {"a": {"typ": "integer"}}},
    r"\$\.properties\.a\.format is not a known format: found 'phone', known are binary": {
        "properties": {"a": {"format": "phone"}}
    },
    r"\$\.type is invalid": {"type": "whole"},
    "refers to itself endlessly": {"$ref": "#"},
    "an object, found 3": 3,
}


@pytest.mark.slow
def test_a_schema_that_is_none_stops_or_leaves_its_row_out() -> None:
    rows = [{"completion": "{}", "form": schema} for schema in BAD_SCHEMAS.values()]
    rows.append({"completion": "{}", "form": {"type": "object"}})

    found = judged("json_schema", rows, column="form", on_error=ScoreAs(score=-1.0))

    assert found.scores == [-1.0] * len(BAD_SCHEMAS) + [1.0]
    for expected, failure in zip(BAD_SCHEMAS, found.failures, strict=True):
        with pytest.raises(DataError, match=expected):
            raise DataError(failure.message)
    with pytest.raises(
        DataError, match=r"mine, row 0: json_schema: column `form`: the schema refers"
    ) as failed:
        judged("json_schema", rows[:1], column="form")
    assert (failed.value.node, failed.value.field) == ("mine", "source")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["no json", "[1", "NaN"])
def test_a_wrong_schema_is_told_whatever_the_text_is(text: str) -> None:
    wrong = {"type": "object", "requird": ["a"]}
    rows = [{"completion": text, "form": {"type": "object"}}, {"completion": text, "form": wrong}]

    with pytest.raises(
        DataError, match=r"mine, row 1: json_schema: column `form`: the schema's \$\.requird is not"
    ):
        judged("json_schema", rows, column="form")
    with pytest.raises(DataError, match=r"mine, row 0: the schema's \$\.requird is not known"):
        judged("json_schema", rows[1:], shape=wrong)
    assert judged("json_schema", rows[:1], column="form").scores == [0.0]


@pytest.mark.slow
def test_a_pattern_of_a_schema_that_backtracks_without_end_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "CPU_SECONDS", 0.3)
    row = {"completion": '"' + "a" * 40 + 'b"'}

    found = judged("json_schema", [row], shape={"pattern": "^(a|aa)+$"})

    assert found.scores == [0.0]
    assert "jsonschema did not decide" in found.failures[0].message


def test_a_reward_that_asks_nobody_has_no_judge() -> None:
    source = OPTIONS.validate_python({"type": "builtin", "name": "exact_match"})

    assert judge_of(source, "mine") is None
