"""Random walks of Spark SQL and DataFrames over one table of all types: make_walks.py SEED END STEPS

After each step the table's files and the engine's rows are kept: `walk-<seed>/walk.zip` has each file
content once (`blobs/<sha256>`), `steps.json` with the files that stood after each step, and the rows
as `rows/<step>.parquet`. The zone of the JVM is the environment variable ZONE (default UTC).
"""
import datetime
import decimal
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from urllib.parse import quote

from lab import QUIET_TABLE, Lab
from pyspark.sql import types as T

PARTITIONS = ["a", "b c", "ä", "x=y", "100%", "2026-01-02", "p:q", "__x", "A"]
UTC = datetime.timezone.utc
OUT = Path(__file__).resolve().parents[1]


def schema(wide):
    inner = T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.StructType([T.StructField("c", T.StringType())]))])
    element = T.StructType([T.StructField("x", T.IntegerType()), T.StructField("y", T.StringType())])
    kinds = {
        "id": T.StringType(), "p": T.StringType(), "ts": T.LongType(), "v": T.StringType(), "i": T.IntegerType(),
        "d": T.DecimalType(12, 3), "t": T.TimestampType(), "dt": T.DateType(), "st": inner, "arr": T.ArrayType(element),
        "m": T.MapType(T.StringType(), T.IntegerType()), "f": T.DoubleType(), "b": T.BinaryType(), "Bo": T.BooleanType(),
    }
    kinds |= {"w": T.StringType()} if wide else {}
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


