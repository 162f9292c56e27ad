"""Data sets, their splits, augmentation and corruptions."""
