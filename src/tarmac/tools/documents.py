"""Extract the text of PDF and DOCX files.

A PDF is parsed in a process of its own, because the parser is large C++ code and a file may be malicious.
"""

import asyncio
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tarmac.errors import FileUnavailable
from tarmac.paths import shown
from tarmac.tools.child_process import running

PATIENCE = 30.0
MOST_CHARACTERS = 2_000_000
_MOST_XML = 32 << 20
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PDF = """
import sys, pypdfium2
document = pypdfium2.PdfDocument(sys.argv[1])
left = int(sys.argv[2])
for number in range(len(document)):
    text = document[number].get_textpage().get_text_range().replace("\\r\\n", "\\n")[:left]
    left -= len(text)
    sys.stdout.buffer.write(f"--- page {number + 1} ---\\n{text}\\n".encode("utf-8", "replace"))
    if left <= 0:
        break
"""


async def pdf_text(path: Path, *, patience: float = PATIENCE) -> str:
    """The text of a PDF, page by page."""
    argv = [sys.executable, "-I", "-c", _PDF, str(path), str(MOST_CHARACTERS)]
    try:
        async with asyncio.timeout(patience), running(argv) as process:
            output, errors = await process.communicate()
    except TimeoutError:
        raise FileUnavailable(f"{shown(path)}: its text could not be read in {patience:g} s") from None
    if process.returncode:
        last = (errors.decode(errors="replace").strip().splitlines() or ["the reader crashed"])[-1]
        raise FileUnavailable(f"{shown(path)} can't be read as a PDF: {last[:200]}")
    return output.decode("utf-8", "replace")


def docx_text(data: bytes) -> str:
    """The paragraphs of a DOCX, one per line. Cells of a table are separated by tabs."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("word/document.xml") as file:
            xml = file.read(_MOST_XML + 1)
        if len(xml) > _MOST_XML or b"<!DOCTYPE" in xml[:4096]:
            raise FileUnavailable("the document is too large, or not what Word writes")
        root = ElementTree.fromstring(xml)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, NotImplementedError, RuntimeError, EOFError) as error:
        raise FileUnavailable(f"it can't be read as a DOCX: {error}") from None
    return "".join(f"{line}\n" for line in _paragraphs(root))


def _paragraphs(node: ElementTree.Element) -> Iterator[str]:
    for child in node:
        if child.tag == f"{_W}p":
            yield "".join(_runs(child))
        elif child.tag == f"{_W}tr":
            yield "\t".join(" ".join(_paragraphs(cell)) for cell in child.iter(f"{_W}tc"))
        else:
            yield from _paragraphs(child)


def _runs(paragraph: ElementTree.Element) -> Iterator[str]:
    for node in paragraph.iter():
        if node.tag == f"{_W}t":
            yield node.text or ""
        elif node.tag == f"{_W}tab":
            yield "\t"
        elif node.tag in (f"{_W}br", f"{_W}cr"):
            yield "\n"
