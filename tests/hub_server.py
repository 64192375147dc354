"""A hub of our own on loopback, for the real `huggingface_hub`: repositories in memory, with the
routes that the library asks for files, their parts, new repositories, uploads and commits.

    with hub_server() as hub:          # HF_ENDPOINT=hub.url
        hub.add("user/name", {"config.json": b"{}"}, card={"license": "mit"})
        hub.fault("cut", "model.safetensors", after=1000)
"""

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

LARGE = 1000
"""Bytes from which a file is kept by LFS."""
TOKEN = "hf_test"
ROUTES = {
    "info": r"/api/(?P<kind>models|datasets)/(?P<repo>[\w.-]+/[\w.-]+)(/revision/(?P<rev>[^/]+))?",
    "tree": r"/api/(?P<kind>models|datasets)/(?P<repo>[\w.-]+/[\w.-]+)/tree/(?P<rev>[^/]+)",
    "preupload": r"/api/(?P<kind>models)/(?P<repo>[\w.-]+/[\w.-]+)/preupload/(?P<rev>[^/]+)",
    "commit": r"/api/(?P<kind>models)/(?P<repo>[\w.-]+/[\w.-]+)/commit/(?P<rev>[^/]+)",
    "create": r"/api/repos/create",
    "whoami": r"/api/whoami-v2",
    "validate": r"/api/validate-yaml",
    "batch": r"/(?P<repo>[\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch",
    "upload": r"/lfs-upload/(?P<sha>[0-9a-f]{64})",
    "blob": r"/lfs/(?P<sha>[0-9a-f]{64})/(?P<name>.*)",
    "resolve": (
        r"/(?P<kind>datasets/)?(?P<repo>[\w.-]+/[\w.-]+)/resolve/(?P<rev>[^/]+)/(?P<name>.*)"
    ),
}


@dataclass
class Repo:
    kind: str
    files: dict[str, bytes]
    card: dict[str, Any] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    commits: int = 1
    messages: list[str] = field(default_factory=list)

    @property
    def sha(self) -> str:
        names = json.dumps(
            {name: hashlib.sha256(data).hexdigest() for name, data in sorted(self.files.items())}
        )
        return hashlib.sha1(f"{self.commits} {names}".encode()).hexdigest()


@dataclass
class Fault:
    kind: str
    path: str
    after: int = 0
    times: int = 1_000_000


