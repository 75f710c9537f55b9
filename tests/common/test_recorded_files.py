"""Files that commands take are bounded, and what is wrong with one is said by its name."""

import gzip

import pytest
from django.core.management import CommandError

from gpuplatform.common import recorded_files
from gpuplatform.common.recorded_files import read_bytes, write_text


def test_plain_and_gzip_read_the_same(tmp_path):
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_bytes(b"[1]")
    packed.write_bytes(gzip.compress(b"[1]"))
    assert read_bytes(plain) == read_bytes(packed) == b"[1]"


@pytest.mark.parametrize("packed", [False, True])
def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(recorded_files, "MOST_BYTES", 1000)
    file, content = tmp_path / "bomb", b"0" * 1001
    file.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(CommandError, match=r"bomb: more than 1000 bytes"):
        read_bytes(file)


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b", gzip.compress(b"[1]", mtime=0)[:-4], b"\x1f\x8b\x08" + b"\x00" * 30],
    ids=["only its first bytes", "without its end", "no stream behind its head"],
)
def test_a_broken_gzip_is_named(tmp_path, content):
    file = tmp_path / "broken.gz"
    file.write_bytes(content)
    with pytest.raises(CommandError, match=r"broken\.gz: "):
        read_bytes(file)


def test_a_missing_file_and_a_place_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere"):
        read_bytes(tmp_path / "nowhere")
    with pytest.raises(CommandError, match=r"no/out"):
        write_text(tmp_path / "no" / "out", "x")
