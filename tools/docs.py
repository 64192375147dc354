"""Build the documentation site: `python tools/docs.py [--serve]`.

The Markdown files of the repository are copied to `build/docs` under the paths that they have, so
that links between them work on the site as they do in a checkout. A link to a file that is not on
the site becomes plain text.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "docs"
SKIPPED = {"node_modules", "build", "dist", "_static", "site-packages", "test-results"}
PICTURES = (".webp", ".png", ".svg")
PICTURE_FOLDERS = ("docs", "tests/experiments/figures")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")


def sources() -> list[Path]:
    """Markdown files of the repository and their pictures, relative to the root."""
    pages = (
        path.relative_to(ROOT)
        for path in ROOT.rglob("*.md")
        if not any(part in SKIPPED or part.startswith(".") for part in path.relative_to(ROOT).parts)
    )
    pictures = (
        path.relative_to(ROOT)
        for folder in PICTURE_FOLDERS
        for path in (ROOT / folder).iterdir()
        if path.suffix in PICTURES
    )
    return sorted([*pages, *pictures])


def page(source: Path) -> str:
    """A page's text, in which links that lead out of the site are plain names."""

    def kept(link: re.Match[str]) -> str:
        text, path = link[1], (ROOT / source.parent / link[2]).resolve()
        on_site = path.is_file() and path.suffix in (".md", *PICTURES)
        return link[0] if on_site else text

    return LINK.sub(kept, (ROOT / source).read_text(encoding="utf-8"))


def copy() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    for source in sources():
        target = TARGET / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(page(source), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, target)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--serve", action="store_true", help="serve on 127.0.0.1:8322")
    given = arguments.parse_args()
    copy()
    command = ["serve", "--dev-addr", "127.0.0.1:8322"] if given.serve else ["build"]
    done = subprocess.run([sys.executable, "-m", "mkdocs", *command], cwd=ROOT)
    if done.returncode == 0 and not given.serve:
        sys.stdout.write("build/site/index.html\n")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
