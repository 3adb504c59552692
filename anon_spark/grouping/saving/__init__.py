"""Cuts chosen by the certainty penalty that they save."""
