"""Steps from one shape of the ledger to the next, run by Alembic."""
