"""Services on other machines: one way out of a run, behind one guard.

    body (JSON) -> Service.ask -> room -> circuit -> attempts with pauses -> JSON, or ServiceFailed
                                             |
                        CheckedNetwork: name -> addresses -> each one looked at -> connection

Knows nothing of rewards, engines or rows. Invariants:
- only hosts that COLOOP_ALLOWED_REMOTES lists are called, at an address that was looked at;
- nothing is redirected, no proxy of the environment is used, no cookie is kept;
- a request takes no longer than its timeout, whatever the service sends; a reply no more than its
  limit;
- a secret is read from the environment of this process and goes into one header: no message, event
  or log holds it.
"""
