"""When a partition may be published, and the publishing of it."""
