"""Events of a YAML text: from libyaml where its grammar is that of YAML 1.2, else from ruamel.yaml.

libyaml (through PyYAML) scans twenty times as fast, and an edit scans the text several times. It
follows YAML 1.1, so a text is left to ruamel.yaml, whose events are the ones that count, where the
two could read it differently: line breaks other than `\\n`, tabs, byte order marks, directives,
several documents, explicit keys, values directly after a quoted key, blocks that begin with blanks,
some characters directly after the name of an anchor. A text that libyaml cannot read, or that
breaks a rule of ours, is read again by ruamel.yaml, so that errors have one wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

DOCUMENT = "DocumentStartEvent"
MAPPING = "MappingStartEvent"
START = frozenset({MAPPING, "SequenceStartEvent"})
END = frozenset({"MappingEndEvent", "SequenceEndEvent"})
SCALAR = "ScalarEvent"
ALIAS = "AliasEvent"
"""Names of the classes of events; they are the same in both libraries."""

_ODD = re.compile(
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
    r"|^(?:%|---|\.\.\.)"
    r"|(?:^|[\s\[{,:-])\?(?:\s|$)"
    r"|[^(][\"']:\S"
    r"|[|>][-+\d]{0,2}#"
    r"|[|>][-+\d]{0,2}(?: [^\n]*)?\n\n* +\n"
    r"|(?:^|[\s\[{,:?-])[*&][\w-]+[?:%@`]",
    re.MULTILINE | re.ASCII,
)

Broken = yaml.YAMLError

SCANNER: Any = getattr(yaml, "CSafeLoader", None)
"""libyaml, if PyYAML was built with it."""


def name_of(event: Any) -> str:
    return type(event).__name__


def events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML  # loads slowly, and few texts need it

    return iter(YAML(typ="safe", pure=True).parse(text))


def quick_events(text: str) -> Iterator[Any] | None:
    """Events by libyaml; None if it is missing or might read the text differently."""
    if SCANNER is None or _ODD.search(text):
        return None
    scanned: Iterator[Any] = iter(yaml.parse(text, Loader=SCANNER))
    return scanned
