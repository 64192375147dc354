"""A Ray that belongs to a server: what is noted of it on disk, and its first process."""
