"""The words of the command line, one file for each group of commands."""
