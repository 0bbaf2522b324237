"""What a worker keeps of the work on a task, so that nothing of it is paid twice."""
