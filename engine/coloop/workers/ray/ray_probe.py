"""Checks whether Ray runs at an address: `python ray_probe.py <address>`.

Exits with 0, or prints why not in one line and exits with 1. The caller must set a timeout, as Ray
keeps trying for minutes.
"""

import os
import socket
import sys
from importlib import import_module
from typing import Any

HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Connection preface and empty SETTINGS frame (RFC 9113, 3.4), which a gRPC server answers."""
FRAME_HEADER = 9  # bytes, of which the fourth is the type (RFC 9113, 4.1)
SETTINGS = 4
CLIENT = "ray://"


def main(address: str) -> int:
    """Returns the exit code."""
    host_and_port = address.removeprefix(CLIENT)
    try:
        if os.environ.get("RAY_USE_TLS", "0").lower() not in ("1", "true"):  # `greet` has no TLS
            greet(host_and_port)
        if address.startswith(CLIENT):
            _ask_client_server(host_and_port)
        else:
            _ask_gcs(host_and_port)
    except Exception as error:  # of any kind: the calling process puts it into its message
        sys.stdout.write(" ".join(str(error).split()) or type(error).__name__)
        return 1
    return 0


def greet(address: str) -> None:
    """Raises OSError if no gRPC server answers at `host:port`, ValueError if that is no address."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port))) as connection:
        connection.sendall(HTTP2_GREETING)
        with connection.makefile("rb") as response:
            header = response.read(FRAME_HEADER)
    if not header:
        raise OSError("the connection was closed")
    if len(header) < FRAME_HEADER or header[3] != SETTINGS:
        raise OSError("it does not speak gRPC")


def _ask_gcs(address: str) -> None:
    from ray.exceptions import AuthenticationError, RpcError

    raylet: Any = import_module("ray._raylet")
    try:
        raylet.GcsClient(address=address)
    except AuthenticationError:
        return  # Ray runs there; connecting to it later reports what authentication it needs
    except RpcError as error:
        raise _no_ray(error) from error


def _ask_client_server(address: str) -> None:
    from ray._private.grpc_utils import init_grpc_channel

    grpc: Any = import_module("grpc")
    messages: Any = import_module("ray.core.generated.ray_client_pb2")
    services: Any = import_module("ray.core.generated.ray_client_pb2_grpc")
    ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
    try:
        services.RayletDriverStub(init_grpc_channel(address)).ClusterInfo(ping)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            raise _no_ray(error.details()) from error


def _no_ray(reason: object) -> OSError:
    return OSError(f"it speaks gRPC, but not as Ray does ({reason})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
