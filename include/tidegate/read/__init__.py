"""From pieces of files to bounded Arrow batches in the schema that the pipeline writes."""
