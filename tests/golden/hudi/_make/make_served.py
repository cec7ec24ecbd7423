"""Walks over merge-on-read tables whose services run with the writes: make_served.py VERSION ...

Little is kept for long: file slices of one commit, two to three instants on the timeline. The files
and the engine's rows after each step stand in `walk-served-<version>/walk.zip`, as of other walks.
"""
import sys

from make_walks import Walk, make, quiet

CLEAN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
SERVICES = {
    "compacting": {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"},
    "clustering": {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"},
    "cleaning": CLEAN,
    "archiving": CLEAN | {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"},
}
STEPS = (
    "first upsert compacting cleaning upsert delete clustering cleaning upsert compacting archiving "
    "delete upsert compacting archiving clustering cleaning upsert overwrite archiving upsert"
).split()


class Served(Walk):
    """One table, and the services that run with its writes."""

    def __init__(self, lab, seed, place):
        super().__init__(lab, seed, place)
        self.mor, self.parted, self.version = True, True, seed.rpartition("-")[2]
        self.partitions = ["2026-01-01", "2026-01-02", "2026-01-03"]
        self.options.pop("hoodie.bucket.index.num.buckets", None)
        prefix = "hoodie.datasource.write."
        self.options |= {
            f"{prefix}table.type": "MERGE_ON_READ", "hoodie.write.table.version": self.version,
            "hoodie.metadata.enable": "false", f"{prefix}hive_style_partitioning": "false",
            "hoodie.parquet.small.file.limit": "0", "hoodie.logfile.data.block.format": "avro", "hoodie.index.type": "SIMPLE",
            f"{prefix}keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator", f"{prefix}partitionpath.field": "p",
        }
        if self.version != "6":
            self.options["hoodie.write.record.merge.mode"] = "EVENT_TIME_ORDERING"

    def step(self, number):
        name = STEPS[number]
        try:
            if name in SERVICES:
                self.write(self.frame(self.some(6)), "upsert", **SERVICES[name])
            else:
                getattr(self, f"do_{name}")(number)
        except Exception as refused:
            return name, str(refused)[:200]
        return name, None


if __name__ == "__main__":
    lab = quiet()
    for version in sys.argv[1:]:
        make(lab, f"served-{version}", len(STEPS), Served)
