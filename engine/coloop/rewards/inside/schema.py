"""Whether a text is JSON that fits a JSON schema, by jsonschema.

References stay within the schema: nothing is fetched.
"""

import json
from typing import Any

import jsonschema.protocols
from referencing import Registry
from referencing.exceptions import Unresolvable

from coloop.json_schemas import CHECKED, dialect_of, schema_problem


def judge(schema: Any, text: str) -> dict[str, Any]:
    """1 where the text fits, else 0; or what is wrong with the schema."""
    try:
        problem = schema_problem(schema)
        if problem is not None:
            return {"problem": problem}
        checks: jsonschema.protocols.Validator = dialect_of(schema)(
            schema, registry=Registry(), format_checker=CHECKED
        )
        return {"score": float(checks.is_valid(json.loads(text)))}
    except RecursionError:
        return {"problem": "the schema refers to itself without end, or the text is too deep"}
    except Exception as error:
        if isinstance(error.__cause__, Unresolvable) or isinstance(error, Unresolvable):
            return {"problem": f"the schema refers to what is not in it: {str(error)[:300]}"}
        raise
