"""`python forked_client.py <socket> <arguments of coloop run>`, see `forked.drivers`: what is
started instead of a driver that loads for seconds."""

import json
import os
import signal
import socket
import sys
from types import FrameType

MOST = 1 << 20
"""Bytes of an order: arguments and environment."""


def main() -> None:
    address, *arguments = sys.argv[1:]
    order = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as drivers:
        drivers.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
        drivers.connect(address)

        def hand_on(number: int, _: FrameType | None) -> None:
            drivers.send(str(number).encode())

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, hand_on)
        socket.send_fds(drivers, [json.dumps(order).encode()], [1])
        code = int(drivers.recv(16))
    if code >= 0:
        sys.exit(code)
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main()
