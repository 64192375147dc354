"""Kernels for CPUs: decoder blocks and a cache, laid out for few large products."""
