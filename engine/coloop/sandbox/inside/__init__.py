"""The side inside the sandbox process. Imports only the standard library, as no other file can be
read there later."""
