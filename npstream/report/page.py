"""One self-contained HTML page: headings, paragraphs, tables and inline SVG figures.

Pure string building. Everything that comes in as text is escaped; figures are
SVG elements as `npstream.report.figure.svg` makes them and go in as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of ready-made text under a header; columns after the first are set right-aligned."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """One heading and what comes under it, in this order: text, tables, figures."""

    heading: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[str] = field(default=(), repr=False)


def page(title: str, sections: Sequence[PageSection]) -> str:
    """The whole document; needs nothing from the network and follows the reader's light or dark setting."""
    body = "\n".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same table for a terminal: first column left, the others right, two blanks between."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[c]) for row in cells) for c in range(len(header))]
    lines = ["  ".join(_pad(cell, widths[c], c) for c, cell in enumerate(row)).rstrip() for row in cells]
    return "\n".join([lines[0], "-" * len(max(lines, key=len)), *lines[1:]])


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _section(section: PageSection) -> str:
    parts = [f"<section><h2>{escape(section.heading)}</h2>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.text]
    parts += [_table(table) for table in section.tables]
    parts += [f"<figure>{figure}</figure>" for figure in section.figures]
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'


_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;"
    "padding:0 1rem;color:#222;background:#fff}figure{margin:1rem 0;display:inline-block;width:49%}"
    "figure svg{width:100%;height:auto}figure:only-of-type{width:75%}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.5rem 0}"
    "th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #ddd}th{vertical-align:bottom}"
    "td{white-space:nowrap}th:first-child,td:first-child"
    "{text-align:left}caption{text-align:left;font-weight:600;padding:.3rem 0}"
    "@media screen and (prefers-color-scheme:dark){body{color:#ddd;background:#16181d}th,td{border-color:#33363d}}"
    "@media screen and (max-width:56rem){figure,figure:only-of-type{width:100%;overflow-x:auto}"
    "figure svg{min-width:30rem}}"
    "@page{size:A4;margin:14mm}@media print{:root{color-scheme:light}"
    "body{font-size:10pt;max-width:none;margin:0;padding:0}"
    "h1{font-size:16pt}h2{font-size:13pt;break-after:avoid}section+section{break-before:page}.wide{overflow:visible}"
    "table{font-size:7pt;margin:2mm 0 4mm}td:first-child"
    "{white-space:normal}th,td{padding:.5mm 1.2mm}thead{display:table-header-group}tr,figure,p{break-inside:avoid}"
    "figure{margin:1mm 0}}"
)
