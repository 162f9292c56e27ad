"""The command `focalcal`."""
