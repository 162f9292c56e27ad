"""`python -m focalcal.cli` is `focalcal`."""

from focalcal.cli import main

main()
