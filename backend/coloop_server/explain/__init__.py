"""Help over HTTP: of findings, of algorithms with a node's settings."""
