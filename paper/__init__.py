"""About the paper on Focal Calibration Loss alone: its studies, numbers and claims, records and result pages."""

from pathlib import Path

STUDIES = Path(__file__).parent / "studies"
"""The paper's studies and ours about its claims; in `small`, those that two cores could run."""
