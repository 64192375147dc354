"""Columns that are not certain: some rows lack them, or not all of a large file was looked at.

The rules of `columns` are asked twice more: with the columns that every row has, and with those
that were seen. What they find then and not before is told as a warning, with what was looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from coloop.spec.diagnostics import Diagnostic, Severity
from coloop.validate.columns import RULES as NAME_RULES
from coloop.validate.columns import fields_name_columns, texts_are_there_to_read
from coloop.validate.facts import Facts

UNKNOWN: Final = "structure.unknown_column"

NameRule = Callable[[Facts], Iterator[Diagnostic]]

WITHOUT_DEFAULT: Final = (fields_name_columns, texts_are_there_to_read)
"""Rules for places that want a value in every row; in a text an absent one is empty."""


def columns_were_seen(facts: Facts) -> Iterator[Diagnostic]:
    """Names that no row gives, as far as a large file was looked at."""
    parts = {name: seen for name, seen in facts.glances.items() if not seen.is_whole}
    if not parts:
        return
    columns = {name: facts.columns_of(name) for name in facts.glances}
    looked = ", ".join(f"{seen.rows:,} rows of `{name}`" for name, seen in parts.items())
    for finding in _new_findings(facts, columns, NAME_RULES):
        yield _as_warning(finding, "data.unseen_column", f"{finding.message} in {looked}")


def columns_are_in_every_row(facts: Facts) -> Iterator[Diagnostic]:
    """Names that some rows give and others do not, where each row needs them."""
    lacking = {
        (name, column): lack
        for name, seen in facts.glances.items()
        for column, lack in seen.lacking.items()
    }
    if not lacking:
        return
    columns = {name: facts.columns_of(name, everywhere=True) for name in facts.glances}
    for finding in _new_findings(facts, columns, WITHOUT_DEFAULT):
        for (name, column), lack in lacking.items():
            if f"`{column}`" not in finding.message:
                continue
            line = "" if lack.line is None else f", first in line {lack.line}"
            message = (
                f"`{column}` is missing in {lack.rows:,} of {facts.glances[name].rows:,} rows of "
                f"`{name}`{line}; nodes that read it get nothing for these rows"
            )
            yield _as_warning(finding, "data.partial_column", message)


def _new_findings(
    facts: Facts, columns: Mapping[str, frozenset[str]], rules: Iterable[NameRule]
) -> Iterator[Diagnostic]:
    known = {(one.path, one.message) for rule in NAME_RULES for one in rule(facts)}
    other = Facts(facts.spec, facts.root, is_confined=facts.is_confined, known_columns=columns)
    for rule in rules:
        for one in rule(other):
            if one.code == UNKNOWN and (one.path, one.message) not in known:
                yield one


def _as_warning(finding: Diagnostic, code: str, message: str) -> Diagnostic:
    return finding.model_copy(
        update={"code": code, "severity": Severity.WARNING, "message": message}
    )


RULES = (columns_were_seen, columns_are_in_every_row)
