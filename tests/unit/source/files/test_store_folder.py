"""A folder of objects is read as one of files, with as few requests as there can be."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest

from s3_faults import way_to
from s3_servers import GATEWAY, KEY, REGION, SECRET, s3_server
from tidegate import read_changes
from tidegate.config import read_source
from tidegate.errors import (
    FolderNotFound,
    FolderOfTable,
    ListedFileChanged,
    ListedFileGone,
    MarkedFileWrong,
    ObjectNamedAsFolder,
    PublishedTablesBelow,
    RevisionsUnmarked,
    SourceRewritten,
    SourceUnreachable,
    StoreDenied,
)
from tidegate.model.instant import Instant, InstantRange
from tidegate.source.files import FilesSource
from tidegate.source.files.reader import open_slice
from tidegate.source.files.walk import list_directory
from tidegate.storage import S3Options, Stores
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_faults import Way
    from s3_servers import S3Server
    from tidegate.model.plan import Piece
    from tidegate.source.files.listing import Listing

NOW = datetime(2027, 1, 1, tzinfo=UTC)
LARGE = 200_000


@dataclass
class Landing:
    """A bucket with a folder of files, and the way to it."""

    server: S3Server
    name: str
    way: Way

    @property
    def root(self) -> str:
        return f"s3://{self.name}/landing"

    @property
    def storage(self) -> Stores:
        options = S3Options(f"http://127.0.0.1:{self.way.port}", REGION, None, KEY, SECRET)
        return Stores(objects=S3Storage(S3Calls(options)))

    @property
    def client(self) -> Any:
        return self.server.client()

    def put(self, name: str, content: bytes = b"x") -> None:
        self.client.put_object(Bucket=self.name, Key=f"landing/{name}", Body=content)

    def delete(self, name: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=f"landing/{name}")

    def listing(self, **keys: Any) -> Listing:
        config = read_source({"kind": "files", "path": self.root, **keys})
        return list_directory(config, self.storage)

    def paths(self, **keys: Any) -> list[str]:
        return [file.path for file in self.listing(**keys).files]

    def source(self, listings: Path, **keys: Any) -> FilesSource:
        config = read_source({"kind": "files", "path": self.root, **keys})
        return FilesSource(config, self.storage, str(listings))

    def asked(self, since: int = 0) -> list[tuple[str, str]]:
        """Give what was asked of the folder: a method, or `LIST`, and the name or prefix."""
        found = []
        for method, address in self.way.seen[since:]:
            place = urlsplit(address)
            prefix = parse_qs(place.query).get("prefix")
            name = prefix[0] if prefix else unquote(place.path).removeprefix(f"/{self.name}/")
            found.append(("LIST" if prefix else method, name))
        return [(method, name) for method, name in found if name.startswith("landing/")]

    def counts(self, since: int = 0) -> Counter[str]:
        return Counter(method for method, _ in self.asked(since))


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    usual = "versitygw" if GATEWAY.exists() else "moto"
    kind = getattr(request, "param", usual)
    with s3_server(kind, tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


every_store = pytest.mark.parametrize("server", ["moto", "versitygw"], indirect=True)
moto = pytest.mark.parametrize("server", ["moto"], indirect=True)


@pytest.fixture
def landing(server: S3Server) -> Iterator[Landing]:
    with way_to(server) as way:
        yield Landing(server, server.bucket().removeprefix("s3://"), way)


def rows(*ids: int) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"id": ids}), written)
    return written.getvalue()


def taken_in(source: FilesSource, after: Instant | None = None) -> tuple[Instant, list[Piece]]:
    """Look at a folder and plan what is new in it."""
    pin = source.timeline.pin(NOW, after=after)
    assert pin.head
    units = source.slicing.units(pin, InstantRange(after, pin.head))
    return pin.head, list(units.pieces)


@every_store
def test_objects_are_found_by_any_name_and_those_made_for_directories_are_none(
    landing: Landing,
) -> None:
    names = ["a b", "dt=1/50%25.x", "ü/größe=1+1&x?#", "same"]
    if landing.server.kind == "moto":
        # Where objects are files, no directory has the name of one.
        names.append("same/x")
    hidden = ["_hidden/x", "a/.y", "_SUCCESS"]
    for name in (*names, *hidden):
        landing.put(name)
    for name in ("", "empty/", "dt=1_$folder$", "zero"):
        landing.put(name, b"")
    landing.client.put_object(Bucket=landing.name, Key="landing-beside/x", Body=b"x")

    assert landing.paths() == sorted(names)
    for file in landing.listing().files:
        opened, found = landing.storage.open_with_details(f"{landing.root}/{file.path}")
        assert opened.read() == b"x"
        assert (file.size, file.tag) == (found.size, found.tag)


@moto
def test_key_with_an_empty_name_in_it_is_refused_or_skipped(landing: Landing) -> None:
    """Where objects are files, there is no such key."""
    landing.put("a")
    landing.put("b//c")

    with pytest.raises(SourceUnreachable, match="b//c"):
        landing.listing()

    listing = landing.listing(on_bad_path="skip")
    assert ([file.path for file in listing.files], listing.skipped) == (["a"], ("b//c",))


@moto
@pytest.mark.follows("ObjectNamedAsFolder")
def test_object_that_is_named_as_a_directory_and_has_bytes_is_refused_or_skipped(
    landing: Landing,
) -> None:
    """Where objects are files, there is no such object."""
    landing.put("a")
    for name in ("b/", "c/", "_hidden/d/"):
        landing.put(name, b"rows")
    landing.put("e/", b"")

    with pytest.raises(ObjectNamedAsFolder, match=r"'b/' ends with a slash and has 4 bytes"):
        landing.listing()

    listing = landing.listing(on_bad_path="skip")
    assert [file.path for file in listing.files] == ["a"]
    assert listing.skipped == ("b/", "c/")
    landing.put("", b"rows")
    assert landing.listing(on_bad_path="skip").skipped == ("b/", "c/", f"{landing.root}/")
    assert landing.storage.list_files(landing.root) == ["a"]
    for name in ("", "b/"):
        landing.delete(name)
    with pytest.raises(ObjectNamedAsFolder, match="'c/'"):
        landing.listing()
    landing.put("c")
    landing.delete("c/")
    assert landing.paths() == ["a", "c"]


def test_folder_without_an_object_is_not_found_and_one_made_for_it_is_empty(
    landing: Landing,
) -> None:
    with pytest.raises(FolderNotFound, match="no object there"):
        landing.listing()

    landing.put("", b"")
    assert landing.paths() == []
    landing.put("a")
    assert landing.paths() == ["a"]
    with pytest.raises(FolderNotFound, match="that is an object"):
        list_directory(read_source({"kind": "files", "path": f"{landing.root}/a"}), landing.storage)


def test_published_tables_below_are_not_read_as_one(landing: Landing) -> None:
    says = {"format": 1, "pipeline": "p", "partition": {}, "revision": 1}
    marker = json.dumps({**says, "files": [{"name": "a", "length": 1}]}).encode()
    for table in ("orders", "shops"):
        landing.put(f"{table}/dt=1/a")
        landing.put(f"{table}/dt=1/_SUCCESS", marker)
        landing.put(f"{table}/.tidegate.owner", b"{}")

    with pytest.raises(PublishedTablesBelow, match=r"below: .*/orders and 1 more\. Name"):
        landing.listing(require_marker=True)

    config = read_source({"kind": "files", "path": f"{landing.root}/shops", "require_marker": True})
    found = list_directory(config, landing.storage)
    assert [file.path for file in found.files] == ["dt=1/a"]


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ("landing/metadata/v1.metadata.json", "iceberg"),
        ("landing/data/metadata/version-hint.text", "iceberg"),
        ("landing/.hoodie/hoodie.properties", "hudi"),
        ("landing/a/.hoodie_partition_metadata", "hudi"),
        (".hoodie/hoodie.properties", "hudi"),
    ],
)
def test_folder_in_a_table_or_with_one_in_it_is_refused(
    landing: Landing, mark: str, kind: str
) -> None:
    landing.put("a/x")
    landing.put("data/y")
    landing.client.put_object(Bucket=landing.name, Key=mark, Body=b"x")

    with pytest.raises(FolderOfTable, match=f"of kind {kind} in s3://.* files are mounted"):
        landing.listing()


def test_what_may_not_be_looked_at_above_the_folder_is_no_table(landing: Landing) -> None:
    landing.put("a")
    landing.way.fault = lambda _method, path, _number: None if "landing%2F" in path else "denied"

    assert landing.paths() == ["a"]
    landing.way.fault = lambda *_: "denied"
    with pytest.raises(StoreDenied):
        landing.listing()


def test_look_costs_one_listing_and_one_request_per_new_file(
    landing: Landing, tmp_path: Path
) -> None:
    for number in range(20):
        landing.put(f"dt={number}/a", rows(number))
    source = landing.source(tmp_path)

    head, pieces = taken_in(source)
    first = landing.counts()
    landing.put("dt=3/b", rows(100))
    before = len(landing.way.seen)
    _, (piece,) = taken_in(landing.source(tmp_path), head)

    assert len(pieces) == 20
    assert first == {"LIST": 1, "GET": 20}
    assert piece.path == f"{landing.root}/dt=3/b"
    assert landing.counts(before) == {"LIST": 1, "GET": 1}
    # An object with its tag need not be read again to know that it is the same.
    before = len(landing.way.seen)
    landing.source(tmp_path).timeline.pin(NOW + timedelta(hours=1))
    assert landing.counts(before) == {"LIST": 1}


def test_thousand_objects_are_listed_by_one_request(landing: Landing) -> None:
    if landing.server.folder is None:
        pytest.skip("only where objects are files they are made fast")
    folder = landing.server.folder / landing.name / "landing"
    folder.mkdir()
    for number in range(1001):
        (folder / f"{number:04d}").write_bytes(b"x")

    assert landing.paths() == [f"{number:04d}" for number in range(1001)]
    assert landing.counts() == {"LIST": 2}


def test_rows_are_read_by_the_footer_and_a_range_of_each_row_group(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    columns = pa.table({name: range(LARGE) for name in "abcd"})
    pq.write_table(columns, written, row_group_size=LARGE // 2, use_dictionary=False)
    assert len(written.getvalue()) > 40 * (64 << 10)
    landing.put("a", written.getvalue())
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    s3 = {"endpoint": f"http://127.0.0.1:{landing.way.port}", "region": REGION}
    s3 |= {"access_key": KEY, "secret_key": "${env:LAKE_SECRET}"}

    source = {"kind": "files", "path": landing.root}
    found = read_changes(source, columns=["b", "c"], s3=s3).read_all()

    assert found.equals(columns.select(["b", "c"]))
    # The look, the footer once more, and of each row group the columns that are side by side.
    assert landing.counts() == {"LIST": 1, "GET": 1 + 1 + 2}


@pytest.mark.parametrize("form", ["csv", "json", "orc"])
def test_files_of_other_formats_are_read(
    landing: Landing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    written = io.BytesIO()
    expected = pa.table({"id": [1, 2], "note": ["a", "b"]})
    if form == "csv":
        pacsv.write_csv(expected, written)
    elif form == "orc":
        paorc.write_table(expected, written)
    else:
        written.write("".join(f"{json.dumps(row)}\n" for row in expected.to_pylist()).encode())
    landing.put(f"a.{form}", written.getvalue())
    source = landing.source(tmp_path, format=form)
    head, (piece,) = taken_in(source)

    with open_slice(source._folder.files, piece.slice, source._folder.format) as file:
        found = [batch for _, batch in file.batches(["id", "note"], 0, 2)]

    assert pa.Table.from_batches(found).to_pylist() == expected.to_pylist()
    # Written again with the same bytes it is the same file.
    landing.put(f"a.{form}", written.getvalue())
    pin = landing.source(tmp_path, format=form).timeline.pin(NOW, after=head)
    assert source.timeline.instants(pin, head) == ()


def test_object_that_was_written_again_with_its_length_is_told_by_a_look_and_a_task(
    landing: Landing, tmp_path: Path
) -> None:
    landing.put("a", rows(1))
    landing.put("b", rows(2))
    assert len(rows(1)) == len(rows(3))
    source = landing.source(tmp_path)
    head, pieces = taken_in(source)
    landing.put("a", rows(3))

    later = landing.source(tmp_path)
    pin = later.timeline.pin(NOW, after=head)
    with pytest.raises(SourceRewritten, match="landing: a was taken in"):
        later.timeline.instants(pin, head)
    with pytest.raises(ListedFileChanged):
        open_slice(source._folder.files, pieces[0].slice)
    landing.delete("b")
    with pytest.raises(ListedFileGone):
        open_slice(source._folder.files, pieces[1].slice)

    landing.put("a", rows(1))
    landing.put("b", rows(2))
    pin = landing.source(tmp_path).timeline.pin(NOW, after=head)
    assert later.timeline.instants(pin, head) == ()
    for piece in pieces:
        with open_slice(source._folder.files, piece.slice) as file:
            assert file.rows == 1


def test_object_that_is_deleted_between_the_listing_and_its_footer_is_told_as_on_a_disk(
    landing: Landing, tmp_path: Path
) -> None:
    landing.put("a", rows(1))
    landing.put("b", rows(2))

    def gone(method: str, path: str, _number: int) -> None:
        if method == "GET" and path.endswith("landing/b"):
            landing.way.fault = lambda *_: None
            landing.delete("b")

    landing.way.fault = gone
    with pytest.raises(ListedFileGone, match="landing/b"):
        taken_in(landing.source(tmp_path))

    _, (piece,) = taken_in(landing.source(tmp_path))
    assert piece.path == f"{landing.root}/a"


def marker(revision: int, **lengths: int) -> bytes:
    files = [{"name": name, "length": length} for name, length in lengths.items()]
    said = {"format": 1, "pipeline": "p", "partition": {}, "revision": revision, "files": files}
    return json.dumps(said).encode()


def test_commit_between_a_listing_and_its_marker_is_taken_whole_or_waited_for(
    landing: Landing,
) -> None:
    landing.put("a", b"1")
    landing.put("_SUCCESS", marker(1, a=1))

    def while_reading(commit: Any) -> None:
        def change(method: str, path: str, _number: int) -> None:
            if method == "GET" and path.endswith("landing/_SUCCESS"):
                landing.way.fault = lambda *_: None
                commit()

        landing.way.fault = change

    def whole() -> None:
        landing.put("b", b"22")
        landing.put("_SUCCESS", marker(2, a=1, b=2))

    def half() -> None:
        landing.delete("_SUCCESS")
        landing.delete("a")

    while_reading(whole)
    assert landing.paths(require_marker=True) == ["a", "b"]
    while_reading(half)
    listing = landing.listing(require_marker=True)
    assert (listing.files, listing.unmarked) == ((), {""})
    landing.put("_SUCCESS", marker(3, b=2, c=5))
    with pytest.raises(MarkedFileWrong, match=r"c: .*5 bytes"):
        landing.listing(require_marker=True)


def test_revisions_are_read_by_the_marker_of_the_newest(landing: Landing, tmp_path: Path) -> None:
    for revision in (1, 2):
        place = f"dt=1/_revisions/{revision:06d}-ab"
        landing.put(f"{place}/a", rows(1))
        landing.put(f"{place}/_SUCCESS", marker(revision, a=len(rows(1))))
    with pytest.raises(RevisionsUnmarked):
        landing.listing()

    before = len(landing.way.seen)
    source = landing.source(tmp_path, require_marker=True)
    _, (piece,) = taken_in(source)

    read = [name for method, name in landing.asked(before) if "_SUCCESS" in name]
    assert read == ["landing/dt=1/_revisions/000002-ab/_SUCCESS"]
    assert piece.path == f"{landing.root}/dt=1/a"
    # The file stands in the directory of each revision that has it.
    landing.delete("dt=1/_revisions/000002-ab/a")
    with open_slice(source._folder.files, piece.slice) as file:
        assert file.rows == 1
