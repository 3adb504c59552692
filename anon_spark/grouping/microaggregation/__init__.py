"""What the microaggregation algorithms share: geometry, classes of k points, local search."""
