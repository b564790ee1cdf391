"""Sifts: the smallest part of an application's input on which its command still fails."""
