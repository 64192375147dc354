"""libyaml's events give what ruamel.yaml's give, or are not used."""

import random
import re
from contextlib import suppress

import pytest
import yaml

from coloop.spec.presets import presets_root
from coloop.spec.text import reader, scan
from coloop.spec.text.reader import Reading

ODD = {
    "a tab": "a:\tb\n",
    "a break of line of Unicode": "a: b\u2028c: d\n",
    "a mark of the order of bytes": "a: {b: 1, c\ufeff: 2}\n",
    "a carriage return": "a: 1\r\nb: 2\r\n",
    "a second document": "a: 1\n---\nb: 2\n",
    "the end of a document": "a: 1\n...\n",
    "a directive": "%YAML 1.1\n---\na: yes\n",
    "an explicit key": "? a\n: b\n",
    "a value right behind a quoted key": 'a: ["b":1 2]\n',
    "a comment right behind the head of a block": "|#a:\n",
    "a block that begins with blanks": "a: |\n \n    b\n     c\n",
    "a colon right behind an alias": "a: &b 1\n*b: 2\n",
}
"""Texts that are ruamel.yaml's alone."""

DIFFERENT = (
    "a tab",
    "a break of line of Unicode",
    "a value right behind a quoted key",
    "a comment right behind the head of a block",
    "a block that begins with blanks",
)
"""Those of them that libyaml reads, and not as ruamel.yaml does."""

SIGNS = """: :: - # { } [ ] , ' " | > |- |+2 >- ? % @ ` ~ << \\ ! !!str &a *a **a -1 1e-6 é 😀"""
PIECES = (*re.split(" ", SIGNS), "\n", "\n\n", "  ", "\n--- ", "\n...\n", '"a":1', "http://x:1/y#z")


def slowly(text: str) -> Reading:
    return reader._read_with_errors(text)


def quickly(text: str) -> Reading | None:
    """What libyaml alone makes of a text; None where it makes nothing of it."""
    with suppress(reader._Refused, scan.Broken, ValueError):
        return reader._Builder(text, iter(yaml.parse(text, Loader=scan.SCANNER))).build()
    return None


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(presets_root().rglob("*.yaml"))]


def test_libyaml_is_here() -> None:
    assert scan.SCANNER is not None


def test_presets_are_read_by_libyaml_and_say_what_they_say_by_ruamel(texts: list[str]) -> None:
    assert len(texts) > 20
    for text in texts:
        assert scan.quick_events(text) is not None
        assert quickly(text) == slowly(text)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_a_text_that_both_might_read_differently_is_left_to_ruamel(text: str) -> None:
    assert scan.quick_events(text) is None
    assert reader._read(text) == slowly(text)


@pytest.mark.parametrize("name", DIFFERENT)
def test_libyaml_alone_would_read_it_differently(name: str) -> None:
    found = quickly(ODD[name])
    assert found is not None
    assert found != slowly(ODD[name])


def test_broken_texts_get_the_same_words(texts: list[str]) -> None:
    """Pieces of presets with signs strewn in."""
    chance = random.Random(7)
    kinds = {"whole": 0, "broken": 0}
    for _ in range(600):
        lines = chance.choice(texts).splitlines(keepends=True)
        begin = chance.randrange(len(lines))
        text = "".join(lines[begin : begin + chance.randint(1, 8)])
        for _ in range(chance.randint(0, 3)):
            at = chance.randint(0, len(text))
            text = text[:at] + chance.choice(PIECES) + text[at + chance.choice((0, 0, 1, 3)) :]
        found = reader._read.__wrapped__(text)
        assert found == slowly(text), repr(text)
        kinds["broken" if found.diagnostics else "whole"] += 1
    assert min(kinds.values()) > 100, kinds


def test_an_empty_value_stands_behind_its_key() -> None:
    place = reader.read("nodes:\n  a:\n\n# no more\n").place
    assert place is not None
    nothing = place.values["nodes"].values["a"]
    assert (nothing.start, nothing.line, nothing.column) == (11, 2, 5)
