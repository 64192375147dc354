"""How Ray is set where coloop starts one of its own."""

AT_EVEN_PRIORITY = {"RAY_worker_niceness": "0"}
"""Environment. Ray gives its workers nice 15, and with them every driver that is a job: beside
anything else that works, a run on one machine would have a thirtieth of a core. Here the workers
are the work; cores that the rest needs are left out of the pools."""

AUTHENTICATION = "RAY_AUTH_MODE"
"""How a Ray asks who comes; unset, one that starts asks for a token."""
