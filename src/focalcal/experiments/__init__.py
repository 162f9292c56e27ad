"""From a spec to a stored run, one cell or a whole grid, here or on a cluster."""
