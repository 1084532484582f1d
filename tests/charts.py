"""Charts for the reports: SVG documents made of text, without a plotting library.

Each brings its own background and follows the reader's light or dark mode, so that it is readable
wherever the Markdown around it is shown. Every figure stands beside its mark: a chart never says
less than the table it stands for.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from html import escape

WIDTH, LEFT, RIGHT, TOP = 760, 250, 110, 58
BAR, STRIP, GAP = 16, 34, 12
_PLOT = WIDTH - LEFT - RIGHT
_COLOURS = ("#4a7fd4", "#e08a2e", "#3fa27a", "#c2558f", "#8a6fd0", "#9a8b3c", "#5aa3b8", "#b85c4a")
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#24292f}.paper{fill:#fff}.axis{stroke:#d0d7de}
.title{font-size:15px;font-weight:600}.faint{fill:#57606a}.group{font-weight:600}
.box{fill:#4a7fd4;fill-opacity:.2}.dot{fill:#4a7fd4;fill-opacity:.75}.mid{stroke:#e08a2e}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.axis{stroke:#30363d}
.faint{fill:#9198a1}}
"""

Scale = Callable[[float], float]


def bars(
    title: str,
    rows: Sequence[tuple[str, Sequence[tuple[str, float | None]]]],
    unit: str,
    log: bool = False,
) -> str:
    """Groups of horizontal bars; a value of None has no bar and says so."""
    values = [v for _, group in rows for _, v in group if v is not None]
    scale, ticks = _log_axis(values) if log else _linear_axis(values)
    names = list(dict.fromkeys(name for _, group in rows for name, _ in group))
    body, y = [], float(TOP)
    for label, group in rows:
        body.append(_text(12, y + 12, label, "group"))
        y += BAR + 4
        for name, value in group:
            body.append(_bar(y, name, value, scale, _COLOURS[names.index(name) % len(_COLOURS)]))
            y += BAR + 3
        y += GAP
    return _document(title, f"{unit}{', logarithmic' if log else ''}", body, scale, ticks, y)


def strips(title: str, rows: Sequence[tuple[str, Sequence[float]]], unit: str) -> str:
    """One line per row: every sample a dot, the middle half a box, the median a stroke."""
    values = [value for _, samples in rows for value in samples]
    scale, ticks = _linear_axis(values)
    body, y = [], float(TOP)
    for label, samples in rows:
        body += _strip(y, label, sorted(samples), scale)
        y += STRIP
    return _document(title, f"{unit}; at the right: median / worst", body, scale, ticks, y)


def _bar(y: float, name: str, value: float | None, scale: Scale, colour: str) -> str:
    label = _text(LEFT - 8, y + 12, name, "faint", anchor="end")
    if value is None:
        return label + _text(LEFT + 4, y + 12, "none", "faint")
    end = max(scale(value), LEFT + 1.0)
    rect = (
        f'<rect x="{LEFT}" y="{y:.1f}" width="{end - LEFT:.1f}" height="{BAR}"'
        f' rx="2" fill="{colour}"/>'
    )
    return label + rect + _text(end + 5, y + 12, _figure(value))


def _strip(y: float, label: str, samples: Sequence[float], scale: Scale) -> list[str]:
    middle = y + STRIP / 2
    parts = [_text(LEFT - 8, middle + 4, f"{label} ({len(samples)})", anchor="end")]
    if not samples:
        return [*parts, _text(LEFT + 4, middle + 4, "none", "faint")]
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4) if len(samples) > 3 else (median,) * 3
    left, right = scale(max(low, samples[0])), scale(min(high, samples[-1]))
    parts.append(
        f'<rect class="box" x="{left:.1f}" y="{middle - 9:.1f}" width="{right - left:.1f}"'
        ' height="18"/>'
    )
    for number, value in enumerate(samples):  # spread up and down, so that equal ones show
        spread = (number % 3 - 1) * 4
        parts.append(
            f'<circle class="dot" cx="{scale(value):.1f}" cy="{middle + spread:.1f}" r="2.6"/>'
        )
    parts.append(
        f'<line class="mid" x1="{scale(median):.1f}" x2="{scale(median):.1f}"'
        f' y1="{middle - 11:.1f}" y2="{middle + 11:.1f}" stroke-width="2.5"/>'
    )
    summary = f"{_figure(median)} / {_figure(samples[-1])}"
    return [*parts, _text(WIDTH - RIGHT + 8, middle + 4, summary)]


def _document(
    title: str, unit: str, body: Iterable[str], scale: Scale, ticks: Sequence[float], bottom: float
) -> str:
    height = bottom + 26
    lines = [
        f'<line class="axis" x1="{scale(t):.1f}" x2="{scale(t):.1f}" y1="{TOP - 6}"'
        f' y2="{bottom:.1f}"/>' + _text(scale(t), bottom + 16, _figure(t), "faint", "middle")
        for t in ticks
    ]
    head = _text(12, 22, title, "title") + _text(12, 40, unit, "faint")
    paper = f'<rect class="paper" width="{WIDTH}" height="{height:.0f}" rx="6"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
        f' width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<style>{_STYLE}</style>{paper}{head}\n" + "\n".join([*lines, *body]) + "\n</svg>\n"
    )


def _linear_axis(values: Sequence[float]) -> tuple[Scale, list[float]]:
    """From nought to a round number not below the largest value, in at most six steps."""
    top = max([*values, 1e-9])
    magnitude = 10.0 ** math.floor(math.log10(top))
    step = next(m * magnitude for m in (0.2, 0.5, 1, 2) if top / (m * magnitude) <= 6)
    ticks = [step * n for n in range(math.ceil(top / step) + 1)]
    return lambda value: LEFT + _PLOT * value / ticks[-1], ticks


def _log_axis(values: Sequence[float]) -> tuple[Scale, list[float]]:
    """Whole decades around the positive values; what is not positive sits at the left edge."""
    positive = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(positive)) - 1e-9)
    high = max(math.ceil(math.log10(max(positive))), low + 1)
    ticks = [10.0**n for n in range(low, high + 1)]

    def scale(value: float) -> float:
        share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return LEFT + _PLOT * min(max(share, 0.0), 1.0)

    return scale, ticks


def _figure(value: float) -> str:
    """Three significant digits, thousands apart."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'
