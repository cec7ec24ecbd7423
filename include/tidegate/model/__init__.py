"""The vocabulary: frozen values, standard library only, that cross processes as JSON."""
