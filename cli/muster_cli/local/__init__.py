"""What runs on this machine: the folder `.muster`, its processes, its ports."""
