"""Attempts that were assigned more than once: what is seen of them, judged, written down, and stopped."""
