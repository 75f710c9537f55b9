"""Files that commands take are bounded, and what is wrong with one is said by its name."""

import gzip

import pytest
from django.core.management import CommandError, call_command

from gpuplatform.common import recorded_files
from gpuplatform.common.recorded_files import read_bytes, read_text, write_text


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


@pytest.mark.parametrize("packed", [False, True])
def test_a_text_of_another_encoding_is_named_with_its_line(tmp_path, packed):
    file, content = tmp_path / "trace.csv", "name,gpus\nniño,1\n"
    for encoding in ("utf-8", "latin-1"):
        said = content.encode(encoding)
        file.write_bytes(gzip.compress(said) if packed else said)
        if encoding == "utf-8":
            assert read_text(file) == content
    with pytest.raises(CommandError, match=r"trace\.csv: line 2: not UTF-8 text"):
        read_text(file)


@pytest.mark.parametrize("bad", ["trace", "cluster"])
def test_a_replay_names_which_of_its_files_is_no_text(tmp_path, bad):
    files = {name: tmp_path / f"{name}.json" for name in ("trace", "cluster")}
    cluster = '{"nodes": 1, "gpus_per_node": 4, "nominal_gpus": {"a": 4}}'
    files["cluster"].write_text(cluster, encoding="utf-8")
    files["trace"].write_text("[]", encoding="utf-8")
    files[bad].write_bytes(b'{"name": "ni\xf1o"}')
    with pytest.raises(CommandError, match=rf"{bad}\.json: line 1: not UTF-8 text"):
        call_command("replay", str(files["trace"]), "--cluster", str(files["cluster"]))
