"""Code for limited processes, each a file of its own that needs nothing of ours: judges of built-in
rewards (`judge` of one question answers a dict), and the checkers of rule verifiers (`reward`)."""
