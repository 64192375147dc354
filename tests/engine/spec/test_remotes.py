"""Which services a run may call: hosts by name, and every way of writing a private address."""

import pytest

from coloop.spec.remotes import AllowedRemotes, is_public, literal_address, refusal

pytestmark = pytest.mark.attack

NOBODY = AllowedRemotes()
SOME = AllowedRemotes(hosts=("scores.example.org", "*.models.org", "10.0.0.5:8000", "[::1]:9"))


@pytest.mark.parametrize(
    "url",
    [
        "https://scores.example.org/v1/score",
        "http://scores.example.org:8080/",
        "https://SCORES.example.org./",
        "https://a.models.org/",
        "https://a.b.models.org/",
        "http://10.0.0.5:8000/",
        "http://[::1]:9/",
    ],
)
def test_a_host_that_is_listed_may_be_called(url: str) -> None:
    assert refusal(url, SOME) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://scores.example.org.evil.org/",
        "https://evilscores.example.org/",
        "https://models.org/",
        "https://evilmodels.org/",
        "http://10.0.0.5:8001/",
        "http://10.0.0.5/",
        "http://[::1]:10/",
        "https://example.org/scores.example.org",
        "https://example.org#scores.example.org",
        "https://example.org?scores.example.org",
        "https://example.org\\@scores.example.org",
    ],
)
def test_a_host_that_only_looks_like_one_that_is_listed_may_not(url: str) -> None:
    assert refusal(url, SOME) is not None


def test_nothing_may_be_called_where_nothing_is_listed() -> None:
    refused = refusal("https://scores.example.org/", NOBODY)

    assert refused is not None
    assert "`scores.example.org` is not among the hosts" in refused.found
    assert "COLOOP_ALLOWED_REMOTES" in refused.hint


PRIVATE = [
    *("127.0.0.1", "127.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0x7f.1", "017700000001"),
    *("0177.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "100.64.0.1"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1]", "[fc00::1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]", "224.0.0.1", "[ff02::1]"),
    *("127.0.0.1.", "0x7F000001", "2852039166", "[::127.0.0.1]", "255.255.255.255"),
]


@pytest.mark.parametrize("host", PRIVATE)
def test_an_address_inside_a_private_network_is_named_as_such(host: str) -> None:
    refused = refusal(f"http://{host}/", SOME)

    assert refused is not None
    assert "inside a private network or this machine" in refused.found


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "db", "printer.local", "x.internal"])
def test_a_name_of_the_own_network_is_named_as_such(host: str) -> None:
    refused = refusal(f"http://{host}:8000/", SOME)

    assert refused is not None
    assert "inside a private network or this machine" in refused.found


@pytest.mark.parametrize("host", ["8.8.8.8", "[2001:4860:4860::8888]", "[::ffff:8.8.8.8]"])
def test_a_public_address_is_public(host: str) -> None:
    address = literal_address(host)

    assert address is not None
    assert is_public(address)


@pytest.mark.parametrize("host", ["example.org", "1.2.3.4.5", "256.1.1.1", "a.1", "1.2.3.08"])
def test_a_name_is_no_address(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@scores.example.org/",
        "https://secret@scores.example.org/",
        "https://scores.example.org/?api_key=abc",
        "https://scores.example.org/?a=1&token=abc",
        "https://scores.example.org/?a=1;access-token=abc",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    refused = refusal(url, SOME)

    assert refused is not None
    assert "every copy of the loop would show" in refused.found
    assert "abc" not in refused.found + refused.hint
    assert "user:secret" not in refused.found + refused.hint


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://scores.example.org/", "file:///etc/passwd", "https://", "https:///a", "//a", "a"),
        *(
            "https://scores.example.org:99999/",
            "https://[::1/",
            "https://a b/",
            "https://a\nb/",
            "",
        ),
    ],
)
def test_what_is_no_address_of_a_service_is_refused(url: str) -> None:
    assert refusal(url, SOME) is not None


def test_the_environment_lists_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", " a.org ,*.B.org,, [::1]:80 ")

    assert AllowedRemotes.from_environment().hosts == ("a.org", "*.b.org", "[::1]:80")
