"""The demo: real flights as a lake, and what must come out of it."""
