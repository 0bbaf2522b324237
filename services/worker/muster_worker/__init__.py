"""The worker service: pulls tasks of its tags, runs the role, stores the result, then acks."""
