"""Help that explains: what a finding or an alert means, what an algorithm computes with its own
settings and how its curves should look, and what a preset teaches.

Knows the language and the checks, and nothing of screens: the command line prints what is here and
the service gives the same. Texts of findings are files of `pages/`, one a family of codes; their
examples are sound loops of `loops/` and what is changed in them, so that the checker itself can say
whether an example shows what it is to show.
"""
