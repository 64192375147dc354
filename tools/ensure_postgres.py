"""Find PostgreSQL's programs for `make test-postgres`; on Debian and as root, install them."""

import shutil
from pathlib import Path

from debian import install

DEBIAN = Path("/usr/lib/postgresql")


if __name__ == "__main__":
    if shutil.which("initdb") is None and not any(DEBIAN.glob("*/bin/initdb")):
        install("postgresql", "these tests want PostgreSQL")