@dataclass
class Hub:
    url: str = ""
    files_url: str = ""
    """Of large files, by another name of the host, which gets no token."""
    repos: dict[str, Repo] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    large: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and `Range` of each request."""
    sent: int = 0
    """Bytes of files in all answers."""

    def add(
        self, repo: str, files: Mapping[str, bytes], *, kind: str = "models", **facts: Any
    ) -> Repo:
        self.repos[repo] = Repo(kind=kind, files=dict(files), **facts)
        for data in files.values():
            self.large[hashlib.sha256(data).hexdigest()] = data
        return self.repos[repo]

    def fault(self, kind: str, path: str, *, after: int = 0, times: int = 1_000_000) -> None:
        """What goes wrong for paths with this part: `cut`, `trickle`, `slow`, `gated`, `garbage`,
        or a status."""
        self.faults.append(Fault(kind, path, after, times))


def git_id(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET

    def _answer(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        self.hub.asked.append((self.command, path, self.headers.get("Range")))
        self.query = parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.fault_now = next((f for f in self.hub.faults if f.path in path and f.times > 0), None)
        if self.fault_now is not None:
            self.fault_now.times -= self.fault_now.kind not in ("cut", "trickle")
            if self._goes_wrong(self.fault_now):
                return
        for name, pattern in ROUTES.items():
            if (match := re.fullmatch(pattern, path)) is not None:
                getattr(self, f"_{name}")(match.groupdict(), body)
                return
        self._error(404, "EntryNotFound")

    def _goes_wrong(self, fault: Fault) -> bool:
        match fault.kind:
            case "slow":
                time.sleep(fault.after)
                return False
            case "cut" | "trickle":
                return False  # where the file is sent
            case "gated":
                self._error(403, "GatedRepo")
            case "garbage":
                self._send(b"<html>sign in to this network</html>", {"Content-Type": "text/html"})
            case status:
                self._error(int(status), None)
        return True

    def _repo(self, where: Mapping[str, str | None]) -> Repo | None:
        repo = self.hub.repos.get(str(where["repo"]))
        kind = (where.get("kind") or "models").strip("/")
        if repo is None or (kind != repo.kind):
            self._error(404 if self._token() else 401, "RepoNotFound")
            return None
        if repo.private and self._token() != TOKEN:
            self._error(401, "RepoNotFound")
            return None
        rev = where.get("rev")
        if rev is not None and rev not in ("main", repo.sha):
            self._error(404, "RevisionNotFound")
            return None
        return repo

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def _may_write(self) -> bool:
        if self._token() != TOKEN:
            self._error(401 if self._token() is None else 403, None)
            return False
        return True

    def _info(self, where: Mapping[str, str | None], _: bytes) -> None:
        if (repo := self._repo(where)) is None:
            return
        with_blobs = "blobs" in self.query
        siblings = []
        for name, data in repo.files.items():
            sibling: dict[str, Any] = {"rfilename": name}
            if with_blobs:
                sibling |= {"size": len(data), "blobId": git_id(data)}
                if len(data) >= LARGE:
                    sha = hashlib.sha256(data).hexdigest()
                    sibling["lfs"] = {"sha256": sha, "size": len(data), "pointerSize": 130}
            siblings.append(sibling)
        self._json(
            {
                "id": where["repo"],
                "sha": repo.sha,
                "private": repo.private,
                "gated": "manual" if repo.gated else False,
                "siblings": siblings,
                "cardData": repo.card or None,
                "tags": [],
            }
        )

    def _tree(self, where: Mapping[str, str | None], _: bytes) -> None:
        if (repo := self._repo(where)) is None:
            return
        entries = []
        for name, data in repo.files.items():
            entry: dict[str, Any] = {
                "type": "file",
                "path": name,
                "size": len(data),
                "oid": git_id(data),
            }
            if len(data) >= LARGE:
                sha = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"oid": sha, "size": len(data), "pointerSize": 130}
            entries.append(entry)
        self._json(entries)

    def _resolve(self, where: Mapping[str, str | None], _: bytes) -> None:
        if (repo := self._repo(where)) is None:
            return
        if repo.gated and self._token() != TOKEN:
            self._error(403, "GatedRepo")
            return
        name = str(where["name"])
        if name not in repo.files:
            self._error(404, "EntryNotFound")
            return
        data = repo.files[name]
        common = {"X-Repo-Commit": repo.sha}
        if len(data) < LARGE:
            self._file(data, {**common, "ETag": f'"{git_id(data)}"'}, name)
            return
        sha = hashlib.sha256(data).hexdigest()
        self._send(
            b"",
            {
                **common,
                "X-Linked-Etag": f'"{sha}"',
                "X-Linked-Size": str(len(data)),
                "Location": f"{self.hub.files_url}/lfs/{sha}/{name}",
            },
            status=302,
        )

    def _blob(self, where: Mapping[str, str | None], _: bytes) -> None:
        assert self._token() is None
        sha = str(where["sha"])
        self._file(self.hub.large[sha], {"ETag": f'"{sha}"'}, str(where["name"]))

    def _file(self, data: bytes, headers: Mapping[str, str], name: str) -> None:
        status, extra, size = 200, {"Accept-Ranges": "bytes"}, len(data)
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            start, end = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
            if start >= size:
                self._error(416, None)
                return
            status, data = 206, data[start : end + 1]
            extra["Content-Range"] = f"bytes {start}-{end}/{size}"
        fault = self.fault_now
        cut = fault if fault and fault.kind == "cut" else None
        self.send_response(status)
        for key, value in {**headers, **extra, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is not None and fault.kind == "trickle":
            fault.times -= 1
            self._trickle(data)
            return
        sent = data if cut is None else data[: cut.after]
        with suppress(ConnectionError):
            self.wfile.write(sent)
        self.hub.sent += len(sent)
        if cut is not None:
            cut.times -= 1
            self.close_connection = True

    def _trickle(self, data: bytes) -> None:
        """Send a file slowly, until it is whole or nobody reads it."""
        with suppress(ConnectionError):
            for start in range(0, len(data), 10_000):
                self.wfile.write(data[start : start + 10_000])
                time.sleep(0.2)
        self.close_connection = True

    def _create(self, _: Mapping[str, str | None], body: bytes) -> None:
        if not self._may_write():
            return
        wanted = json.loads(body)
        repo = f"{wanted['organization']}/{wanted['name']}"
        if repo in self.hub.repos:
            self._json(
                {"error": "You already created this model repo", "url": f"{self.hub.url}/{repo}"},
                409,
            )
            return
        private = wanted.get("private") or wanted.get("visibility") == "private"
        self.hub.add(repo, {".gitattributes": b""}, private=bool(private))
        self._json({"url": f"{self.hub.url}/{repo}", "id": repo})

    def _whoami(self, _: Mapping[str, str | None], __: bytes) -> None:
        if self._may_write():
            self._json({"type": "user", "name": "user", "orgs": [], "auth": {}})

    def _validate(self, _: Mapping[str, str | None], body: bytes) -> None:
        content = json.loads(body)["content"]
        has_metadata = content.startswith("---\n")
        self._json({"errors": [] if has_metadata else [{"message": "no metadata"}], "warnings": []})

    def _preupload(self, where: Mapping[str, str | None], body: bytes) -> None:
        if not self._may_write() or (repo := self._repo(where)) is None:
            return
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["size"] >= LARGE else "regular",
                "shouldIgnore": False,
                "oid": git_id(repo.files[file["path"]]) if file["path"] in repo.files else None,
            }
            for file in json.loads(body)["files"]
        ]
        self._json({"files": files})

    def _batch(self, where: Mapping[str, str | None], body: bytes) -> None:
        if not self._may_write():
            return
        objects = []
        for wanted in json.loads(body)["objects"]:
            entry = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.hub.large:
                href = f"{self.hub.url}/lfs-upload/{wanted['oid']}"
                entry["actions"] = {"upload": {"href": href}}
            objects.append(entry)
        self._json({"transfer": "basic", "objects": objects})

    def _upload(self, where: Mapping[str, str | None], body: bytes) -> None:
        assert hashlib.sha256(body).hexdigest() == where["sha"]
        self.hub.large[str(where["sha"])] = body
        self._send(b"", {})

    def _commit(self, where: Mapping[str, str | None], body: bytes) -> None:
        if not self._may_write() or (repo := self._repo(where)) is None:
            return
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            match entry["key"]:
                case "header":
                    repo.messages.append(value["summary"])
                case "file":
                    repo.files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    repo.files[value["path"]] = self.hub.large[value["oid"]]
                case "deletedFile":
                    repo.files.pop(value["path"], None)
        repo.commits += 1
        url = f"{self.hub.url}/{where['repo']}/commit/{repo.sha}"
        self._json({"commitUrl": url, "commitOid": repo.sha, "pullRequestUrl": None})

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), {"Content-Type": "application/json"}, status)

    def _error(self, status: int, code: str | None) -> None:
        headers = {"Content-Type": "application/json"}
        if code is not None:
            headers["X-Error-Code"] = code
        self._send(json.dumps({"error": code or str(status)}).encode(), headers, status)

    def _send(self, data: bytes, headers: Mapping[str, str], status: int = 200) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def hub_server() -> Iterator[Hub]:
    hub = Hub()
    handler = type("HubHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    hub.files_url = hub.url.replace("127.0.0.1", "localhost")
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with an empty cache for the `huggingface_hub` of this process, without a token."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with hub_server() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("COLOOP_MODELS_DIR", str(tmp_path / "models"))
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        yield served


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return TOKEN
