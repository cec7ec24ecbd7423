"""Run Alembic on the connection that `connect.migrate` hands over."""

from alembic import context

from tidegate.ledger.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
