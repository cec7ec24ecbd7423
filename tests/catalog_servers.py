"""Real catalogs on this machine: Iceberg's own REST server, the Hive metastore of Spark's jars."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SETUP = Path(__file__).parent / "catalogs"
CACHE = Path(__file__).parent.parent / ".venv" / "java"
STARTED_WITHIN_SECONDS = 90
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
_OPENS = tuple(
    word
    for package in ("java.net", "java.lang", "java.util")
    for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
)
# The server is made of Spark's jars, but for what must be of its own version.
_FROM_SPARK = (
    "jackson-core-2",
    "jackson-databind-2",
    "jackson-annotations-2",
    "avro-1",
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "RoaringBitmap",
    "aircompressor",
)


@dataclass
class CatalogServer:
    """A catalog in a process of its own."""

    kind: str
    place: Path
    """Its directory: log and database."""
    command: Sequence[str]
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def properties(self) -> dict[str, str]:
        """What stands under `source.catalog` in a pipeline file."""
        scheme = "http" if self.kind == "rest" else "thrift"
        return {"name": "lake", "type": self.kind, "uri": f"{scheme}://127.0.0.1:{self.port}"}

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.place / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.place,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until = time.monotonic() + STARTED_WITHIN_SECONDS
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > until:
                log_text = (self.place / "server.log").read_text("utf-8", "replace")
                pytest.fail(f"the {self.kind} catalog did not start:\n{log_text[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def rest_server(place: Path) -> Iterator[CatalogServer]:
    """Run Iceberg's REST catalog over a database in `place`."""
    jars = [*fetched_jars("rest-catalog"), *_spark_jars(_FROM_SPARK)]
    port = free_port()
    environment = {
        "CATALOG_WAREHOUSE": f"file://{place}/warehouse",
        "CATALOG_URI": f"jdbc:sqlite:file:{place}/catalog.db",
        "CATALOG_REST_PORT": str(port),
    }
    path = os.pathsep.join(map(str, jars))
    main = "org.apache.iceberg.rest.RESTCatalogServer"
    with _running("rest", place, [_java(), *_QUICK, "-cp", path, main], port, environment) as found:
        yield found


@contextlib.contextmanager
def hive_server(
    place: Path, jars: Sequence[Path] = (), properties: Mapping[str, str] | None = None
) -> Iterator[CatalogServer]:
    """Run the Hive metastore of Spark's jars over a database in `place`.

    Args:
        place: its directory.
        jars: more of them, with other file systems.
        properties: how it reaches those.
    """
    port = free_port()
    spark = next(iter(_spark_jars(("hive-metastore",)))).parent
    path = os.pathsep.join([str(place), f"{spark}/*", *map(str, jars)])
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    command = [_java(), *_QUICK, *_OPENS, "-cp", path, main, "-p", str(port)]
    # Only as a test of its own does the server make the tables for locks; but then it refuses the
    # locks that pyiceberg asks for.
    for in_test in ("true", "false"):
        more = "".join(
            f"<property><name>{name}</name><value>{text}</value></property>"
            for name, text in (properties or {}).items()
        )
        said = _HIVE_SITE.format(place=place, in_test=in_test, more=more)
        (place / "hive-site.xml").write_text(said)
        with _running("hive", place, command, port, {}) as found:
            if in_test == "true":
                _ask_for_transactions(port)
            else:
                yield found


def _ask_for_transactions(port: int) -> None:
    from hive_metastore.ThriftHiveMetastore import Client
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    transport = TBufferedTransport(TSocket("127.0.0.1", port))
    transport.open()
    Client(TBinaryProtocol(transport)).get_open_txns()
    transport.close()


@contextlib.contextmanager
def catalog_server(kind: str, place: Path) -> Iterator[CatalogServer | None]:
    """Run a catalog of a kind; None for `sql`, which has no server."""
    servers = {"rest": rest_server, "hive": hive_server}
    if kind not in servers:
        yield None
        return
    with servers[kind](place) as found:
        yield found


@contextlib.contextmanager
def _running(
    kind: str, place: Path, command: Sequence[str], port: int, environment: Mapping[str, str]
) -> Iterator[CatalogServer]:
    server = CatalogServer(kind, place, command, port, environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def fetched_jars(name: str) -> list[Path]:
    """Give jars that are fetched once and compared with what was looked at; skip without them."""
    cache = CACHE / name
    listed = dict(
        reversed(line.split()) for line in (SETUP / f"{name}.sha256").read_text().splitlines()
    )
    if not all((cache / jar).exists() for jar in listed):
        _fetch(name, cache)
    for jar, digest in listed.items():
        found = hashlib.sha256((cache / jar).read_bytes()).hexdigest()
        assert found == digest, f"{cache / jar}: expected SHA-256 {digest}, found {found}"
    return [cache / jar for jar in listed]


def _fetch(name: str, cache: Path) -> None:
    ivy = next(iter(_spark_jars(("ivy-",))))
    pattern = f"{cache}/[artifact]-[revision](-[classifier]).[ext]"
    options = {
        "-cache": str(cache / ".ivy"),
        "-ivy": str(SETUP / f"{name}-ivy.xml"),
        "-retrieve": pattern,
        "-types": "jar",
    }
    said = [word for option in options.items() for word in option]
    done = subprocess.run(
        [_java(), "-jar", str(ivy), *said], capture_output=True, text=True, check=False
    )
    shutil.rmtree(cache / ".ivy", ignore_errors=True)
    if done.returncode or "UNRESOLVED" in done.stdout:
        pytest.skip(f"the jars of {name} are not in the cache and not to be had")


def _spark_jars(names: Sequence[str]) -> list[Path]:
    import pyspark

    jars = Path(str(pyspark.__file__)).parent / "jars"
    return [jar for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(tuple(names))]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        pytest.skip("there is no Java")
    return found


def free_port() -> int:
    """Give a port of this machine that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(port: int) -> bool:
    """Tell whether something listens on a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


_HIVE_SITE = """<configuration>
  <property>
    <name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:derby:;databaseName={place}/metastore;create=true</value>
  </property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
  <property><name>datanucleus.connectionPoolingType</name><value>dbcp</value></property>
  <property><name>hive.in.test</name><value>{in_test}</value></property>
  <property>
    <name>hive.metastore.warehouse.dir</name>
    <value>file://{place}/warehouse</value>
  </property>
  {more}
</configuration>
"""
