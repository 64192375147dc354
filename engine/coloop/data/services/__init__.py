"""HTTP calls from a run to services on other machines.

    body (JSON) -> Service.ask -> concurrency limit -> circuit breaker -> attempts -> JSON,
                                             |                                or ServiceFailed
                        CheckedNetwork: name -> addresses, each checked -> connection

Invariants:
- only hosts in COLOOP_ALLOWED_REMOTES are called, at addresses that were checked;
- redirects are not followed, proxies of the environment not used, cookies not kept;
- an attempt takes no longer than its timeout, and a reply has at most its limit of bytes;
- a secret is read from the environment of this process and sent in one header; no message, event or
  log contains it.
"""
