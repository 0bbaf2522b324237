"""Making a team of one's own."""
