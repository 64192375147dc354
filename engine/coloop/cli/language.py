"""`coloop schema`: the loop language as JSON Schema."""

from coloop.cli.output import print_json


def schema_command() -> int:
    """Prints the schema."""
    from coloop.spec.schema import json_schema

    print_json(json_schema())
    return 0
