"""The team file: its values, and reading it."""
