"""The utilities of the package, run in the sandbox on real files, beside what their libraries give directly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from hatchling.builders.wheel import WheelBuilder
from markdown_it import MarkdownIt
from markdownify import markdownify
from PIL import Image, ImageOps

from reyn_jupyter.support.secret import Secret
from reyn_jupyter.workflows.utilities.capability_ranking import rank
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.program import missing_dependencies
from reyn_jupyter.workflows.utilities.registry import SHIPPED, UtilityFolder, UtilityRegistry, read_registry
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.workflows.utilities.utility_samples import run, shipped

REPOSITORY = Path(__file__).parents[3]
CSV = REPOSITORY / "notebooks" / "data" / "summer_time.csv"
NEEDS_FFMPEG = pytest.mark.skipif(
    shutil.which("ffmpeg") is None, reason="ffmpeg is not installed: make ffmpeg"
)


async def failure(*args: Any, **options: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        await run(*args, **options)
    assert caught.value.code == "tool_failed", caught.value
    return str(caught.value)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_wheel_carries_every_file_of_them() -> None:
    built = {each.distribution_path for each in WheelBuilder(str(REPOSITORY)).recurse_included_files()}
    needed = [path for path in SHIPPED.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len({path.parent for path in needed}) == 8
    assert {path.relative_to(REPOSITORY).as_posix() for path in needed} <= built


async def test_a_csv_file_becomes_the_parquet_that_duckdb_and_pandas_read_of_it(tmp_path: Path) -> None:
    shutil.copy(CSV, tmp_path / "a [1]*.csv")
    shutil.copy(CSV, tmp_path / "a 1x.csv")
    given = {"file": "a [1]*.csv", "into": "out", "compression": "snappy"}
    found = (await run(shipped("csv-to-parquet"), tmp_path, given)).output
    assert found["file"] == "out/a [1]*.parquet"
    made = duckdb.sql(
        "SELECT * FROM read_parquet(?)", params=[os.fspath(tmp_path / "out" / "a [[]1][*].parquet")]
    )
    direct = duckdb.read_csv(CSV)
    assert made.fetchall() == direct.fetchall() and made.columns == direct.columns
    assert found["columns"] == [
        {"name": name, "type": str(kind)} for name, kind in zip(direct.columns, direct.types, strict=True)
    ]
    assert (
        found["rows"] == len(pd.read_csv(CSV)) and found["bytes"] == (tmp_path / found["file"]).stat().st_size
    )
    assert names(tmp_path / "out") == ["a [1]*.parquet"]


async def test_types_are_found_in_all_rows_and_a_broken_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("a;b\n" + "1;2\n" * 50_000 + "x;3\n")
    found = (await run(shipped("csv-to-parquet"), tmp_path, {"file": "late.csv"})).output
    assert [each["type"] for each in found["columns"]] == ["VARCHAR", "BIGINT"] and found["rows"] == 50_001
    (tmp_path / "broken.csv").write_bytes(b"\x00\xff\xfe\x00" * 1000)
    assert "could not be converted" in await failure(
        shipped("csv-to-parquet"), tmp_path, {"file": "broken.csv"}
    )


async def test_thumbnails_are_what_pillow_makes_upright_and_without_the_camera_s_notes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "photos" / "trip"
    folder.mkdir(parents=True)
    picture = Image.effect_mandelbrot((400, 200), (-3, -2.5, 2, 2.5), 50).convert("RGB")
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a place that is nobody's business"  # turned to the right; a description
    picture.save(folder / "turned.jpg", exif=exif)
    picture.convert("RGBA").save(folder / "clear.png")
    picture.convert("P").save(tmp_path / "photos" / "turned.gif")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no picture")
    bomb = Image.new("1", (16_000, 12_000))
    bomb.save(folder / "bomb.png")
    found = (
        await run(shipped("image-thumbnails"), tmp_path, {"images": ["photos"], "size": 100, "type": "png"})
    ).output
    made = {each["source"]: each for each in found["thumbnails"]}
    assert sorted(made) == ["trip/clear.png", "trip/turned.jpg", "turned.gif"]
    assert {each["source"] for each in found["skipped"]} == {"trip/bomb.png", "trip/broken.jpg"}
    turned = made["trip/turned.jpg"]
    assert (turned["width"], turned["height"]) == (50, 100)
    with Image.open(tmp_path / turned["file"]) as small, Image.open(folder / "turned.jpg") as source:
        source.draft("RGB", (100, 100))
        direct = ImageOps.exif_transpose(source)
        direct.thumbnail((100, 100))
        assert small.tobytes() == direct.tobytes() and not small.getexif()
    assert len({each["file"] for each in made.values()}) == 3  # two are called turned
    assert "No image could be read" in await failure(
        shipped("image-thumbnails"), tmp_path, {"images": ["photos/trip/broken.jpg"]}
    )


async def test_a_page_becomes_the_markdown_that_markdownify_gives_without_its_scripts(tmp_path: Path) -> None:
    body = MarkdownIt().enable("table").render((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    head = "<head><title>A page</title><style>b {}</style></head>"
    page = f"<html>{head}<body><script>x = 1</script>{body}</body></html>"
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    found = (await run(shipped("html-to-markdown"), tmp_path, {"file": "page.html"})).output
    text = (tmp_path / found["file"]).read_text(encoding="utf-8")
    assert text == markdownify(body, heading_style="ATX", bullets="-").strip() + "\n"
    assert (found["title"], found["characters"]) == ("A page", len(text)) and "x = 1" not in text
    russian = (
        '<meta charset="windows-1251"><h1>Привет</h1><p>Есть <a href="https://example.org">ссылка</a>.</p>'
    )
    (tmp_path / "old.html").write_bytes(russian.encode("windows-1251"))
    found = (await run(shipped("html-to-markdown"), tmp_path, {"file": "old.html", "links": False})).output
    assert (tmp_path / found["file"]).read_text(encoding="utf-8") == "# Привет\n\nЕсть ссылка.\n"
    (tmp_path / "deep.html").write_text("<div>" * 3_000)
    assert "too deeply" in await failure(shipped("html-to-markdown"), tmp_path, {"file": "deep.html"})
    unknown = {"file": "page.html", "encoding": "no-such-code"}
    assert "characters" in (await run(shipped("html-to-markdown"), tmp_path, unknown)).output


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz", "tar"])
async def test_an_archive_becomes_the_folder_that_the_library_unpacks(ending: str, tmp_path: Path) -> None:
    source = REPOSITORY / "notebooks" / "data"
    kind = {"tar.gz": "gztar", "tar.xz": "xztar"}.get(ending, ending)
    shutil.make_archive(os.fspath(tmp_path / "data"), kind, source)
    found = (
        await run(shipped("folder-archive"), tmp_path, {"archive": f"data.{ending}", "into": "new"})
    ).output
    assert found["folder"] == "new/data"
    direct = tmp_path / "direct"
    shutil.unpack_archive(
        tmp_path / f"data.{ending}", direct, **({} if ending == "zip" else {"filter": "data"})
    )

    def content(folder: Path) -> dict[str, bytes | None]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in folder.rglob("*")
        }

    assert content(tmp_path / "new" / "data") == content(direct)
    files = [each for each in content(direct).values() if each is not None]
    assert (found["files"], found["bytes"]) == (len(files), sum(map(len, files)))
    again = await failure(shipped("folder-archive"), tmp_path, {"archive": f"data.{ending}", "into": "new"})
    assert "is there already" in again


def _tar(**fields: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        info = tarfile.TarInfo(fields.pop("name", "a"))
        for name, value in fields.items():
            setattr(info, name, value)
        with tarfile.open(path, "w:gz") as packed:
            packed.addfile(info, BytesIO(b""))

    return write


def _zip(*entries: tuple[str, bytes, int]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data, mode in entries:
                info = zipfile.ZipInfo(name)
                info.external_attr = mode << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(info, data)

    return write


def _cut_short(path: Path) -> None:
    with tarfile.open(path, "w:gz") as packed:
        info = tarfile.TarInfo("a")
        info.size = 1_000_000
        packed.addfile(info, BytesIO(os.urandom(info.size)))
    path.write_bytes(path.read_bytes()[:500_000])


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_zip(("ok.txt", b"x", 0), ("../../out.txt", b"x", 0)), "leads out of the folder"),
        (_zip(("/etc/out.txt", b"x", 0)), "leads out of the folder"),
        (_zip(("..\\out.txt", b"x", 0)), "leads out of the folder"),
        (_zip(("C:\\out.txt", b"x", 0)), "leads out of the folder"),
        (_zip(("link", b"/etc/passwd", 0o120777)), "is a link or a device"),
        (_zip(("bomb", b"\0" * (64 << 20), 0)), "unpacks to more than"),
        (_zip(*((f"{number}", b"", 0) for number in range(101))), "more than 100 files"),
        (_zip(("a", b"x", 0), ("a/b", b"x", 0)), "twice, or once as a file"),
        (_tar(name="../out.txt"), "leads out of the folder"),
        (_tar(type=tarfile.SYMTYPE, linkname="/etc"), "is a link or a device"),
        (_tar(type=tarfile.LNKTYPE, linkname="/etc/passwd"), "is a link or a device"),
        (_tar(type=tarfile.CHRTYPE, devmajor=1, devminor=3), "is a link or a device"),
        (_cut_short, "is broken"),
        (lambda path: path.write_bytes(b"no archive at all"), "is broken"),
        (lambda path: path.write_bytes(b"PK\x05\x06" + b"\xff" * 18), "is broken"),
    ],
)  # fmt: skip
async def test_an_archive_that_is_an_attack_leaves_nothing(
    write: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    write(tmp_path / "bad.archive")
    given = {"archive": "bad.archive", "into": "new", "max_bytes": 1 << 20, "max_files": 100}
    assert said in await failure(shipped("folder-archive"), tmp_path, given)
    assert names(tmp_path / "new") == [] and not list(tmp_path.rglob("out.txt"))


def _probe(file: Path) -> dict[str, Any]:
    entries = "stream=codec_name,width,height,nb_read_frames,pix_fmt"
    said = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-show_entries", entries, "-of", "json", file],
        capture_output=True, check=True,
    )  # fmt: skip
    return {each["codec_name"]: each for each in json.loads(said.stdout)["streams"]}


@NEEDS_FFMPEG
async def test_webm_videos_become_mp4_with_all_their_frames(tmp_path: Path) -> None:
    (tmp_path / "input_data").mkdir()
    picture, sound = "testsrc=size=121x91:rate=10:duration=1", "sine=duration=1"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
    coded = ["-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libopus"]
    subprocess.run([*command, *coded, tmp_path / "input_data" / "a.webm"], check=True)
    for name in ("b", "-i"):
        shutil.copy(tmp_path / "input_data" / "a.webm", tmp_path / "input_data" / f"{name}.webm")
    (tmp_path / "input_data" / "notes.txt").write_text("no video")
    heard: list[bytes] = []
    every = await run(
        shipped("webm-to-mp4-converter"), tmp_path, {"mode": "all", "folder": "input_data", "into": "out"},
        on_stderr=lambda stream, piece: heard.append(piece),
    )  # fmt: skip
    assert every.output == {"files": ["out/-i.mp4", "out/a.mp4", "out/b.mp4"]}
    assert b"1 of 3: -i.webm" in b"".join(heard)
    streams = _probe(tmp_path / "out" / "a.mp4")
    assert set(streams) == {"h264", "aac"}
    assert (streams["h264"]["width"], streams["h264"]["height"], streams["h264"]["nb_read_frames"]) == (
        120,
        90,
        "10",
    )
    selected = await run(
        shipped("webm-to-mp4-converter"),
        tmp_path,
        {"mode": "selected", "files": ["input_data/b.webm"]},
        step="step-2",
    )
    assert selected.output == {"files": ["state/runs/1/step-2/b.mp4"]}
    (tmp_path / "input_data" / "broken.webm").write_bytes(b"\x1a\x45\xdf\xa3 no video")
    broken = {"mode": "selected", "files": ["input_data/broken.webm"], "into": "out"}
    assert "could not convert broken.webm" in await failure(
        shipped("webm-to-mp4-converter"), tmp_path, broken
    )
    assert names(tmp_path / "out") == ["-i.mp4", "a.mp4", "b.mp4"]


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """Serve on loopback as long as the block runs, and give the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815 - as the class calls them

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def respond(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


class Drive:
    """Speaks the upload API of Google Drive, as its reference describes it."""

    def __init__(self) -> None:
        self.files: list[tuple[dict[str, Any], bytes]] = []
        self._begun: dict[str, Any] = {}

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.headers["Authorization"] != "Bearer a-token-of-the-person":
            said = {"error": {"code": 401, "message": "Invalid Credentials"}}
            return respond(handler, 401, json.dumps(said).encode())
        assert handler.path.startswith("/upload/drive/v3/files?uploadType=")
        if "uploadType=multipart" in handler.path:
            whole = message_from_bytes(
                f"Content-Type: {handler.headers['Content-Type']}\r\n\r\n".encode() + body
            )
            assert whole.get_content_type() == "multipart/related"
            about, content = (part.get_payload(decode=True) for part in whole.get_payload())  # type: ignore[union-attr]
            return self._keep(handler, json.loads(about), content)  # type: ignore[arg-type]
        if handler.command == "POST":
            self._begun = json.loads(body)
            place = f"http://{handler.headers['Host']}/upload/drive/v3/files?uploadType=resumable&upload_id=1"
            return respond(handler, 200, b"", Location=place)
        return self._keep(handler, self._begun, body)

    def _keep(self, handler: BaseHTTPRequestHandler, about: dict[str, Any], content: bytes) -> None:
        self.files.append((about, content))
        made = {"id": f"file-{len(self.files)}", "name": about["name"], "size": str(len(content))}
        respond(
            handler, 200, json.dumps({**made, "webViewLink": "https://drive.google.com/file/d/1"}).encode()
        )


async def test_a_file_is_uploaded_to_drive_by_its_api_with_the_secret_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_bytes(b"a,b\r\n--x\r\n")
    (tmp_path / "large.mp4").write_bytes(os.urandom(6_000_000))
    token = {"GOOGLE_DRIVE_TOKEN": Secret("GOOGLE_DRIVE_TOKEN", "a-token-of-the-person")}
    drive, folder = Drive(), "https://drive.google.com/drive/u/0/folders/1AbC-d_E?usp=sharing"
    with serving(drive.answer) as address:
        needs = [("host", address.removeprefix("http://")), ("secret", "GOOGLE_DRIVE_TOKEN")]
        utility = shipped("drive-uploader", dependencies=needs, args=[address])
        small = await run(utility, tmp_path, {"file_path": "small.csv", "folder_url": folder}, secrets=token)
        large = await run(utility, tmp_path, {"file_path": "large.mp4", "name": "talk.mp4"}, secrets=token)
        wrong = {"GOOGLE_DRIVE_TOKEN": Secret("GOOGLE_DRIVE_TOKEN", "another-token")}
        refused = await failure(utility, tmp_path, {"file_path": "small.csv"}, secrets=wrong)
    assert small.output == {
        "file_id": "file-1", "name": "small.csv", "bytes": 10, "link": "https://drive.google.com/file/d/1",
    }  # fmt: skip
    assert drive.files[0] == (
        {"name": "small.csv", "mimeType": "text/csv", "parents": ["1AbC-d_E"]},
        b"a,b\r\n--x\r\n",
    )
    assert drive.files[1] == (
        {"name": "talk.mp4", "mimeType": "video/mp4"},
        (tmp_path / "large.mp4").read_bytes(),
    )
    assert large.output["file_id"] == "file-2" and len(drive.files) == 2
    assert "refused (401): Invalid Credentials" in refused and "another-token" not in refused


async def test_a_video_is_downloaded_by_yt_dlp(tmp_path: Path) -> None:
    video = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + os.urandom(100_000)
    with serving(lambda handler, body: respond(handler, 200, video, Content_Type="video/mp4")) as address:
        needs = [("host", address.removeprefix("http://")), ("command", "yt-dlp")]
        utility = shipped("youtube-downloader", dependencies=needs)
        found = await run(utility, tmp_path, {"url": f"{address}/a%20talk.mp4", "into": "videos"})
        other = await failure(shipped("youtube-downloader"), tmp_path, {"url": f"{address}/b.mp4"})
    assert found.output["bytes"] == len(video) and found.output["file_path"].startswith("videos/a_talk")
    assert (tmp_path / found.output["file_path"]).read_bytes() == video
    assert "yt-dlp ended with exit code 1" in other and "127.0.0.1" in other  # the host that was refused
    assert "begin with https" in await failure(utility, tmp_path, {"url": "--exec=id"})


TEXT = {"type": "string", "minLength": 1}
VIDEOS = {"type": "array", "items": TEXT, "minItems": 1}


def of_the_package() -> UtilityRegistry:
    return read_registry([UtilityFolder(SHIPPED, "package")], is_trusted=lambda name, digest: False)


@pytest.mark.parametrize(
    ("capability", "sent", "needed"),
    [
        ("youtube.download", {"url": TEXT}, {"file_path": {"type": "string"}}),
        ("drive.upload", {"file_path": TEXT, "folder_url": TEXT}, {}),
        (
            "video.convert",
            {"mode": {"const": "all"}, "folder": TEXT},
            {"files": {"items": {"type": "string"}}},
        ),
        (
            "video.convert",
            {"mode": {"const": "selected"}, "files": VIDEOS},
            {},
        ),
        ("table.to-parquet", {"file": TEXT}, {"file": {"type": "string"}, "rows": {"type": "integer"}}),
    ],
)
def test_they_serve_what_requests_send_and_need(
    capability: str, sent: dict[str, Any], needed: dict[str, Any]
) -> None:
    contract = Contract(
        {"type": "object", "properties": sent, "required": list(sent), "additionalProperties": False},
        {"type": "object", "properties": needed, "required": list(needed)},
    )
    registry = of_the_package()
    assert registry.problems == () and len(registry.utilities) == 8
    ranking = rank(registry, capability, contract)
    assert ranking.chosen is not None, [row.why for row in ranking.rows]
    assert capability in ranking.chosen.manifest.capabilities


def test_a_program_that_is_not_there_is_told_and_its_utility_not_chosen() -> None:
    assert [each.name for each in missing_dependencies(shipped("tg-scraper"))] == ["tg-scraper"]
    ranking = rank(of_the_package(), "telegram.scrape")
    assert ranking.chosen is None and ranking.rows[0].why == "tg-scraper is not installed"
