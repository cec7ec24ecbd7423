"""Look at what was loaded and published, restore what was lost, delete what nobody needs."""
