"""From the results of the tasks to the text of the answer."""
