"""Sources that run in the sandbox of a tool; they import only the standard library."""
