"""What the waves of a job teach: the forest, the threshold, and from training to application and back."""
