"""A change within a bound: the elements of a wave are kept, compared with earlier ones, and weighed."""
