"""One limited process for all Python that comes with a loop: rewards, filters, templates, previews.

    process.py    Sandbox: starts it, talks to it, ends it                      (our side)
    foreseen.py   which calls of a code it will refuse, from its text
    inside/       the watcher, the isolation and the harness around the user's code (its side)

Knows nothing of rewards or rows; importing it loads the standard library alone.
"""
