"""Whole presets trained in this process on one thread, and their curves.

Each run takes one to three minutes on an idle core; `make test-slow` runs them.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.slow.curves import Trained, readings_of

from coloop.errors import NothingLearned
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch

Train = Callable[..., Trained]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train a loop preset to its end: `train(name, changes)`; one that `may_run_dry` may stop
    because nothing teaches it any more."""

    def go(
        name: str, changes: Sequence[Mapping[str, Any]] = (), *, may_run_dry: bool = False
    ) -> Trained:
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
        has_run_dry = result.error is not None and result.error.code == NothingLearned.code
        assert result.error is None or (may_run_dry and has_run_dry), result.error
        return Trained(readings=tuple(readings_of(result.folder / "events.jsonl")))

    return go
