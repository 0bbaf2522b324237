"""The supervisor service: takes a request, breaks it into tasks, dispatches them and answers."""
