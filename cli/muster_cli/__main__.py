"""`python -m muster_cli` is `muster`."""

from muster_cli.main import main

if __name__ == "__main__":
    main()
