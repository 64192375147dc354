"""What the editor asks while a loop is drawn: catalog, checks, and reading and writing YAML."""
