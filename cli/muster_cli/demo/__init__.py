"""The demo: its environment, and the process that it kills."""
