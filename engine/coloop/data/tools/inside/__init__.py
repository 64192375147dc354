"""What runs in the limited process of a tool, given to it as text. Standard library alone."""
