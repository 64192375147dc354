"""Search methods, one per file."""
