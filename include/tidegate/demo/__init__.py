"""The demo: a lake of real flights, and the expected results."""
