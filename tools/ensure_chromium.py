"""Find a Chromium for the browser tests; on Debian and as root, install it with apt-get."""

import shutil

from debian import install

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


if __name__ == "__main__":
    if not any(shutil.which(name) for name in NAMES):
        install("chromium", "the browser tests want Chromium")
