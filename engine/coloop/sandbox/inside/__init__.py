"""What runs in the sandbox process. Imports only the standard library, because other files cannot
be read there."""
