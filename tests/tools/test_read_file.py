"""read_file's text: numbers, ranges, bounds, other formats."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from tarmac.tools.read_file import BINARY, MOST_LINES, RequestedFile, as_xml, read_file, read_files


async def test_several_files_and_ranges_and_one_that_is_not_there(tmp_path: Path) -> None:
    """S10: one bad file does not fail the others."""
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 13)))
    (tmp_path / "b.bin").write_bytes(b"\x00\x01")
    (tmp_path / "empty").touch()
    files = await read_files(
        [
            RequestedFile(tmp_path / "a.txt", ((9, 10), (12, 99), (40, 50)), "a.txt"),
            RequestedFile(tmp_path / "gone", shown_as="gone"),
            RequestedFile(tmp_path / "b.bin", shown_as="b.bin"),
            RequestedFile(tmp_path / "empty", shown_as="empty"),
        ]
    )
    assert as_xml(files) == (
        '<files>\n<file>\n<path>a.txt</path>\n<content lines="9-10">\n 9 | line 9\n10 | line 10\n</content>\n'
        '<content lines="12-12">\n12 | line 12\n</content>\n<notice>no lines 40-12: the file has 12</notice>\n</file>\n'
        "<file>\n<path>gone</path>\n<error>File not found</error>\n</file>\n"
        f"<file>\n<path>b.bin</path>\n<notice>{BINARY}</notice>\n</file>\n"
        "<file>\n<path>empty</path>\n<notice>File is empty</notice>\n</file>\n</files>"
    )
    assert files[0].data == (tmp_path / "a.txt").read_bytes()


async def test_a_long_file_is_cut_and_says_how_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\n" * 5000)
    file = await read_file(RequestedFile(tmp_path / "f"))
    assert file.parts[0][:2] == (1, MOST_LINES)
    assert file.notice == "showing lines 1-2000 of 5000; read on with the range 2001-5000"
    (tmp_path / "f").write_text("y" * 9000)
    assert "7,000 more characters" in (await read_file(RequestedFile(tmp_path / "f"))).parts[0][2]


@pytest.mark.parametrize(
    ("data", "shown", "notice"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "1 | a\n2 | b", ""),
        (b"a\r\nb\n", "1 | a\n2 | b", "mixed line endings"),
        (b"caf\xe9\n", "1 | café", "encoding cp1252"),
        ("é ".encode() + b"\xff\n", "1 | é \ufffd", "some bytes are not UTF-8, shown as \ufffd"),
    ],
)
async def test_text_is_shown_as_it_reads(tmp_path: Path, data: bytes, shown: str, notice: str) -> None:
    (tmp_path / "f").write_bytes(data)
    file = await read_file(RequestedFile(tmp_path / "f"))
    assert (file.parts[0][2], file.notice) == (shown, notice)


async def test_a_pipe_does_not_make_it_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a file" in (await read_file(RequestedFile(tmp_path / "pipe"))).error


async def test_the_text_of_a_docx(tmp_path: Path) -> None:
    """S10: DOCX text."""
    body = (
        "<w:p><w:r><w:t>Hello</w:t><w:tab/><w:t>World &amp; all</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>2</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    (tmp_path / "a.docx").write_bytes(packed.getvalue())
    file = await read_file(RequestedFile(tmp_path / "a.docx"))
    assert (file.parts[0][2], file.notice) == ("1 | Hello\tWorld & all\n2 | 1\t2", "text extracted from a DOCX")
    (tmp_path / "bad.docx").write_bytes(packed.getvalue()[:60])
    assert "can't be read as a DOCX" in (await read_file(RequestedFile(tmp_path / "bad.docx"))).error


def pdf(text: str) -> bytes:
    """The smallest PDF with a line of text."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data = b"%PDF-1.4\n"
    offsets = []
    for number, each in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(data)
    return data + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        table,
        start,
    )


async def test_the_text_of_a_pdf(tmp_path: Path) -> None:
    """S10: PDF text, and a broken one is an error like any other."""
    (tmp_path / "a.pdf").write_bytes(pdf("Hello from a page"))
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    good, bad = await read_files([RequestedFile(tmp_path / "a.pdf"), RequestedFile(tmp_path / "bad.pdf")])
    assert good.parts[0][2] == "1 | --- page 1 ---\n2 | Hello from a page"
    assert "can't be read as a PDF" in bad.error
