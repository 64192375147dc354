"""`python -m coloop_server`: `coloop serve` without the rest of the command line."""

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
    args = parser.parse_args()
    serve(
        args.host,
        args.port,
        open_browser=not args.no_browser,
        data_dir=args.data,
        allow_remote_code=args.allow_remote_code,
    )


if __name__ == "__main__":
    main()
