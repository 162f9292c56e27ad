"""Forty tasks in three lengths of training: the runs that paper/plan.md is about."""
