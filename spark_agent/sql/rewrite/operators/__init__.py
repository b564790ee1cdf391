"""How ids pass each operator of a plan: a module for each kind, with a table of its operators."""
