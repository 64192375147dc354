"""Ways of searching, a file each."""
