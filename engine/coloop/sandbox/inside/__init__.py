"""What runs in the limited process. Standard library alone: it closes the door behind itself."""
