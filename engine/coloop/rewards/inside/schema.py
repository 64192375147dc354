"""Whether a text is JSON that fits a JSON schema, by jsonschema.

The dialect is what `$schema` says, else draft 2020-12. References stay within the schema: nothing
is fetched. A keyword that the dialect does not know is refused, never ignored: a schema with
`requird` would let everything pass. So is a `format` that cannot be checked here.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema.protocols
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

NOTES = {
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$defs", "id"),
    *("$vocabulary", "definitions", "title", "description", "default", "examples", "example"),
    *("deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"),
    *("contentSchema", "then", "else", "minContains", "maxContains", "additionalItems"),
}
"""Keywords that restrict nothing, or that another one reads."""
NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""Keywords whose value has schemas by names."""
DATA = {"enum", "const", "default", "examples", "example", "required", "dependentRequired"}


def judge(schema: Any, text: str) -> dict[str, Any]:
    """1 where the text fits, else 0; or what is wrong with the schema."""
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        unknown = next(_unknown(schema, kind), None)
        if unknown is not None:
            return {"problem": f"the schema's {unknown} is not known"}
        checks: jsonschema.protocols.Validator = kind(
            schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER
        )
        return {"score": float(checks.is_valid(json.loads(text)))}
    except SchemaError as error:
        return {"problem": f"the schema's {error.json_path} is wrong: {error.message[:300]}"}
    except RecursionError:
        return {"problem": "the schema refers to itself without end, or the text is too deep"}
    except Exception as error:
        if isinstance(error.__cause__, Unresolvable) or isinstance(error, Unresolvable):
            return {"problem": f"the schema refers to what is not in it: {str(error)[:300]}"}
        raise


def _unknown(schema: Any, kind: Any, at: str = "$") -> Iterator[str]:
    """Places of keywords that neither restrict nor note anything."""
    if isinstance(schema, list):
        for place, one in enumerate(schema):
            yield from _unknown(one, kind, f"{at}[{place}]")
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        if name not in kind.VALIDATORS and name not in NOTES:
            yield f"{at}.{name}"
        if name == "format" and value not in kind.FORMAT_CHECKER.checkers:
            known = ", ".join(sorted(kind.FORMAT_CHECKER.checkers))
            yield f"{at}.format {value!r} (there are {known})"
        if name in NAMED and isinstance(value, Mapping):
            for key, one in value.items():
                yield from _unknown(one, kind, f"{at}.{name}.{key}")
        elif name not in DATA:
            yield from _unknown(value, kind, f"{at}.{name}")
