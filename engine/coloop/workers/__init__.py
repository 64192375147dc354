"""Hosts: the processes that hold weights, what is said to them, and the driver's way to them."""
