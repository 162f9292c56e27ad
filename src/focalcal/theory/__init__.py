"""The theory of Focal Calibration Loss, computed: the population minimiser, its bounds, and calibration."""
