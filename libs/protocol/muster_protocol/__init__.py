"""What is said on the wire: the messages, subjects, headers and errors, and the fold of a request's log into its state."""
