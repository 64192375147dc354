"""Every loop of the language's examples is sound."""

from pathlib import Path

import pytest

from coloop.spec.io import parse
from coloop.validate import validate

EXAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "language" / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("**/*.yaml"))


@pytest.mark.sample(37)
@pytest.mark.skipif(not NAMES, reason="the language's examples are not beside this checkout")
@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_no_error(name: str) -> None:
    text = next(EXAMPLES.glob(f"**/{name}.yaml")).read_text("utf-8")

    parsed = parse(text)

    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    report = validate(parsed.spec)
    assert [one.describe() for one in report.diagnostics if one.is_error] == []
