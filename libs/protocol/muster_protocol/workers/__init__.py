"""What is known about workers: the card that each shows, and its signs of life."""
