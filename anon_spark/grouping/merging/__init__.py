"""Groups merged, the cheapest merges first, until all of them are classes."""
