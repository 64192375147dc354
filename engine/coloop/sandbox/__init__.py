"""The sandbox: an isolated process for the Python of a loop, such as rewards and filters.

    process.py      `Sandbox`: starts the process, sends it requests, ends it
    exchange.py     messages over its pipes
    code_files.py   reads a Python file and the modules beside it
    foreseen.py     finds calls that the sandbox will refuse, in the source
    inside/         what runs in the process: watcher, isolation, harness around the user's code

Imports only the standard library.
"""
