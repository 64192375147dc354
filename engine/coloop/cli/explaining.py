"""`coloop explain`: help of a finding's code, or of an algorithm with its formulas and curves."""

import sys
from collections.abc import Iterable

from coloop.cli.output import complain, print_json

NOT_FOUND = 2


def explain_command(what: str | None, *, settings: list[str], as_json: bool) -> int:
    """Prints the help of a code or an algorithm; without either, all that there is help of."""
    from coloop.explain.algorithm import algorithm_names
    from coloop.explain.codes import explain

    if what is None:
        return _list(as_json=as_json)
    if what in algorithm_names():
        return _algorithm(what, settings, as_json=as_json)
    if settings:
        complain(f"`{what}` is no algorithm, so it has no settings")
        return NOT_FOUND
    found = explain(what)
    if found is None:
        return _unknown(what)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return 0
    _print(f"{found.code}: {found.title}", found.means, f"Why it matters: {found.matters}")
    _print("What to do", *(f"- {one}" for one in found.fix))
    if found.example is not None:
        _print("Wrong", _indented(found.example.wrong))
        _print("Right", _indented(found.example.right))
    if found.source is not None:
        _print(f"More: {found.source}")
    return 0


def _list(*, as_json: bool) -> int:
    from coloop.explain.algorithm import algorithm_names
    from coloop.explain.codes import list_codes

    codes = list_codes()
    if as_json:
        print_json({"codes": [one.model_dump() for one in codes], "algorithms": algorithm_names()})
        return 0
    width = max(len(one.code) for one in codes)
    sys.stdout.write("".join(f"{one.code:<{width}}  {one.title}\n" for one in codes))
    sys.stdout.write(f"\nalgorithms: {', '.join(algorithm_names())}\n")
    return 0


def _unknown(what: str) -> int:
    from coloop.explain.algorithm import near_algorithms
    from coloop.explain.codes import near

    found = list(dict.fromkeys([*near(what), *near_algorithms(what)]))[:4]
    hint = f"; did you mean {' or '.join(f'`{one}`' for one in found)}?" if found else ""
    complain(f"there is no help of `{what}`{hint} `coloop explain` lists all")
    return NOT_FOUND


def _algorithm(name: str, settings: list[str], *, as_json: bool) -> int:
    from pydantic import ValidationError

    from coloop.explain.algorithm import explain_algorithm

    try:
        found = explain_algorithm({"name": name, **_nested(settings)})
    except (ValidationError, ValueError) as error:
        complain(f"these settings do not fit {name}: {error}")
        return NOT_FOUND
    if as_json:
        print_json(found.model_dump(mode="json"))
        return 0
    more = [f"More: {found.source}"] if found.source else []
    _print(f"{found.name}: {found.title}", found.help, *more)
    for formula in found.formulas:
        _print(formula.name, _indented(formula.text), *([formula.note] if formula.note else []))
    _print(found.reads)
    for curve in found.curves:
        _print(
            f"{curve.metric}: {curve.title}",
            f"  should: {curve.expect}",
            f"  else: {curve.otherwise}",
        )
    return 0


def _nested(settings: Iterable[str]) -> dict[str, object]:
    """`kl.coefficient=0.01` as the mapping that it is in a loop."""
    from ruamel.yaml import YAML

    found: dict[str, object] = {}
    for setting in settings:
        path, has_value, value = setting.partition("=")
        if not has_value:
            raise ValueError(f"`{setting}` is no setting; write FIELD=VALUE")
        *above, last = path.split(".")
        here: dict[str, object] = found
        for part in above:
            inner = here.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ValueError(f"`{part}` has no fields in `{setting}`")
            here = inner
        here[last] = YAML(typ="safe").load(value)
    return found


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n\n")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
