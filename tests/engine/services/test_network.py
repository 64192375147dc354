"""Where a call may go: what a name leads to is looked at, and the connection goes there."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from tests.engine.web_service import WebService, serving

from coloop.data.services.endpoint import Endpoint
from coloop.data.services.service import Service
from coloop.errors import ServiceFailed
from coloop.spec.remotes import (
    AllowedRemotes,
    literal_address,
    refusal,
    refusal_of_address,
    refusal_of_secret,
)

pytestmark = pytest.mark.attack

Served = Callable[..., WebService]
Called = Callable[..., Service]


def as_it_is(value: Any) -> Any:
    return value


def leading(monkeypatch: pytest.MonkeyPatch, *addresses: list[str]) -> list[str]:
    """A resolver that leads each name to the next addresses; the names that it was asked for."""
    answers, asked = iter(addresses), []

    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        asked.append(host)
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (one, port, 0, 0) if ":" in one else (one, port),
            )
            for one in next(answers)
        ]

    monkeypatch.setattr("coloop.data.services.endpoint.socket.getaddrinfo", getaddrinfo)
    return asked


def refused(service: Service) -> str:
    with pytest.raises(ServiceFailed) as failed:
        service.ask("q", as_it_is).result(20)
    return str(failed.value)


INSIDE = [
    *("127.0.0.1", "10.0.0.7", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0"),
    *("224.0.0.1", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "240.0.0.1", "::"),
    *("64:ff9b:1::a00:7", "::ffff:0:10.0.0.7", "fec0::1", "3fff::1", "5f00::1", "192.0.0.192"),
    "168.63.129.16",
]


@pytest.mark.parametrize("address", INSIDE)
def test_a_listed_name_that_leads_inside_is_not_called(
    address: str, served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = served(lambda asked: [1.0])
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", "scores.example.org,*.example.org")
    leading(monkeypatch, [address])

    message = refused(called(f"http://scores.example.org:{web.port}/score"))

    assert "resolves to" in message
    assert "in a private network or this machine" in message
    assert "COLOOP_ALLOWED_REMOTES" in message
    assert web.asked == []


def test_one_private_address_among_public_ones_is_enough(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", "scores.example.org")
    leading(monkeypatch, ["8.8.8.8", "127.0.0.1"])

    assert "resolves to 127.0.0.1" in refused(called("http://scores.example.org/"))


def test_a_name_that_turns_private_between_check_and_call_is_still_refused(
    served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection goes to the addresses that it looked at itself; nobody resolves again."""
    web = served(lambda asked: b"")
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", f"scores.example.org,{web.host}")
    asked = leading(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    service = called(f"http://scores.example.org:{web.port}/score")

    assert "speak valid HTTP" in refused(service)
    assert "resolves to 127.0.0.2" in refused(service)

    assert asked == ["scores.example.org"] * 2
    assert web.asked[0].headers["host"] == f"scores.example.org:{web.port}"


@pytest.mark.parametrize("entry", ["scores.example.org:{port}", "scores.example.org,127.0.0.1"])
def test_a_name_may_lead_inside_where_that_is_listed(
    entry: str, served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = served(lambda asked: [1.0])
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", entry.format(port=web.port))
    leading(monkeypatch, ["127.0.0.1"])

    url = f"http://scores.example.org:{web.port}/score"

    assert called(url).ask("q", as_it_is).result(20) == [1.0]


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "168.63.129.16"),
        *("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
    ],
)
def test_where_clouds_answer_for_their_machines_no_name_leads(address: str) -> None:
    allowed = AllowedRemotes(hosts=("metadata.internal:80",))
    literal = literal_address(address)
    assert literal is not None

    assert refusal_of_address("metadata.internal", 80, literal, allowed) is not None


