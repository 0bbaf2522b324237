"""The model port and its implementations: Claude, offline, scripted."""
