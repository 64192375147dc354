"""The processes of ranks, found by what the machine tells of them."""

import psutil

FORK_SERVER = "coloop.workers.cluster.fork_server_process"


def fork_servers_of(driver: psutil.Process) -> list[psutil.Process]:
    """Processes from which the ranks of a driver stem."""
    return [one for one in driver.children() if FORK_SERVER in _command(one)]


def ranks_of(driver: psutil.Process) -> list[psutil.Process]:
    """The ranks that a driver has on this machine, in their order."""
    found: list[psutil.Process] = []
    for fork_server in fork_servers_of(driver):
        try:
            found += fork_server.children()
        except psutil.Error:
            continue
    return sorted(found, key=lambda one: one.pid)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