def test_such_an_address_is_called_where_it_is_listed_itself() -> None:
    allowed = AllowedRemotes(hosts=("169.254.169.254:80",))
    literal = literal_address("169.254.169.254")
    assert literal is not None

    assert refusal_of_address("169.254.169.254", 80, literal, allowed) is None
    assert refusal_of_address("169.254.169.254", 81, literal, allowed) is not None


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{other}/", "http://127.1:{port}/", "http://2130706433:{port}/"),
        *("http://0177.0.0.1:{port}/", "http://[::ffff:127.0.0.1]:{port}/", "ftp://127.0.0.1/"),
        *("http://user:pass-9f3a@127.0.0.1:{port}/", "http://127.0.0.1:{port}@example.org/"),
        *("file:///etc/passwd", "http://127.0.0.1:{port}/?key=abc", "http://localhost:{port}/"),
        *("http://127.0.0.1:{port}\\@example.org/", "http://127.0.0.1 :{port}/", "gopher://a/"),
    ],
)
def test_another_way_to_write_an_address_is_not_the_one_that_is_listed(
    url: str, served: Served, called: Called
) -> None:
    web = served(lambda asked: [1.0])

    with pytest.raises(ServiceFailed, match="the service may not be called") as failed:
        called(url.format(port=web.port, other=web.port + 1))

    assert "pass-9f3a" not in str(failed.value)
    assert "abc" not in str(failed.value)
    assert web.asked == []


@pytest.mark.parametrize("host", [".example.org", "a..example.org", f"{'a' * 64}.example.org"])
def test_a_name_that_is_none_is_refused_although_its_ending_is_listed(host: str) -> None:
    refused = refusal(f"http://{host}/", AllowedRemotes(hosts=("*.example.org",)))

    assert refused is not None
    assert "it is not an address" in refused.found


def test_proxies_of_the_environment_are_not_used(
    served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda asked: [0.0]) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.host}")
        web = served(lambda asked: [1.0])

        assert called(web.url).ask("q", as_it_is).result(20) == [1.0]

        assert proxy.asked == []


