"""`coloop explain`: help for a code, or for an algorithm with its formulas and curves; `coloop
schema`."""

import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from pydantic import ValidationError

from coloop.cli.app import Json
from coloop.cli.output import complain, print_json
from coloop.explain.algorithm import algorithm_names, explain_algorithm
from coloop.explain.codes import explain, list_codes, near
from coloop.spec.catalog import json_schema
from coloop.spec.diagnostics import closest
from coloop.spec.text.reader import data_of

NOT_FOUND = 2


def explain_command(
    what: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Code of a finding or alert, or an algorithm."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Override a setting of the algorithm."),
    ] = None,
    as_json: Json = False,
) -> int:
    if what is None:
        return _list(as_json=as_json)
    if what in algorithm_names():
        return _algorithm(what, settings or [], as_json=as_json)
    if settings:
        complain(f"`{what}` is not an algorithm and has no settings")
        return NOT_FOUND
    page = explain(what)
    if page is None:
        names = list(dict.fromkeys([*near(what), *closest(what, algorithm_names())]))[:4]
        hint = f" Did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""
        complain(f"there is no help for `{what}`.{hint} `coloop explain` lists all names")
        return NOT_FOUND
    if as_json:
        print_json(page.model_dump(mode="json"))
        return 0
    _print(f"{page.code}: {page.title}", page.means, f"Why it matters: {page.matters}")
    _print("How to fix it", *(f"- {fix}" for fix in page.fix))
    if page.example is not None:
        _print("Wrong", _indented(page.example.wrong))
        _print("Right", _indented(page.example.right))
    if page.source is not None:
        _print(f"More: {page.source}")
    return 0


def _list(*, as_json: bool) -> int:
    codes = list_codes()
    if as_json:
        dumped = [code.model_dump() for code in codes]
        print_json({"codes": dumped, "algorithms": algorithm_names()})
        return 0
    width = max(len(code.code) for code in codes)
    sys.stdout.write("".join(f"{code.code:<{width}}  {code.title}\n" for code in codes))
    sys.stdout.write(f"\nalgorithms: {', '.join(algorithm_names())}\n")
    return 0


def _algorithm(name: str, settings: list[str], *, as_json: bool) -> int:
    try:
        algorithm = explain_algorithm({"name": name, **_nested(settings)})
    except (ValidationError, ValueError) as error:
        complain(f"invalid settings for {name}: {error}")
        return NOT_FOUND
    if as_json:
        print_json(algorithm.model_dump(mode="json"))
        return 0
    more = [f"More: {algorithm.source}"] if algorithm.source else []
    _print(f"{algorithm.name}: {algorithm.title}", algorithm.help, *more)
    for formula in algorithm.formulas:
        _print(formula.name, _indented(formula.text), *([formula.note] if formula.note else []))
    _print(algorithm.reads)
    for curve in algorithm.curves:
        _print(
            f"{curve.metric}: {curve.title}",
            f"  expected: {curve.expect}",
            f"  otherwise: {curve.otherwise}",
        )
    return 0


def _nested(settings: Iterable[str]) -> dict[str, object]:
    """Settings such as `kl.coefficient=0.01` as the nested mapping of a loop."""
    nested: dict[str, object] = {}
    for setting in settings:
        path, has_value, value = setting.partition("=")
        if not has_value:
            raise ValueError(f"`{setting}` is not a setting; write FIELD=VALUE")
        *above, last = path.split(".")
        here: dict[str, object] = nested
        for part in above:
            inner = here.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ValueError(f"`{part}` has no fields in `{setting}`")
            here = inner
        here[last] = data_of(value) if value.strip() else None
    return nested


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n\n")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def schema_command() -> None:
    print_json(json_schema())
