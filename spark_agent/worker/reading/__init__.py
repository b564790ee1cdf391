"""How a user's function reads its partition: decided from bytecode, and checked with the objects it uses."""
