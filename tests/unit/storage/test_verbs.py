"""The verbs of every store: the same promises on a disk and in stores that speak S3's protocol."""

from __future__ import annotations

import hashlib
import pickle
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from s3_servers import s3_server
from tidegate.errors import FileExistsAlready, PartitionBusy, SourceFileGone
from tidegate.storage import Stores
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_servers import S3Server


@dataclass(frozen=True)
class Place:
    """A store with an empty directory."""

    storage: Stores
    root: str
    server: S3Server | None = field(default=None, compare=False)


@pytest.fixture(scope="module", params=["disk", "moto", "versitygw"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server | None]:
    if request.param == "disk":
        yield None
        return
    with s3_server(request.param, tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


@pytest.fixture
def place(store: S3Server | None, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if store is None:
        return Place(Stores(), str(tmp_path_factory.mktemp("disk")))
    return Place(Stores(objects=S3Storage(S3Calls(store.options))), f"{store.bucket()}/a", store)


def test_first_writer_wins(place: Place) -> None:
    path = f"{place.root}/x/plan.json"

    assert place.storage.write_once(path, b"one")
    assert not place.storage.write_once(path, [b"t", b"wo"])

    assert place.storage.read_bytes(path) == b"one"


def test_of_writers_at_once_one_wins(place: Place) -> None:
    path, won = f"{place.root}/plan.json", []
    start = threading.Barrier(6)

    def write(number: int) -> None:
        start.wait()
        if place.storage.write_once(path, str(number).encode()):
            won.append(number)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    assert [str(number).encode() for number in won] == [place.storage.read_bytes(path)]


def test_what_is_not_there_is_absent(place: Place) -> None:
    storage, path = place.storage, f"{place.root}/nothing"

    assert not storage.exists(path)
    assert storage.length(path) is None
    assert storage.modified(path) is None
    assert storage.version(path) is None
    assert storage.list_files(path) == []
    assert storage.list_names(path) == []
    storage.delete(path)
    storage.delete_tree(path)
    for read in (storage.read_bytes, storage.sha256):
        with pytest.raises(SourceFileGone):
            read(path)
    with pytest.raises(FileNotFoundError):
        storage.open_input(path)
    with pytest.raises(SourceFileGone):
        storage.copy_new(path, f"{place.root}/copy")


def test_names_and_files_are_those_below(place: Place) -> None:
    storage, root = place.storage, place.root
    for name in ("t/a", "t/b/c=1 2/d", "t/b/e%2F", "t-beside", "tt/x"):
        storage.write_once(f"{root}/{name}", name.encode())

    assert storage.list_names(f"{root}/t") == ["a", "b"]
    assert storage.list_files(f"{root}/t") == ["a", "b/c=1 2/d", "b/e%2F"]
    assert storage.exists(f"{root}/t")
    assert storage.exists(f"{root}/t/b/c=1 2")
    assert storage.length(f"{root}/t/b") is None or place.server is None
    assert storage.lengths([f"{root}/t/a", f"{root}/t/no", f"{root}/tt/x"]) == {
        f"{root}/t/a": 3,
        f"{root}/t/no": None,
        f"{root}/tt/x": 4,
    }
    assert storage.read_bytes(f"{root}/t/b/c=1 2/d") == b"t/b/c=1 2/d"

    storage.delete_tree(f"{root}/t")
    assert storage.list_files(root) == ["t-beside", "tt/x"]
    storage.delete_all([f"{root}/t-beside", f"{root}/tt/x", f"{root}/none"])
    assert storage.list_files(root) == []


@pytest.mark.parametrize("size", [0, 10, (8 << 20) + 3, 20 << 20])
def test_what_is_written_in_pieces_is_read_as_a_whole(place: Place, size: int) -> None:
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    path = f"{place.root}/part"
    place.storage.make_dirs(place.root)

    with place.storage.open_new(path) as file:
        for at in range(0, size, 3 << 20):
            file.write(content[at : at + (3 << 20)])
        assert file.tell() == size

    assert place.storage.length(path) == size
    assert place.storage.sha256(path) == hashlib.sha256(content).hexdigest()
    with place.storage.open_input(path) as opened:
        assert opened.size() == size
        assert opened.read_at(100, max(0, size - 100)) == content[max(0, size - 100) :][:100]
        assert opened.read_at(7, size // 2) == content[size // 2 :][:7]
        opened.seek(0)
        assert opened.read() == content


def test_new_file_of_a_taken_name_is_refused(place: Place) -> None:
    path = f"{place.root}/part"
    place.storage.write_once(path, b"there")

    with pytest.raises(FileExistsAlready), place.storage.open_new(path) as file:
        file.write(b"other")

    assert place.storage.read_bytes(path) == b"there"


@pytest.mark.parametrize("verb", ["copy_new", "link_new"])
def test_second_name_has_the_same_bytes_and_never_replaces(place: Place, verb: str) -> None:
    storage, root = place.storage, place.root
    storage.write_once(f"{root}/one", b"one")
    storage.write_once(f"{root}/taken", b"taken")
    give = getattr(storage, verb)

    give(f"{root}/one", f"{root}/two")
    with pytest.raises(FileExistsAlready):
        give(f"{root}/one", f"{root}/taken")
    storage.delete(f"{root}/one")

    assert storage.read_bytes(f"{root}/two") == b"one"
    assert storage.read_bytes(f"{root}/taken") == b"taken"


def test_replace_puts_the_new_one_in_the_place_of_the_old(place: Place) -> None:
    storage, root = place.storage, place.root
    storage.write_once(f"{root}/old", b"old")
    before = storage.version(f"{root}/old")
    storage.write_once(f"{root}/new", b"new")

    storage.replace(f"{root}/new", f"{root}/old")

    assert storage.read_bytes(f"{root}/old") == b"new"
    assert storage.version(f"{root}/old") != before
    assert not storage.exists(f"{root}/new")
    with pytest.raises(SourceFileGone):
        storage.replace(f"{root}/new", f"{root}/old")


def test_lock_is_held_by_one_and_given_back(place: Place) -> None:
    path = f"{place.root}/locks/dt=1.lock"

    with (
        place.storage.lock(path, "first"),
        pytest.raises(PartitionBusy, match="first"),
        place.storage.lock(path, "second"),
    ):
        pass
    with place.storage.lock(path, "third"):
        pass


def test_copies_between_a_disk_and_a_store_have_the_same_bytes(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    disk = tmp_path_factory.mktemp("other")
    (disk / "one").write_bytes(b"1" * 100)

    place.storage.make_dirs(place.root)
    place.storage.copy_new(str(disk / "one"), f"{place.root}/one")
    place.storage.copy_new(f"{place.root}/one", str(disk / "two"))

    assert (disk / "two").read_bytes() == b"1" * 100
    with pytest.raises(SourceFileGone):
        place.storage.copy_new(str(disk / "none"), f"{place.root}/none")


def test_storage_reaches_its_store_from_another_process(place: Place) -> None:
    place.storage.write_once(f"{place.root}/one", b"one")

    sent = pickle.loads(pickle.dumps(place.storage))

    assert sent.read_bytes(f"{place.root}/one") == b"one"


def test_parquet_is_read_with_ranges(place: Place) -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"id": range(100_000), "text": ["x" * 20] * 100_000})
    place.storage.make_dirs(place.root)
    with place.storage.open_new(f"{place.root}/rows.parquet") as file:
        pq.write_table(rows, file, row_group_size=10_000)

    with place.storage.open_input(f"{place.root}/rows.parquet") as opened:
        assert pq.read_table(opened, columns=["id"]).equals(rows.select(["id"]))


def test_details_of_files_are_those_of_each_by_a_listing_and_as_it_is_opened(place: Place) -> None:
    storage, root = place.storage, place.root
    names = ["a", "b/c=1 2/d", "b/e%2F", "b/ü+&?#", "b/zero"]
    for name in names:
        storage.write_once(f"{root}/t/{name}", b"" if name == "b/zero" else name.encode())
    if place.server is not None:
        bucket, _, key = root.removeprefix("s3://").partition("/")
        place.server.client().put_object(Bucket=bucket, Key=f"{key}/t/made/", Body=b"")

    found = storage.list_details(f"{root}/t")

    assert [each.path for each in found] == storage.list_files(f"{root}/t") == sorted(names)
    for each in found:
        path = f"{root}/t/{each.path}"
        file, opened = storage.open_with_details(path)
        file.close()
        one = storage.details(path)
        assert opened == one == each._replace(path=path, modified=one.modified)
        assert abs(each.modified - one.modified) < 10**9
        assert each.size == storage.length(path)
        assert bool(each.tag) == (place.server is not None)
    assert storage.details(f"{root}/none") is None
    assert storage.list_details(f"{root}/none") == []
    with pytest.raises(FileNotFoundError):
        storage.open_with_details(f"{root}/none")


def test_object_that_was_written_again_with_its_length_has_another_tag(place: Place) -> None:
    storage, path = place.storage, f"{place.root}/one"
    storage.write_once(path, b"one")
    before = storage.list_details(place.root)
    storage.delete(path)
    storage.write_once(path, b"two")

    after = storage.list_details(place.root)

    assert [each.size for each in before] == [each.size for each in after] == [3]
    assert before != after
    assert before[0].tag != after[0].tag or place.server is None
