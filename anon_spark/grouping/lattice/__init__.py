"""What the lattice sweep is made of: levels of generalization, classes of a node, last rows."""
