"""What Jaeger has of a request, compared with the request's log."""
