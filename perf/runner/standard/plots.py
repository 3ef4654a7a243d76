"""Plots as plain SVG: no script, no style sheet, no background. Its colours are of middle brightness, so that it can be
read on light and on dark. However much is given, it has a bound: so many series, points, bars and letters."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 40, 60
SERIES_LIMIT = 8
POINTS_LIMIT = 200
BARS_LIMIT = 12
LETTERS_LIMIT = 60
TICKS = 5
TICKS_LIMIT = 12
GREY = "#767676"
COLOURS = ("#2f81c7", "#c9642b", "#2e9e6b", "#a259c4", "#b08a00", "#d0487e", "#3a9ca6", "#8b7355")


def lines(title, x_label, y_label, series, log_x=False, log_y=False, x_names=None, y_name=None):
    """`series`: (name, [(x, y), ...]), of numbers; `x_names`: what is written below these values of x; `y_name`: of
    a value of y, what is written beside it."""
    kept = [(name, thinned(points, log_x, log_y)) for name, points in series[:SERIES_LIMIT]]
    xs = [x for _, points in kept for x, _ in points] + list(x_names or ())
    ys = [y for _, points in kept for _, y in points]
    to_x = Scale(xs, LEFT, WIDTH - RIGHT, log_x)
    to_y = Scale(ys if log_y else [0, *ys], HEIGHT - BOTTOM, TOP, log_y)
    parts = frame(title, x_label, y_label)
    for value, name in list((x_names or {value: short(value) for value in to_x.ticks()}).items())[:POINTS_LIMIT]:
        parts.append(text(to_x(value), HEIGHT - BOTTOM + 18, name, "middle"))
    parts += rules(to_y, y_name or short)
    for place, (name, points) in enumerate(kept):
        colour = COLOURS[place]
        if points:
            path = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(points) <= 12:
            parts += [f'<circle cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        at = TOP + 8 + 20 * place
        parts.append(f'<rect x="{WIDTH - RIGHT + 16}" y="{at - 9}" width="12" height="10" fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 34, at, name))
    return document(parts, title)


def bars(title, y_label, values):
    """`values`: (name, number), in the order in which they are to stand."""
    kept = [(name, value) for name, value in values if math.isfinite(value) and value >= 0][:BARS_LIMIT]
    to_y = Scale([0, *(value for _, value in kept)], HEIGHT - BOTTOM, TOP, False)
    parts = frame(title, "", y_label) + rules(to_y, short)
    width = (WIDTH - LEFT - 20) / max(len(kept), 1)
    for place, (name, value) in enumerate(kept):
        x, y = LEFT + (place + 0.15) * width, to_y(value)
        colour = COLOURS[place % len(COLOURS)]
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.7 * width:.1f}" height="{HEIGHT - BOTTOM - y:.1f}" '
                     f'fill="{colour}"/>')
        parts.append(text(x + 0.35 * width, y - 6, short(value), "middle"))
        parts.append(text(x + 0.35 * width, HEIGHT - BOTTOM + 18, name, "middle"))
    return document(parts, title)


class Scale:
    """From values to places, along one side."""

    def __init__(self, values, start, end, is_log):
        known = [self.bend(value, is_log) for value in values]
        self.low, self.high = min(known, default=0.0), max(known, default=1.0)
        if self.high <= self.low:
            self.high = self.low + 1.0
        self.start, self.end, self.is_log = start, end, is_log

    @staticmethod
    def bend(value, is_log):
        return math.log10(value) if is_log else float(value)

    def __call__(self, value):
        share = (self.bend(value, self.is_log) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        """Round values between its ends: powers of ten and, of few, twice and five times them."""
        if not self.is_log:
            step = round_step((self.high - self.low) / TICKS)
            return [step * place for place in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        factors = (1, 2, 5) if len(powers) < TICKS else (1,)
        values = [factor * 10.0 ** power for power in powers for factor in factors]
        within = [value for value in values if self.low <= math.log10(value) <= self.high]
        return within[:: math.ceil(len(within) / TICKS_LIMIT)] if within else []


def round_step(step):
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def thinned(points, log_x, log_y):
    """Those that can be drawn, and of many some at even distances, the last one among them."""
    drawable = [(x, y) for x, y in points
                if math.isfinite(x) and math.isfinite(y) and not (log_x and x <= 0) and not (log_y and y <= 0)]
    if len(drawable) <= POINTS_LIMIT:
        return drawable
    step = (len(drawable) - 1) / (POINTS_LIMIT - 1)
    return [drawable[round(place * step)] for place in range(POINTS_LIMIT)]


def frame(title, x_label, y_label):
    middle_x, middle_y = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    return [
        text(LEFT, 22, title, size=15),
        text(middle_x, HEIGHT - 14, x_label, "middle"),
        f'<g transform="rotate(-90 18 {middle_y})">{text(18, middle_y, y_label, "middle")}</g>',
        line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM),
        line(LEFT, TOP, LEFT, HEIGHT - BOTTOM),
    ]


def rules(to_y, name_of):
    parts = []
    for value in to_y.ticks():
        parts.append(line(LEFT, to_y(value), WIDTH - RIGHT, to_y(value), opacity=0.3))
        parts.append(text(LEFT - 8, to_y(value) + 4, name_of(value), "end"))
    return parts


def line(x1, y1, x2, y2, opacity=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GREY}" opacity="{opacity}"/>'


def text(x, y, words, anchor="start", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="sans-serif" font-size="{size}" '
            f'fill="{GREY}">{safe(words)}</text>')


def safe(words):
    words = "".join(letter for letter in str(words) if letter.isprintable())
    return escape(words if len(words) <= LETTERS_LIMIT else words[: LETTERS_LIMIT - 1] + "…")


def of_us(value):
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.3g} µs"


def short(value):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g} {unit}"
    return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"


def document(parts, title):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img">\n<title>{safe(title)}</title>\n' + "\n".join(parts) + "\n</svg>\n")
