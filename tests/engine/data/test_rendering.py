"""Texts in Jinja: absent values, exact names, and limits on what a template may do."""

import itertools
import time
from types import SimpleNamespace

import pytest

from coloop.data import rendering
from coloop.data.names import names_of
from coloop.data.rendering import RenderProblem, render_text

NAMES = names_of(
    {"prompt": "2+2=", "passage": "the cat sat", "answer": None},
    {"tens.completion": "6", "judge.completion": "cat", "gone.completion": None},
    {"exact": 1.0, "wrong": 0.0, "judge": 0.5, "silent": None},
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ prompt }}", "2+2="),
        ("{{ tens.completion }}", "6"),
        ("{{ answer }}|{{ missing }}|{{ both.completion }}|{{ both.a.b }}", "|||"),
        ("{{ gone.completion }}|{{ silent }}", "|"),
        ("{{ prompt }}{{ ' last: ' ~ both.completion if both.completion }} tens:", "2+2= tens:"),
        ("{{ ' seen ' ~ tens.completion if tens.completion }}", " seen 6"),
        ("{{ 'right' if exact else 'wrong' }}", "right"),
        ("{{ 'right' if wrong else 'wrong' }}", "wrong"),
        ("{{ 'right' if silent else 'wrong' }}", "wrong"),
        ("{{ exact }}", "1.0"),
        ("{{ judge }} {{ judge.completion }} {{ judge.length }}", "0.5 cat "),
        ("{{ 'yes' if judge > 0.4 }}", "yes"),
        ("{{ ' [quoted]' if judge.completion in passage }}", " [quoted]"),
        ("{% for r in responses %}{{ r }}{% endfor %}none", "none"),
        ("{% if tens %}there{% endif %}{% if nobody %}nobody{% endif %}", "there"),
        ("line\n", "line\n"),
        ("line\n\n", "line\n\n"),
        ("<b>{{ '<i>' }}</b>", "<b><i></b>"),
        ("{{ [3, 1, 2] | sort | join(',') }}", "1,2,3"),
        ("{{ 3.14159 | round(2) }} {{ 'a' | upper }} {{ prompt | length }}", "3.14 A 4"),
        ("{% for w in passage.split() %}{{ loop.index }}{{ w }} {% endfor %}", "1the 2cat 3sat "),
        ("{% for w in 'ab' %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        (
            "{% set n = namespace(v=0) %}{% for i in range(4) %}{% set n.v = n.v + i %}{% endfor %}"
            "{{ n.v }}",
            "6",
        ),
        ("{{ 'a'.ljust(3) }}|{{ 'x' * 3 }}|{{ 'a-b'.replace('-', '+') }}", "a  |xxx|a+b"),
        ("{{ '%05d' % 42 }}", "00042"),
        ("{{ ['p', 'q'] | tojson }}", '["p", "q"]'),
    ],
)
def test_what_a_template_writes(source: str, text: str) -> None:
    assert render_text(source, NAMES) == text


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{{ prompt", "unexpected end of template"),
        ("a\nb\n{% if %}", "line 3"),
        ("{{ missing + 1 }}", "'missing' is undefined"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ missing() }}", "'missing' is undefined"),
        ("{{ prompt.nothing() }}", "nothing"),
        ("{% include 'file' %}", "no loader"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
    ],
)
def test_what_cannot_be_rendered_says_why(source: str, told: str) -> None:
    with pytest.raises(RenderProblem) as caught:
        render_text(source, NAMES)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ prompt|attr('__class__') }}",
        "{{ self.__init__.__globals__ }}",
        "{{ judge.__class__ }}",
        "{{ tens.known }}",
        "{{ joiner }}{{ cycler }}",
    ],
)
def test_the_insides_of_python_are_out_of_reach(source: str) -> None:
    try:
        text = render_text(source, NAMES)
    except RenderProblem:
        text = ""

    assert text == ""


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 9 * 'a' }}",
        "{{ [1] * 10 ** 9 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a'.ljust(10 ** 9) }}",
        "{{ 'a'.zfill(10 ** 9) }}",
        "{{ 'a' | center(999999999) }}",
        "{{ 'a' | indent(999999999) }}",
        "{{ '%0999999999d' % 1 }}",
        "{{ '%0999999999d' | format(1) }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ ('a' * 100000).replace('', 'b' * 100000) }}",
        "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
        "{{ (['a' * 1000] * 1000) | join('b' * 1000) }}",
        "{{ ('b' * 1000).join(['a' * 1000] * 1000) }}",
        "{{ range(10 ** 9) | list }}",
        "{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    ],
)
def test_what_grows_without_bound_is_stopped_before_it_does(source: str) -> None:
    began = time.thread_time()

    with pytest.raises(RenderProblem):
        render_text(source, NAMES)

    assert time.thread_time() - began < 1.5


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% set p = 'x' * 9999 %}{% for a in p %}{% for b in p %}{% for c in p %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ],
)
def test_what_takes_for_ever_is_stopped_by_the_clock(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 0.2)

    with pytest.raises(RenderProblem, match=r"takes more than 0\.2 seconds"):
        render_text(source, NAMES)


def test_time_in_which_others_had_the_machine_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = itertools.count(0.0, 10 * rendering.SECONDS)
    clocks = SimpleNamespace(monotonic=lambda: next(waiting), thread_time=lambda: 0.0)
    monkeypatch.setattr(rendering, "time", clocks)

    assert render_text("{% for c in prompt %}{{ c }} {% endfor %}", NAMES) == "2 + 2 = "


def test_many_rows_render_quickly() -> None:
    source = "{{ prompt }}{{ ' last: ' ~ both.completion if both.completion }} tens:"
    began = time.thread_time()

    for _ in range(1000):
        render_text(source, NAMES)

    assert time.thread_time() - began < 1.0
