"""What an installer is told of the package."""

from pathlib import Path

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).resolve().parents[2]


def test_the_licence_is_an_expression_and_its_text_a_file() -> None:
    metadata = ProjectMetadata(str(ROOT), PluginManager())

    assert metadata.core.license_expression == "Apache-2.0"
    assert metadata.core.license == ""
    assert list(metadata.core.license_files) == ["LICENSE"]
