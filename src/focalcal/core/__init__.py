"""What every layer above shares: checked arguments, stable logarithms, bins."""
