"""Hostile requests from the API's own description: the same number, the same request.

Every route is asked, with values of the wrong kind, size, depth and encoding in its path, its
query, its headers and its body. Some of each request is left as the route wants it, so that it
comes as far as possible.
"""

import json
import random
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

METHODS = ("get", "post", "put", "patch", "delete")
QUIET = ("/api/session",)
"""Routes whose wrong guesses are slowed on purpose: asked rarely."""
TYPES = (
    *("application/json",) * 40,
    *("text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x"),
    *("application/x-www-form-urlencoded", "application/xml", "", "json/\x7f", "application/yaml"),
)
TEXTS = (
    *("", " ", "a", "null", "0", "-1", "NaN", "true", "../../../../etc/passwd", "..", ".", "/"),
    *("/etc/passwd", "file:///etc/passwd", "~root", "http://127.0.0.1:1/", "s3://x", "a" * 256),
    *("x/" * 300, "é" * 200, "\u202e", "\ufeff", "😀", "\x00", "\x1b[31m", "%00", "%2e%2e%2f"),
    *("' OR 1=1 --", "<script>", "{{ 7 * 7 }}", "${HOME}", "a" * 70000, "__class__", "$ref"),
    *("edges.99999999999999999999", "con", "\n"),
)
PATHS = (
    *("nodes.actor", "nodes", "edges", "schedule.steps", "nodes.actor.training.optimizer.lr", ""),
    *("run.seed", "nodes.actor.model", "edges.0", "edges", "name", "description", "hardware"),
    *("nodes.problems.rows_per_step", "nodes.exact.source", "nodes.problems.source.path", "layout"),
)
EITHER = (("yaml", "spec"), ("changes", "spec"), ("code", "source"))
"""Fields of which a body has exactly one."""
NUMBERS = (
    *(0, -1, 1, 2, 255, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30)),
    *(10**400, 0.5, -0.0, 1e308, 1e-320, 5e-324, 3.0, 1e16),
)
RAW = (
    *(b"", b"{", b"[", b"nul", b"\xff\xfe\x00", b'"\\ud800"', b'{"a": NaN}', b'{"a": 1e999}'),
    *(b"[" * 5000, b'{"a":' * 5000, b"[" * 90 + b"]" * 90, b'"' + b"a" * 100_000 + b'"'),
    *(
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"{}{}",
        b'{"a": 1, "a": 2}',
        b"- a: [",
        b"9" * 5000,
    ),
    *(b'{"yaml": "\\u0000"}', b'{"\\udfff": 1}', b"null", b"true", b"[]", b'""', b"-0", b"{}"),
)
YAMLS = (
    *("", "[]", "a: [", "coloop: 1", "coloop: 99", "coloop: -1", "coloop: 1.5", "- 1", "&a *a"),
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d, *d]\n",
    "a: &a\n  <<: *a\n",
    "coloop: 1\nname: !!python/object/apply:os.system [id]\n",
    "coloop: 1\nname: 2020-01-01\nnodes: !!set {a, b}\n",
    "coloop: 1\n? [a, b]\n: 1\n",
    "coloop: 1\nnodes: {1: {kind: actor}, 2.5: {}, null: {}, true: {}}\nedges: {a: b}\n",
    "coloop: 1\nnodes: " + "{a: " * 80 + "1" + "}" * 80,
    "coloop: 1\nname: " + "x" * 50_000,
    "coloop: 1\nlayout: .nan\nschedule: {steps: .inf}\n",
    "%YAML 9.9\n---\na: 1\n---\nb: 2\n",
    'coloop: 1\nname: "\\uD800"\n',
    "coloop: 1\nrun: {seed: 0x" + "f" * 400 + "}\n",
    "coloop: 1\nname: !!binary aGVsbG8=\n",
    "\tcoloop: 1\n",
)
CODE = (
    "def reward(prompts, completions, **columns):\n    return [1.0 for _ in completions]\n",
    "def reward(prompts, completions, **columns):\n    return 10 ** 400\n",
    "def reward(",
    "raise SystemExit",
    "\ud7ff",
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, as it goes over the wire."""

    method: str
    target: bytes
    headers: tuple[tuple[str, bytes], ...]
    body: bytes

    @property
    def wire(self) -> bytes:
        head = [self.method.encode() + b" " + self.target + b" HTTP/1.1"]
        head += [name.encode() + b": " + value for name, value in self.headers]
        return b"\r\n".join((*head, b"", b"")) + self.body

    @property
    def shown(self) -> str:
        return f"{self.method} {self.target[:200]!r} {self.headers!r} {self.body[:600]!r}"


class Fuzzer:
    """Makes requests of a described API.

    Args:
        known: values for parameters of the path that lead somewhere, by name.
        loop: the text of a loop that can run.
    """

    def __init__(
        self, api: dict[str, Any], *, host: str, token: str, known: dict[str, list[str]], loop: str
    ) -> None:
        self.schemas = api["components"]["schemas"]
        self.routes = [
            (method, path, operation)
            for path, item in sorted(api["paths"].items())
            for method, operation in sorted(item.items())
            if method in METHODS
        ]
        self.host, self.token, self.known, self.loop = host, token, known, loop

    def request(self, number: int) -> Sent:
        chance = random.Random(number)
        method, path, operation = self.routes[number % len(self.routes)]
        if path in QUIET and chance.random() < 0.95:
            path, method = "/api/health", "get"
        parameters = operation.get("parameters", []) if path not in QUIET else []
        body, kind = b"", ""
        if "requestBody" in operation and path != "/api/health":
            body, kind = self.body(chance, operation), chance.choice(TYPES)
        headers = [("host", self.host.encode()), ("content-length", str(len(body)).encode())]
        if chance.random() < 0.97:
            headers.append(("authorization", f"Bearer {self.token}".encode()))
        if kind:
            headers.append(("content-type", kind.encode("latin-1", "replace")))
        headers += self.odd_headers(chance, parameters)
        verb = method.upper() if chance.random() < 0.98 else chance.choice(("HEAD", "OPTIONS", "X"))
        return Sent(verb, self.target(chance, method, path, parameters), tuple(headers), body)

    def odd_headers(self, chance: random.Random, parameters: Any) -> list[tuple[str, bytes]]:
        found = []
        for one in parameters:
            if one["in"] == "header" and chance.random() < 0.7:
                text = chance.choice((*TEXTS[:24], "*", '"x"', "W/")).replace("\n", "")
                found.append((one["name"], text.replace("\0", "").encode("utf-8")[:900]))
        if chance.random() < 0.05:
            found.append(("cookie", b"coloop_session=" + chance.randbytes(20).hex().encode()))
        if chance.random() < 0.05:
            found.append(("accept-encoding", chance.choice((b"gzip", b"*", b"gzip;q=x", b"\xff"))))
        return found

    def target(self, chance: random.Random, method: str, path: str, parameters: Any) -> bytes:
        parts = []
        for part in path.split("/"):
            if part.startswith("{"):
                good = self.known.get(part.strip("{}"), ["1"])
                is_good = chance.random() < (0.85 if method != "delete" else 0.03)
                text = chance.choice(good) if is_good else self.text(chance)[:2000]
                parts.append(quote(text, safe="", errors="replace").encode())
            else:
                parts.append(part.encode())
        target = b"/".join(parts)
        queries = [one for one in parameters if one["in"] == "query" and chance.random() < 0.6]
        pairs = [f"{one['name']}={quote(self.query(chance), safe='')}" for one in queries]
        if chance.random() < 0.05:
            pairs.append(chance.choice(("%ff=%fe", "&&&=", "after=1&after=2", "x" * 3000, "a=%")))
        if chance.random() < 0.03:
            target = chance.choice((b"/api/../api", b"//api", b"/api/%2e%2e", b"/%ff")) + target
        return target + (b"?" + "&".join(pairs).encode() if pairs else b"")

    def query(self, chance: random.Random) -> str:
        good = chance.choice((0, 1, 2, 3, 10, 100))
        odd = chance.choice((*NUMBERS, *TEXTS[:30]))
        return str(good if chance.random() < 0.6 else odd)[:3000]

    def body(self, chance: random.Random, operation: Any) -> bytes:
        if chance.random() < 0.15:
            return chance.choice(RAW)
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        value = self.value(chance, schema, "", 0)
        for one, other in EITHER:
            if isinstance(value, dict) and one in value and other in value:
                del value[chance.choice((one, other, other))]
        return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )

    def value(self, chance: random.Random, schema: Any, name: str, depth: int) -> Any:
        """A value that a schema wants, or, now and then, another one."""
        if chance.random() < 0.03:
            return self.anything(chance, depth)
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self.value(chance, chance.choice(schema[union]), name, depth)
        if "const" in schema or "enum" in schema:
            return chance.choice(schema.get("enum", [schema.get("const")]))
        match schema.get("type"):
            case "object" if "properties" in schema:
                needed = schema.get("required", [])
                return {
                    key: self.value(chance, one, key, depth + 1)
                    for key, one in schema["properties"].items()
                    if key in needed or chance.random() < 0.5 or key in ("yaml", "changes", "code")
                }
            case "object":
                return self.mapping(chance, name, depth)
            case "array":
                count = chance.choice((0, 1, 1, 2, 5))
                wanted = schema.get("items", {})
                return [self.value(chance, wanted, name, depth + 1) for _ in range(count)]
            case "string":
                return self.named_text(chance, name)
            case "integer" | "number":
                return chance.choice((0, 1, 2, 5, 64, *NUMBERS))
            case "boolean":
                return chance.random() < 0.5
            case "null":
                return None
        return self.anything(chance, depth)

    def named_text(self, chance: random.Random, name: str) -> str:
        match name:
            case "yaml":
                return self.yaml(chance)
            case "code":
                return chance.choice(CODE)
            case "path":
                return chance.choice(PATHS) if chance.random() < 0.8 else self.text(chance)
            case "op":
                return chance.choice(("set", "insert", "remove", "rename", "add_edge", "x"))
            case "loop_id" | "resume":
                return chance.choice(self.known["run_id"] + self.known["loop_id"])
        return self.text(chance) if chance.random() < 0.5 else "some text"

    def yaml(self, chance: random.Random) -> str:
        """The loop with one of its lines changed, or what is hardly one."""
        if chance.random() < 0.2:
            return chance.choice(YAMLS)
        lines = self.loop.splitlines()
        for _ in range(chance.choice((0, 1, 1, 2))):
            at = chance.randrange(len(lines))
            key = lines[at].partition(":")[0]
            odd = chance.choice((*map(str, NUMBERS[:14]), *TEXTS[:20], "[]", "{}", "null"))
            lines[at] = chance.choice((f"{key}: {odd}", lines[at] * 2, "", lines[at] + odd))
        return "\n".join(lines) + "\n"

    def mapping(self, chance: random.Random, name: str, depth: int) -> Any:
        if name == "source":
            kinds = ("exact_match", "numeric", "regex", "length", "contains", "format", "x")
            pattern = chance.choice(("(a+)+$", "(", "a{9999999}", "."))
            return {"name": chance.choice(kinds), "column": "answer", "pattern": pattern}
        if name == "rows":
            row = {"prompt": "1+1=", "completion": self.anything(chance, 2), "answer": "2"}
            return row | {"scores": self.anything(chance, 2)}
        if name in ("set", "changes"):
            return {chance.choice(PATHS): self.anything(chance, depth + 1)}
        return {self.text(chance)[:300]: self.anything(chance, depth + 1) for _ in range(2)}

    def anything(self, chance: random.Random, depth: int) -> Any:
        match chance.randrange(9):
            case 0:
                return None
            case 1:
                return chance.random() < 0.5
            case 2 | 3:
                return chance.choice(NUMBERS)
            case 4:
                value: Any = 1
                for _ in range(chance.choice((3, 60, 95, 120))):
                    value = [value] if chance.random() < 0.5 else {"a": value}
                return value
            case 5 if depth < 4:
                return {self.text(chance)[:100]: self.anything(chance, depth + 1)}
            case 6 if depth < 4:
                return [self.anything(chance, depth + 1) for _ in range(3)]
        return self.text(chance)

    def text(self, chance: random.Random) -> str:
        if chance.random() < 0.15:
            return "".join(chr(chance.randrange(1, 0xD7FF)) for _ in range(chance.randrange(40)))
        return "\ud83d" if chance.random() < 0.03 else chance.choice(TEXTS)
