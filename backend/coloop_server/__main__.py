"""`python -m coloop_server`: what `coloop serve` does, without the rest of the command line."""

import argparse
from pathlib import Path

from coloop.workers import collecting

with collecting.not_while_loading():
    from coloop_server.cli import serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="coloop serve")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--allow-remote-code", action="store_true", default=None)
    given = parser.parse_args()
    serve(
        given.host,
        given.port,
        open_browser=not given.no_browser,
        data_dir=given.data,
        allow_remote_code=given.allow_remote_code,
    )


if __name__ == "__main__":
    main()
