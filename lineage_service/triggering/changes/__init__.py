"""What changed between two waves, element by element, and how wrong an output is that was not made anew."""
