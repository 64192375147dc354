"""Ray's jobs client with timeouts. Imports Ray, so it is imported inside functions."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import requests
from ray.job_submission import JobSubmissionClient

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
BEAT_SECONDS = 15.0


class JobsClient(JobSubmissionClient):  # type: ignore[misc]
    """Gives up on a silent cluster with `requests.Timeout`, an OSError."""

    def _do_request(self, method: str, endpoint: str, **options: Any) -> requests.Response:
        options.setdefault("timeout", (CONNECT_SECONDS, ANSWER_SECONDS))
        return super()._do_request(method, endpoint, **options)  # type: ignore[no-any-return]

    async def tail_job_logs(self, job_id: str) -> AsyncIterator[str]:
        """The log while it is written; a connection without a heartbeat raises RuntimeError."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        async with (
            aiohttp.ClientSession(
                cookies=self._cookies, headers=self._headers, timeout=timeout
            ) as session,
            session.ws_connect(
                f"{self._address}/api/jobs/{job_id}/logs/tail",
                ssl=True if self._ssl_context is None else self._ssl_context,
                heartbeat=BEAT_SECONDS,
            ) as socket,
        ):
            async for message in socket:
                if message.type == aiohttp.WSMsgType.TEXT:
                    yield message.data
            if socket.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE:
                raise RuntimeError(f"the connection to the log of {job_id} was lost")
