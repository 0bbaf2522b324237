"""What goes to a provider and comes back: requests, replies, schemas and errors, as values. No package of one."""
