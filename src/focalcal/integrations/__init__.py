"""Thin adapters for training frameworks; each module needs the framework that it is named after."""
