"""Runs as a short job of its own on a cluster: hands a request to the named actor of a run.

The request comes in the environment, the run's id as the only argument; both are the server's own.
"""

import os
import sys

ACTOR_SECONDS = 30.0


def main() -> None:
    import ray

    ray.init(log_to_driver=False)
    actor = ray.get_actor(f"coloop-{sys.argv[1]}", namespace="coloop")
    ray.get(actor.ask.remote(os.environ["COLOOP_REQUEST"]), timeout=ACTOR_SECONDS)


if __name__ == "__main__":
    main()
