"""Calls back: stores that an answer is to be sent to a URL, before its request is acknowledged, and sends it."""
