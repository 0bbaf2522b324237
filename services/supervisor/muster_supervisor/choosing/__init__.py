"""What is known about the roles of the team, and which of those that match gets a task."""
