"""The service of coloop: keeps loops, launches runs, streams what they do and serves the page.

It knows the light packages of `coloop` only. Training happens in processes that it launches and
watches through their run folders; importing this package loads no torch and no Ray.
"""
