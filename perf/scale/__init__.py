"""What large days need: arithmetic on measured figures, and a simulated day of consumers (docs/scale.md)."""
