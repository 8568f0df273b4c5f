# SPDX-License-Identifier: MIT
"""Charts as SVG text: bars and lines, each value a median with a whisker from the lowest to the
highest. The same figures give the same bytes. Light background of their own, no scripts."""
import math
import statistics
import textwrap
from xml.sax.saxutils import escape

WIDTH, MARGIN, FONT = 860, 16, 13
INK, DIM, GRID, PAPER = "#1b1b1b", "#555555", "#dcdcdc", "#fcfcfa"
# Told apart by the colour-blind too; each line has a mark of its own besides.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#8a3ffc", "#b8860b", "#56b4e9", "#cc79a7", "#444444")
HUGE = 1e300
LABEL_MAX = 300


def text_width(text, size=FONT):
    """About what it takes in a sans-serif face."""
    return sum(0.35 if c in " .,:;'il|!()[]" else 0.9 if c in "mwMW@%" else 0.58
               for c in str(text)) * size


def finite(values):
    return sorted(float(v) for v in values if v is not None and math.isfinite(float(v)) and
                  abs(float(v)) <= HUGE)


def figure(value):
    """Three digits or more, never a long tail of them."""
    size = abs(value)
    if size != 0 and (size >= 1e12 or size < 0.001):
        return "%.3g" % value
    if size >= 1000:
        return "{:,.0f}".format(value)
    digits = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return "%.*f" % (digits, value)


class Scale:
    """From values to places on an axis; its ends and ticks are round."""

    def __init__(self, values, log=False):
        self.log = log and bool(values) and values[0] > 0
        if self.log:
            self.decades(values[0], values[-1])
        else:
            self.steps(min([0.0] + values), max([0.0] + values))

    def decades(self, low, high):
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        if last == first:
            last += 1
        every = max(1, math.ceil((last - first) / 8))
        self.low, self.high = float(first), float(last)
        self.ticks = [10.0 ** n for n in range(first, last + 1, every)]

    def steps(self, low, high):
        if high - low < 1e-290:
            high = low + 1
        raw = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(raw))
        step = next((n * power for n in (1, 2, 5) if n * power >= raw * 0.999), 10 * power)
        first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
        self.low, self.high = first * step, last * step
        self.ticks = [n * step for n in range(first, last + 1)]

    def at(self, value, begin, end):
        place = math.log10(value) if self.log else value
        share = (place - self.low) / (self.high - self.low)
        return begin + max(0.0, min(1.0, share)) * (end - begin)

    def label(self, tick):
        if abs(tick) >= 1e12 or 0 < abs(tick) < 1e-4:
            return "%g" % tick
        text = "{:,.10f}".format(round(tick, 10))
        return text.rstrip("0").rstrip(".")


class Drawing:
    """The elements of one chart."""

    def __init__(self, title, unit):
        self.parts, self.title, self.unit = [], title, unit

    def add(self, element, text=None, **attributes):
        named = "".join(' %s="%s"' % (
            key.rstrip("_").replace("_", "-"),
            "%.1f" % value if isinstance(value, float) else escape(str(value), {'"': "&quot;"}))
            for key, value in attributes.items())
        self.parts.append("<%s%s/>" % (element, named) if text is None else
                          "<%s%s>%s</%s>" % (element, named, escape(printable(text)), element))

    def text(self, x, y, text, anchor="start", size=FONT, fill=INK, weight="normal"):
        self.add("text", text, x=float(x), y=float(y), text_anchor=anchor, font_size=size,
                 fill=fill, font_weight=weight)

    def line(self, x1, y1, x2, y2, stroke=GRID, width=1):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=stroke,
                 stroke_width=width)

    def head(self):
        """The title, in as many lines as it takes; where the chart may begin."""
        y = MARGIN + 16
        for part in textwrap.wrap(self.title, 90) or [""]:
            self.text(MARGIN, y, part, size=16, weight="bold")
            y += 20
        self.text(MARGIN, y, self.unit, fill=DIM)
        return y + 12

    def svg(self, height):
        return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" '
                'height="%d" role="img" font-family="system-ui, sans-serif">\n'
                '<title>%s</title>\n<rect width="%d" height="%d" rx="6" fill="%s" '
                'stroke="%s"/>\n%s\n</svg>\n' % (
                    WIDTH, height, WIDTH, height, escape(printable(self.title)), WIDTH, height,
                    PAPER, GRID, "\n".join(self.parts)))


