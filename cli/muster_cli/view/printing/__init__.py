"""How things get onto a terminal: the guard that everything passes, and lists that fit its width."""
