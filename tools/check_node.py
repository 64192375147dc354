"""Say clearly which Node.js the page wants, before npm fails in its own words."""

import re
import shutil
import subprocess
import sys

LEAST = (20, 19)


def main() -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        sys.exit("coloop: the page is built with Node.js 20.19 or newer and npm; none was found")
    text = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    found = tuple(int(part) for part in re.findall(r"\d+", text)[:2])
    if found < LEAST:
        sys.exit(f"coloop: the page is built with Node.js 20.19 or newer, found {text}")


if __name__ == "__main__":
    main()
