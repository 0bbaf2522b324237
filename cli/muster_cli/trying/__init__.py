"""Trying one role or one tool alone."""
