"""`coloop serve`: start the server package."""

from importlib.util import find_spec
from pathlib import Path

from coloop.cli.output import complain
from coloop.workers import collecting

MISSING = 1


def serve_command(
    *, host: str, port: int, open_browser: bool, data: Path | None, allow_remote_code: bool
) -> int:
    """Start the composer and return when it ends."""
    for module in ("fastapi", "uvicorn", "sqlalchemy", "coloop_server"):
        if find_spec(module) is None:
            complain(f"the server needs `{module}`: pip install 'coloop[server]'")
            return MISSING
    from coloop.cli.secret_files import take_secrets

    with collecting.not_while_loading():
        from coloop_server.cli import serve

    take_secrets()
    serve(
        host=host,
        port=port,
        open_browser=open_browser,
        data_dir=data,
        allow_remote_code=allow_remote_code or None,
    )
    return 0
