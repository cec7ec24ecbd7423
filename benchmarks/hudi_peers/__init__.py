"""Measurements on Hudi tables beside engines that run in an environment of their own."""
