"""`python -m muster`, which is the command `muster`."""

from muster_cli.main import main

if __name__ == "__main__":
    main()
