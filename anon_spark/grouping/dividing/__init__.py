"""Groups divided in two, again and again, where that lowers the certainty penalty."""
