"""Lanes of different weight through one set of slots."""
