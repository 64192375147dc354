"""Whole presets trained in this process on one thread, and their curves.

Each run takes one to three minutes on an idle core; `make test-slow` runs them.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.slow.curves import Trained, readings_of

from coloop import presets
from coloop.diagnostics import Change
from coloop.runtime.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.io import parse, patch

Train = Callable[..., Trained]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train a loop preset to its end: `train(name, changes)`."""

    def go(name: str, changes: Sequence[Mapping[str, Any]] = ()) -> Trained:
        edits = [Change(**change) for change in changes]
        text = patch(presets.load_loop_text(name), edits)
        parsed = parse(text)
        assert parsed.spec is not None, parsed.diagnostics
        result = run(
            RunRequest(
                spec=parsed.spec,
                text=text,
                root=presets.presets_root() / "loops",
                runs_dir=tmp_path,
                run_id=f"run-{len(list(tmp_path.iterdir()))}",
                cluster="local",
                threads=1,
            )
        )
        assert result.error is None
        return Trained(readings=tuple(readings_of(result.folder / "events.jsonl")))

    return go
