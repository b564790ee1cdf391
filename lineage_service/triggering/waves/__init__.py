"""The waves that were asked about, what they were asked, and what came of them."""
