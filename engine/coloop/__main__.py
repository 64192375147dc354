"""`python -m coloop` is the command `coloop`."""

from coloop.cli.app import main

if __name__ == "__main__":
    main()
