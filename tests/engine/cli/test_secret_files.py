"""Secrets from files: what is read, what goes first, and what is told where they cannot be read."""

import os
from pathlib import Path

import pytest

from coloop.cli.serving import take_secrets
from coloop.errors import SettingInvalid


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of secrets, named in the environment, which is as before afterwards."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("COLOOP_TOKEN", None)
    os.environ["COLOOP_SECRETS_DIR"] = str(tmp_path)
    return tmp_path


def test_a_file_is_a_setting(folder: Path) -> None:
    (folder / "coloop_token").write_text("from-the-file\n")
    (folder / "ray_auth_token").write_text("of Ray")

    take_secrets()

    assert os.environ["COLOOP_TOKEN"] == "from-the-file"
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_what_the_environment_says_goes_first(folder: Path) -> None:
    (folder / "coloop_token").write_text("from-the-file")
    os.environ["COLOOP_TOKEN"] = "own"

    take_secrets()

    assert os.environ["COLOOP_TOKEN"] == "own"


def test_without_a_folder_nothing_is_read(folder: Path) -> None:
    (folder / "coloop_token").write_text("from-the-file")
    del os.environ["COLOOP_SECRETS_DIR"]

    take_secrets()

    assert "COLOOP_TOKEN" not in os.environ


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a\0b"])
def test_what_cannot_be_read_is_told_without_its_content(
    folder: Path, content: bytes | None
) -> None:
    if content is None:
        os.environ["COLOOP_SECRETS_DIR"] = str(folder / "missing")
    else:
        (folder / "coloop_token").write_bytes(b"hidden" + content)

    with pytest.raises(SettingInvalid, match="COLOOP_SECRETS_DIR") as caught:
        take_secrets()

    assert "hidden" not in str(caught.value)
