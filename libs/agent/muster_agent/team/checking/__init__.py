"""What is wrong with a team file, said all at once, each with its place and a way out."""
