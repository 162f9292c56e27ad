"""From what one wants to know to stored runs: studies, cells, executors."""
