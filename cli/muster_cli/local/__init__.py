"""What runs on this machine: the folder `.muster`, processes, the team file."""
