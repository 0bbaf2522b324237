"""The tools that a role's model may call."""