def printable(text):
    """Without what no XML may have."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or
                   c >= "\U00010000" else "\ufffd" for c in str(text))


# --- bars --------------------------------------------------------------------------------------

def bars(title, unit, ways):
    """{way: [value, ...]} -> SVG."""
    drawing = Drawing(title, unit)
    ways = {name: finite(values) for name, values in ways.items()}
    # wrapped: about as many letters as fit
    labels = {name: textwrap.wrap(str(name), 46) or [""] for name in ways}
    left = MARGIN + 10 + min(LABEL_MAX, max([40.0] + [text_width(part) for lines in labels.values()
                                                      for part in lines]))
    right = WIDTH - MARGIN - 20 - max([30.0] + [text_width(value_label(v)) for v in ways.values()])
    scale = Scale(sorted(v for values in ways.values() for v in values))
    top = drawing.head()
    heights = [max(26, 16 * len(lines) + 8) for lines in labels.values()]
    bottom = top + sum(heights) + 6
    for tick in scale.ticks:
        x = scale.at(tick, left, right)
        drawing.line(x, top, x, bottom)
        drawing.text(x, bottom + 16, scale.label(tick), "middle", 12, DIM)
    y = top + 3
    for (name, values), height in zip(ways.items(), heights):
        bar(drawing, scale, (left, right), (y, height), labels[name], values)
        y += height
    if not ways:
        drawing.text(left, top + 4, "no figures", fill=DIM)
    zero = scale.at(0.0, left, right)
    drawing.line(zero, top, zero, bottom, INK)
    return drawing.svg(int(bottom + 30))


def value_label(values):
    if not values:
        return "no figure"
    text = figure(statistics.median(values))
    if values[0] != values[-1]:
        text += " (%s-%s)" % (figure(values[0]), figure(values[-1]))
    return text


def bar(drawing, scale, sides, row, label, values):
    left, right = sides
    y, height = row
    middle = y + height / 2
    for number, part in enumerate(label):
        drawing.text(left - 8, middle + 4.5 + 16 * (number - (len(label) - 1) / 2), part, "end")
    zero, end = scale.at(0.0, left, right), left
    if values:
        low, mid, high = (scale.at(v, left, right) for v in (
            values[0], statistics.median(values), values[-1]))
        drawing.add("rect", x=min(zero, mid), y=float(middle - 8), width=float(abs(mid - zero)),
                    height=16.0, fill=COLOURS[0])
        if high - low >= 1:
            whisker(drawing, (low, middle), (high, middle))
        end = max(zero, high)
    drawing.text(end + 8, middle + 4.5, value_label(values), size=12)


def whisker(drawing, begin, end, stroke=INK):
    """A line with a cap at each end, level or upright."""
    level = begin[1] == end[1]
    dx, dy = (0, 5) if level else (4, 0)
    drawing.line(*begin, *end, stroke, 1.5)
    for x, y in (begin, end):
        drawing.line(x - dx, y - dy, x + dx, y + dy, stroke, 1.5)


# --- lines -------------------------------------------------------------------------------------

def lines(title, x_label, unit, series, log_x=True, log_y=False):
    """{series: {x: [values]}} -> SVG. An axis can't be logarithmic where a value is not above
    nothing: then it is not."""
    drawing = Drawing(title, unit)
    series = {name: {float(x): finite(values) for x, values in sorted(points.items())
                     if finite([x]) and finite(values)} for name, points in series.items()}
    xs = Scale(sorted(x for points in series.values() for x in points), log_x)
    ys = Scale(sorted(v for points in series.values() for values in points.values()
                      for v in values), log_y)
    top = drawing.head() + 6
    bottom, left = top + 320, MARGIN + 14 + max(text_width(ys.label(t), 12) for t in ys.ticks)
    right = WIDTH - MARGIN - 20
    axes(drawing, (xs, ys), (left, right, top, bottom))
    drawing.text((left + right) / 2, bottom + 36, x_label, "middle", fill=DIM)
    for number, points in enumerate(series.values()):
        curve(drawing, [(xs.at(x, left, right),
                         [ys.at(v, bottom, top) for v in (values[0], statistics.median(values),
                                                          values[-1])])
                        for x, values in points.items()], number)
    return drawing.svg(int(legend(drawing, series, bottom + 62)))


def axes(drawing, scales, sides):
    left, right, top, bottom = sides
    for tick in scales[0].ticks:
        x = scales[0].at(tick, left, right)
        drawing.line(x, top, x, bottom)
        drawing.text(x, bottom + 17, scales[0].label(tick), "middle", 12, DIM)
    for tick in scales[1].ticks:
        y = scales[1].at(tick, bottom, top)
        drawing.line(left, y, right, y)
        drawing.text(left - 8, y + 4, scales[1].label(tick), "end", 12, DIM)
    drawing.line(left, bottom, right, bottom, INK)
    drawing.line(left, top, left, bottom, INK)


def curve(drawing, points, number):
    colour = COLOURS[number % len(COLOURS)]
    if len(points) > 1:
        drawing.add("polyline", points=" ".join("%.1f,%.1f" % (x, y[1]) for x, y in points),
                    fill="none", stroke=colour, stroke_width=2)
    for x, (low, mid, high) in points:
        if low - high >= 1:
            whisker(drawing, (x, low), (x, high), colour)
        mark(drawing, x, mid, number)


def mark(drawing, x, y, number):
    """Another shape for each series."""
    shapes = (((-4, -4), (4, -4), (4, 4), (-4, 4)), ((0, -6), (5.5, 4), (-5.5, 4)),
              ((0, -6), (6, 0), (0, 6), (-6, 0)), ((0, 6), (5.5, -4), (-5.5, -4)))
    colour = COLOURS[number % len(COLOURS)]
    if number % 5 == 0:
        drawing.add("circle", cx=float(x), cy=float(y), r=4.5, fill=colour)
        return
    drawing.add("polygon", fill=colour, points=" ".join(
        "%.1f,%.1f" % (x + dx, y + dy) for dx, dy in shapes[number % 5 - 1]))


def legend(drawing, series, y):
    """Below the chart, in rows; the chart's height."""
    x = float(MARGIN + 8)
    for number, (name, points) in enumerate(series.items()):
        text = str(name) if points else "%s (no figures)" % name
        wide = text_width(text) + 44
        if x > MARGIN + 8 and x + wide > WIDTH - MARGIN:
            x, y = float(MARGIN + 8), y + 20
        drawing.line(x, y - 4.5, x + 22, y - 4.5, COLOURS[number % len(COLOURS)], 2)
        mark(drawing, x + 11, y - 4.5, number)
        drawing.text(x + 28, y, text)
        x += wide
    return y + 14
