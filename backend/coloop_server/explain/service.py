"""Help, with errors in the words of HTTP."""

import json

from pydantic import ValidationError

from coloop.explain import algorithm, codes
from coloop_server.errors import Invalid, NotFound

MAX_SETTINGS = 8_000
"""Characters of an algorithm's section as JSON."""


def explain_code(code: str) -> codes.Explanation:
    found = codes.explain(code)
    if found is None:
        near = codes.near(code)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound("explain.not_found", f"there is no help for {code!r}{hint}")
    return found


def explain_algorithm(text: str, rollout: str | None) -> algorithm.AlgorithmHelp:
    try:
        settings, writes = json.loads(text), json.loads(rollout or "{}")
        limit = writes.get("max_new_tokens") if isinstance(writes, dict) else None
        known = limit if isinstance(limit, int) and limit > 0 else None
        return algorithm.explain_algorithm(settings, max_new_tokens=known)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or "settings"
        raise Invalid(
            "explain.settings", f"these are not settings of an algorithm: {place}: {first['msg']}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise Invalid("explain.settings", f"`settings` is not JSON: {error}") from error
