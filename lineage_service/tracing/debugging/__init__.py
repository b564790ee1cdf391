"""What behaves oddly in an application, and what bad outputs have in common."""