class Walk:
    """One table, and the dice that decide what happens to it."""

    def __init__(self, lab, seed, place):
        self.spark, self.seed, self.path = lab.spark, seed, f"{place}/table"
        self.dice = dice = random.Random(seed)
        self.mor, self.parted, bucket = dice.random() < 0.7, dice.random() < 0.7, dice.random() < 0.3
        self.version = dice.choice(["6", "8", "9", "9"])
        mode = dice.choice(["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
        prefix = "hoodie.datasource.write."
        self.options = QUIET_TABLE | {
            "hoodie.table.name": "t", f"{prefix}table.type": "MERGE_ON_READ" if self.mor else "COPY_ON_WRITE",
            f"{prefix}recordkey.field": "id", f"{prefix}precombine.field": "ts",
            "hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": dice.choice(["true", "false"]), "hoodie.embed.timeline.server": "false",
            f"{prefix}hive_style_partitioning": dice.choice(["true", "false"]), f"{prefix}partitionpath.urlencode": "true",
            "hoodie.parquet.small.file.limit": dice.choice(["0", "104857600"]), "hoodie.clean.automatic": "false",
            "hoodie.logfile.data.block.format": dice.choice(["avro", "avro", "parquet"]),
            "hoodie.index.type": "BUCKET" if bucket else dice.choice(["BLOOM", "SIMPLE"]),
        }
        if self.version != "6":
            self.options["hoodie.write.record.merge.mode"] = mode
        generator = "SimpleKeyGenerator" if self.parted else "NonpartitionedKeyGenerator"
        self.options[f"{prefix}keygenerator.class"] = f"org.apache.hudi.keygen.{generator}"
        if self.parted:
            self.options[f"{prefix}partitionpath.field"] = "p"
        if bucket:
            self.options["hoodie.bucket.index.num.buckets"] = "2"
        self.partitions = dice.sample(PARTITIONS, 3)
        self.keys = [f"k{number}" for number in range(6)] + ["k,1:2", "k ä"]
        self.place, self.wide, self.tick, self.saved = {}, False, 0, None

    def maybe(self, value):
        return None if self.dice.random() < 0.2 else value

    def row(self, key, late):
        dice, maybe = self.dice, self.maybe
        self.tick += 1
        ts = self.tick if dice.random() > late else max(1, self.tick - dice.randrange(1, 20))
        time = datetime.datetime(
            dice.choice([1600, 1969, 2026, 9999]), dice.randrange(1, 13), dice.randrange(1, 28),
            dice.randrange(24), 5, 6, dice.randrange(10**6), tzinfo=UTC)
        values = [
            key, self.place.setdefault(key, dice.choice(self.partitions)), ts, maybe(f"v{dice.randrange(1000)}"),
            maybe(dice.randrange(-(2**31), 2**31)), maybe(decimal.Decimal(dice.randrange(-(10**8), 10**8)) / 1000),
            maybe(time), maybe(datetime.date(dice.choice([1, 1582, 1970, 9999]), dice.randrange(1, 13), dice.randrange(1, 28))),
            maybe((maybe(dice.randrange(99)), maybe((maybe(f"c{dice.randrange(9)}"),)))),
            maybe([(maybe(dice.randrange(9)), maybe("y")) for _ in range(dice.randrange(3))]),
            maybe({f"k{number}": number for number in range(dice.randrange(3))}),
            maybe(dice.choice([0.0, -0.0, float("nan"), float("inf"), 1.5])),
            maybe(bytes(dice.randrange(256) for _ in range(3))), maybe(dice.random() < 0.5),
        ]
        return tuple(values + ([maybe(f"w{dice.randrange(99)}")] if self.wide else []))

    def frame(self, keys, late=0.2):
        return self.spark.createDataFrame([self.row(key, late) for key in keys], schema(self.wide))

    def write(self, frame, operation, **more):
        options = self.options | more | {"hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode("append").save(self.path)

    def call(self, text):
        self.spark.sql("drop table if exists t")
        self.spark.sql(f"create table t using hudi location '{self.path}'")
        return self.spark.sql(text).collect()

    def some(self, most):
        return self.dice.sample(self.keys, self.dice.randrange(1, most))

    def newest(self):
        return self.call("call show_commits(table => 't', limit => 1)")[0][0]

    def step(self, number):
        """Do something by chance; returns its name and the engine's error."""
        every = ["upsert"] * 5 + ["delete"] * 2 + ["insert", "widen", "overwrite_table"]
        every += ["overwrite", "drop"] if self.parted else []
        every += ["compact"] * 3 + ["log_compact"] if self.mor else []
        if self.version != "6":  # the procedures look for the timeline of version 8
            every += ["update", "merge", "clean", "cluster", "savepoint", "rollback", "restore"]
            every += ["schedule"] if self.mor else []
        name = self.dice.choice(every) if number else "first"
        try:
            getattr(self, f"do_{name}")(number)
        except Exception as refused:
            return name, str(refused)[:200]
        return name, None

    def do_first(self, number):
        self.write(self.frame(self.keys[:5]), "insert")

    def do_upsert(self, number):
        self.write(self.frame(self.some(6)), "upsert")

    def do_insert(self, number):
        self.keys.append(f"n{number}")
        self.write(self.frame(self.keys[-1:]), self.dice.choice(["insert", "bulk_insert"]))

    def do_delete(self, number):
        self.write(self.frame(self.some(4), 0.1), "delete")

    def do_widen(self, number):
        self.wide = True
        self.do_upsert(number)

    def do_overwrite(self, number):
        self.write(self.frame(self.some(2)), "insert_overwrite")

    def do_overwrite_table(self, number):
        self.write(self.frame(self.some(4)), "insert_overwrite_table")

    def do_drop(self, number):
        hive = "p=" if self.options["hoodie.datasource.write.hive_style_partitioning"] == "true" else ""
        folder = hive + quote(self.place.get(self.keys[0], "a"), safe="")
        self.write(self.frame(self.keys[:1]), "delete_partition", **{"hoodie.datasource.write.partitions.to.delete": folder})

    def do_compact(self, number):
        self.call("call run_compaction(op => 'schedule', table => 't')")
        self.call("call run_compaction(op => 'run', table => 't')")

    def do_schedule(self, number):
        self.call("call run_compaction(op => 'schedule', table => 't')")

    def do_log_compact(self, number):
        more = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"}
        self.write(self.frame(self.some(3)), "upsert", **more)

    def do_clean(self, number):
        self.call("call run_clean(table => 't', retain_commits => 4)")

    def do_cluster(self, number):
        self.call("call run_clustering(table => 't')")

    def do_update(self, number):
        self.tick += 5
        self.call(f"update t set v = 'u{number}', ts = {self.tick} where id in ('{self.keys[0]}', '{self.keys[3]}')")

    def do_merge(self, number):
        self.frame(self.some(4), 0).createOrReplaceTempView("s")
        same = "t.id = s.id" + (" and t.p = s.p" if self.parted else "")
        self.call(
            f"merge into t using s on {same} when matched and s.ts % 3 = 0 then delete "
            "when matched then update set v = s.v, ts = s.ts when not matched then insert *")

    def do_savepoint(self, number):
        self.saved = self.newest()
        self.call(f"call create_savepoint(table => 't', commit_time => '{self.saved}')")

    def do_rollback(self, number):
        self.call(f"call rollback_to_instant(table => 't', instant_time => '{self.newest()}')")

    def do_restore(self, number):
        if self.saved:
            self.call(f"call rollback_to_savepoint(table => 't', instant_time => '{self.saved}')")
            self.saved = None


def make(lab, seed, steps, kind=Walk):
    """Walk, and keep what stood after each step."""
    with tempfile.TemporaryDirectory() as place:
        walk, told, kept = kind(lab, seed, place), [], set()
        folder = OUT / f"walk-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with zipfile.ZipFile(folder / "walk.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for number in range(steps):
                name, error = walk.step(number)
                lab.spark.catalog.clearCache()
                rows = Path(place) / f"rows-{number}"
                try:
                    reader = lab.spark.read.format("hudi").option("hoodie.metadata.enable", "false")
                    reader.load(walk.path).coalesce(1).write.parquet(str(rows))
                    (written,) = rows.glob("*.parquet")
                    packed.write(written, f"rows/{number}.parquet")
                    unread = None
                except Exception as refused:
                    unread = str(refused)[:200]
                files = {}
                for path in sorted(Path(walk.path).rglob("*")):
                    below = str(path.relative_to(walk.path))
                    if path.is_file() and not path.name.endswith(".crc") and not below.startswith(".hoodie/metadata"):
                        content = path.read_bytes()
                        files[below] = digest = hashlib.sha256(content).hexdigest()
                        if digest not in kept:
                            kept.add(digest)
                            packed.writestr(f"blobs/{digest}", content)
                told.append({"step": name, "error": error, "unread": unread, "files": files})
            about = {"seed": seed, "engine": lab.version, "zone": os.environ.get("ZONE", "UTC"), "options": walk.options}
            packed.writestr("steps.json", json.dumps({**about, "steps": told}))
        print(seed, [(it["step"], bool(it["error"])) for it in told], (folder / "walk.zip").stat().st_size, flush=True)


def quiet():
    """A session that keeps old times as they are."""
    lab = Lab("1.2.0", zone=os.environ.get("ZONE", "UTC"))
    for setting in ("parquet.datetimeRebaseModeInWrite", "avro.datetimeRebaseModeInWrite",
                    "parquet.datetimeRebaseModeInRead", "avro.datetimeRebaseModeInRead"):
        lab.spark.conf.set(f"spark.sql.{setting}", "CORRECTED")
    lab.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return lab


if __name__ == "__main__":
    first, end, steps = map(int, sys.argv[1:])
    lab = quiet()
    for seed in range(first, end):
        try:
            make(lab, seed, steps)
        except Exception as failed:  # a table whose first write is refused
            shutil.rmtree(OUT / f"walk-{seed}", ignore_errors=True)
            print(seed, "no walk:", str(failed)[:200], flush=True)
