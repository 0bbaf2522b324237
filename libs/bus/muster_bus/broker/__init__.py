"""What the broker is: its streams and queues, its client, and one that runs as a child."""