def test_a_resolver_that_hangs_ends_at_the_timeout(
    served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = served(lambda asked: [1.0])
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", "scores.example.org")

    def hang(host: str, port: int, **options: Any) -> list[Any]:
        web.ended.wait(60)
        return []

    monkeypatch.setattr("coloop.data.services.endpoint.socket.getaddrinfo", hang)

    message = refused(called("http://scores.example.org/", timeout_seconds=0.2))

    assert "did not complete its answer within 0.2 seconds" in message


def test_a_name_that_is_not_resolved_is_told(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", "scores.example.org")

    def fail(host: str, port: int, **options: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("coloop.data.services.endpoint.socket.getaddrinfo", fail)

    assert "the name `scores.example.org` cannot be resolved" in refused(
        called("http://scores.example.org/")
    )


def test_tls_asks_for_the_name_and_not_for_the_address(
    called: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The certificate is of the name; the connection goes to an address that was looked at."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"),
            *(
                "-subj",
                "/CN=scores.example.org",
                "-addext",
                "subjectAltName=DNS:scores.example.org",
            ),
        ],
        check=True,
        capture_output=True,
    )
    with serving(lambda asked: [1.0], tls=(certificate, key)) as web:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", f"*.example.org,{web.host}")
        leading(monkeypatch, ["127.0.0.1"], ["127.0.0.1"])

        good = called(f"https://scores.example.org:{web.port}/")
        other = called(f"https://other.example.org:{web.port}/")

        assert good.ask("q", as_it_is).result(20) == [1.0]
        assert "certificate" in refused(other)


SECRET = "tell-nobody-9f3a/+=="


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLOOP_SECRET_JUDGE", SECRET)
    return SECRET


def test_a_secret_goes_along_by_its_name(served: Served, called: Called, secret: str) -> None:
    web = served(lambda asked: [1.0])

    called(web.url, secret="judge").ask("q", as_it_is).result(20)

    assert web.asked[0].headers["authorization"] == f"Bearer {secret}"


def test_a_secret_may_be_a_file(
    served: Served, called: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "coloop_secret_judge").write_text("of-a-file\n", encoding="utf-8")
    monkeypatch.setenv("COLOOP_SECRETS_DIR", str(tmp_path))
    web = served(lambda asked: [1.0])

    called(web.url, secret="judge").ask("q", as_it_is).result(20)

    assert web.asked[0].headers["authorization"] == "Bearer of-a-file"


def test_a_secret_with_a_scheme_goes_as_it_is(
    served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_SECRET_JUDGE", "Basic YTpi")
    web = served(lambda asked: [1.0])

    called(web.url, secret="judge").ask("q", as_it_is).result(20)

    assert web.asked[0].headers["authorization"] == "Basic YTpi"


ECHOES = [
    lambda said: (500, said),
    lambda said: (401, said),
    lambda said: (200, said),
    lambda said: (200, f'["{said}"]'),
    lambda said: (200, f'{{"{said}": 1}}'),
    lambda said: (200, "x" * 110 + said),
]


@pytest.mark.parametrize("echo", ECHOES)
def test_a_service_that_sends_the_secret_back_does_not_bring_it_into_an_error(
    echo: Any, served: Served, called: Called, secret: str
) -> None:
    web = served(lambda asked: echo(asked.headers["authorization"]))
    service = called(web.url, secret="judge")

    def read(value: Any) -> Any:
        from coloop.data.rewards.remote import read_scores

        return read_scores(value, count=1)

    with pytest.raises(ServiceFailed) as failed:
        service.ask("q", read).result(20)

    assert secret[:6] not in str(failed.value)


@pytest.mark.parametrize(
    "head", ["HTTP/1.1 302 No\r\nLocation: http://{0}/\r\n\r\n", "{0}\r\n\r\n"]
)
def test_nor_does_one_that_puts_it_into_a_header(
    head: str, served: Served, called: Called, secret: str
) -> None:
    web = served(lambda asked: head.format(asked.headers["authorization"]).encode())

    assert secret[:6] not in refused(called(web.url, secret="judge"))


def test_a_log_of_everything_holds_no_secret(
    served: Served, called: Called, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    web = served(lambda asked: (200, "[1]"))
    with caplog.at_level("DEBUG"):
        service = called(web.url, secret="judge")
        service.ask("q", as_it_is).result(20)

    assert secret not in caplog.text
    assert secret not in repr(service.endpoint)


def test_a_secret_that_is_not_there_is_told_by_its_variable(served: Served, called: Called) -> None:
    web = served(lambda asked: [1.0])

    with pytest.raises(ServiceFailed, match="COLOOP_SECRET_JUDGE is not set in this environment"):
        called(web.url, secret="judge")


@pytest.mark.parametrize("value", ["a\nX-Other: b", "a\x7fb", "schön"])
def test_a_secret_that_is_no_header_is_refused_and_not_repeated(
    value: str, served: Served, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_SECRET_JUDGE", value)
    web = served(lambda asked: [1.0])

    with pytest.raises(ServiceFailed, match="not plain ASCII text") as failed:
        called(web.url, secret="judge")

    assert value not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "is_fine"),
    [
        *(("https://scores.example.org/", True), ("http://127.0.0.1:80/", True)),
        *(("http://localhost/", True), ("http://[::1]/", True), ("http://10.0.0.1/", False)),
        *(("http://scores.example.org/", False), ("http://localhost.example.org/", False)),
    ],
)
def test_a_secret_does_not_go_where_others_could_read_it(url: str, is_fine: bool) -> None:
    assert (refusal_of_secret(url) is None) is is_fine


def test_a_loop_names_no_other_variable_of_the_environment() -> None:
    """Its name is one of the language, after a beginning that only such secrets have."""
    from coloop.spec.remotes import secret_variable

    assert secret_variable("database_url") == "COLOOP_SECRET_DATABASE_URL"


def test_the_library_follows_nothing_by_itself() -> None:
    """What the guard relies on of the library that it is built upon."""
    assert not hasattr(httpcore2.AsyncConnectionPool, "follow_redirects")
    assert Endpoint(node="a", field="b", url="https://ü.example.org/a b?c=d e#f").target == (
        "https://xn--tda.example.org/a%20b?c=d%20e"
    )
