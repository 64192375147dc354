"""Rows and texts as roles read them, and what they say of them."""
