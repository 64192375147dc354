"""A loop is exported for a cluster: a form asks for what the cluster needs, and a file comes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOOP = Path(__file__).resolve().parents[2] / "presets" / "loops" / "grpo-two-pools.yaml"


def test_a_loop_is_exported_as_a_slurm_job(
    server: "Server", open_page: Callable[..., Page]
) -> None:
    page = open_page(server.open_loop(LOOP.read_text(encoding="utf-8")))
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Export for a cluster…").click()
    dialog = page.get_by_role("dialog", name="Export for a cluster")
    expect(dialog.get_by_label("Walltime")).to_have_value("12:00:00")

    dialog.get_by_label("Walltime").fill("soon")
    dialog.get_by_role("button", name="Export", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("is no walltime")
    dialog.get_by_label("Walltime").fill("2:00:00")
    with page.expect_download() as started:
        dialog.get_by_role("button", name="Export", exact=True).click()

    script = Path(started.value.path()).read_text(encoding="utf-8")
    assert started.value.suggested_filename == "grpo-two-pools.sbatch"
    assert "#SBATCH --time=2:00:00" in script
    expect(dialog).to_be_hidden()
