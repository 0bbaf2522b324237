"""What is said on the wire: messages, subjects, headers, and the fold of a request's log into its state."""
