"""From topics to stores."""
