"""Texts in Jinja: absent values, exact names, and limits on what a template may do."""

import itertools
import time

import pytest

from coloop.data.templates import budget
from coloop.data.templates.environment import RenderProblem, render_text
from coloop.data.templates.grammar import names_of

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
        ("{{ dict([['a', 1], ['b', 2]], b=3) }}{{ dict({'a': 1}).a }}", '{"a": 1, "b": 3}1'),
        ("{% set n = namespace([['a', 1]], b=2) %}{{ n.a - n.b }}", "-1"),
        (
            "{% for w in ['aa', 'b'] %}{{ w.count('a') }}{{ w.replace('a', 'c') }} {% endfor %}",
            "2cc 0b ",
        ),
        (
            "{% macro f(x, y=1) %}{{ x }}{{ y }}{% endmacro %}{% for w in 'ab' %}"
            "{{ f(w, y=w) }}{% endfor %}",
            "aabb",
        ),
        (
            "{% for w in 'ab' %}{{ loop.cycle('x', 'y') }}{{ loop.changed(w) }}{% endfor %}",
            "xTrueyTrue",
        ),
        ("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "a1b2"),
        (
            "{% for x in [1, [2, [3]]] recursive %}{{ x if x is number else loop(x) }}{% endfor %}",
            "123",
        ),
        ("{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}x{% endcall %}", "<x>"),
        (
            "{% filter upper %}a{{ 'b' }}{% endfilter %}{% set x %}c{{ 'd' }}{% endset %}{{ x }}",
            "ABcd",
        ),
        ("{% filter length %}abc{% endfilter %}{% filter list %}ab{% endfilter %}", '3["a", "b"]'),
        ("{% set x | upper %}c{% endset %}{{ x }}{% with y = 'z' %}{{ y }}{% endwith %}", "Cz"),
        (
            "{{ passage[4:7] }}{{ [1, 2, 3][::-1] }}{{ 'abc'[1] }}{{ passage.split()[-1] }}",
            "cat[3, 2, 1]bsat",
        ),
        (
            "{{ [1, 2] | sum }} {{ ['a', 'b'] | sum(start='') }} {{ [[1], [2]] | sum(start=[]) }}",
            "3 ab [1, 2]",
        ),
        ("{{ [{'a': 2}, {'a': 1}] | map(attribute='a') | sort | join('<') }}", "1<2"),
        (
            "{{ [{'a': 2, 'b': 'x'}, {'a': 2, 'b': 'y'}] | groupby('a') | map('first') | list }}",
            "[2]",
        ),
        (
            "{{ [1, 2, 3, 4] | select('odd') | list }}{{ [3, 4] | reject('even') | first }}",
            "[1, 3]3",
        ),
        (
            "{{ [{'a': 0}, {'a': 1}] | selectattr('a') | list }}{{ [1, 1, 2] | unique | list }}",
            '[{"a": 1}][1, 2]',
        ),
        (
            "{{ 'a<b' | e }}{{ ('a' | e) ~ '<' }}{{ 'x' | safe }}{{ '<b>t</b>' | striptags }}",
            "a&lt;ba<xt",
        ),
        (
            "{{ 'b' in ['a', 'b'] }}{{ 1 < 2 < 3 }}{{ 'a' == 'a' }}{{ 3 is odd }}"
            "{{ 4 is divisibleby 2 }}",
            "TrueTrueTrueTrueTrue",
        ),
        (
            "{{ 'a' is in ['a'] }}{{ [1] is eq [1] }}{{ 'A' is upper }}{{ prompt is defined }}",
            "TrueTrueTrueTrue",
        ),
        (
            "{{ '%(a)s-%(b)03d' % {'a': 'x', 'b': 7} }}{{ '%s/%s' | format(1, 2) }}"
            "{{ '100%%' % () }}",
            "x-0071/2100%",
        ),
        (
            "{{ 'a b c' | wordcount }}{{ 'a b c d' | truncate(5, leeway=0) }}"
            "{{ 'x' | indent(2, true) }}",
            "3a...  x",
        ),
        (
            "{{ {'b': 1, 'a': 2} | dictsort }}{{ {'a': 1} | items | list }}{{ dict(a=1)['a'] }}",
            '[["a", 2], ["b", 1]][["a", 1]]1',
        ),
        (
            "{{ '5' | int + 1 }}{{ 'ff' | int(0, 16) }}{{ 'x' | int(-1) }}{{ '1.5' | float }}",
            "6255-11.5",
        ),
        (
            "{{ 'abc' | reverse }}{{ [1, 2] | reverse | list }}{{ 'ab' | list }}{{ [3, 1] | min }}",
            'cba[2, 1]["a", "b"]1',
        ),
        (
            "{{ judge | round(1) }}{{ -3 | abs }}{{ 2048 | filesizeformat(true) }}"
            "{{ 'a b' | urlencode }}",
            "0.532.0 KiBa%20b",
        ),
        (
            "{{ missing | default('d') }}{{ [] | default('d', true) }}{{ 'x' | center(3) }}|",
            "dd x |",
        ),
        (
            "{{ {'a': '<'} | tojson }}{{ ' x ' | trim }}{{ 'ab' | title }}{{ 'AB' | lower }}",
            '{"a": "\\u003c"}xAbab',
        ),
        (
            "{{ {'a': [1, {'b': 2}]} }}{{ (1, 'x') }}{{ none }}{{ true }}",
            '{"a": [1, {"b": 2}]}[1, "x"]True',
        ),
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
        ("{% include 'file' %}", "not supported"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
        ("{{ [-(10 ** 12)] | map('~pass') | list }}", "No filter named '~pass'"),
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

    assert time.thread_time() - began < 5


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
    monkeypatch.setattr(budget, "SECONDS", 0.2)

    with pytest.raises(RenderProblem, match=r"takes more than 0\.2 seconds"):
        render_text(source, NAMES)


def test_time_in_which_others_had_the_machine_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = itertools.count(0.0, 10 * budget.SECONDS)
    monkeypatch.setattr(budget, "monotonic", lambda: next(waiting))
    monkeypatch.setattr(budget, "thread_time", lambda: 0.0)

    assert render_text("{% for c in prompt %}{{ c }} {% endfor %}", NAMES) == "2 + 2 = "


def test_one_pause_of_the_whole_process_ends_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of garbage takes the time of the thread that it happens in."""
    clock = itertools.chain([0.0, 0.0], itertools.repeat(100.0))
    monkeypatch.setattr(budget, "monotonic", lambda: next(clock))
    monkeypatch.setattr(budget, "thread_time", lambda: next(clock))

    assert render_text("{% for c in prompt %}{{ c }} {% endfor %}", NAMES) == "2 + 2 = "


def test_many_rows_render_quickly() -> None:
    source = "{{ prompt }}{{ ' last: ' ~ both.completion if both.completion }} tens:"
    began = time.thread_time()

    for _ in range(1000):
        render_text(source, NAMES)

    assert time.thread_time() - began < 5


SAID = [{"role": "user", "content": "What is \u00e9 + 1?"}]
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "1+1"}, {"type": "text", "text": "?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add"}}]},
    {"role": "tool", "content": "2"},
]
WRITTEN = 'system: Be brief.\n\nuser: 1+1?\n\nassistant: {"function": {"name": "add"}}\n\ntool: 2'


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ said }}", "What is \u00e9 + 1?"),
        ("{{ chat }}", WRITTEN),
        ("Q: {{ said ~ '!' }}", "Q: What is \u00e9 + 1?!"),
        ("{{ said | upper }}", "WHAT IS \u00c9 + 1?"),
        ("{{ said | trim | length }}", "14"),
        ("{{ said | string }}", "What is \u00e9 + 1?"),
        ("{{ [said, 'b'] | join(' / ') }}", "What is \u00e9 + 1? / b"),
        ("{{ '%s' % said }}", "What is \u00e9 + 1?"),
        ("{{ '%s, %d' % (said, 2) }}", "What is \u00e9 + 1?, 2"),
        ("{{ '%(q)s' % {'q': said} }}", "What is \u00e9 + 1?"),
        ("{{ '%s: %s' | format(said, ['a']) }}", 'What is \u00e9 + 1?: ["a"]'),
        ("{{ said[-1].content }}", "What is \u00e9 + 1?"),
        ("{{ said[0] }}", '{"role": "user", "content": "What is \u00e9 + 1?"}'),
        ("{{ ['\u00e9', none, true] }}", '["\u00e9", null, true]'),
        ("{{ [] }}{{ {} }}", "[]{}"),
        ("{% for m in chat %}{{ m.role[0] }}{% endfor %}", "suat"),
    ],
)
def test_a_chat_is_written_as_a_person_reads_it_and_other_values_as_json(
    source: str, text: str
) -> None:
    assert render_text(source, {"said": SAID, "chat": CHAT}) == text
