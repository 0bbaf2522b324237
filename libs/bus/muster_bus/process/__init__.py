"""What a process of Muster is: settings, arguments, logging, health, exit codes, start and stop."""
