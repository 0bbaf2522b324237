"""Muster."""
