"""Steps from one schema of the ledger to the next, run by Alembic."""
