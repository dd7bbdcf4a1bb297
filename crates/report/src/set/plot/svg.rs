//! A plot as SVG: colours are the page's style variables; a picture of its own has fixed ones.

use std::fmt::Write as _;

use gpuio_base::units::{markup, paragraph};

use super::ticks::ticks;
use super::{Axis, Bar, Line, MARK, Plot, Quantity, Shape};
use crate::number::throughput;

/// Size of the picture in its own units, also of one for a narrow screen, and the space around the
/// plot.
const WIDTH: f64 = 720.0;
const NARROW: f64 = 390.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// A line of text; a character of it at most.
const LINE: f64 = 20.0;
const CHARACTER: f64 = 7.2;
/// Characters of a line below the plot, which are smaller.
const NOTE: usize = 115;
/// Characters of a line of the title, which are larger.
const TITLE: usize = 66;
/// Characters of a line of the plot's own title.
const NAME: usize = 80;
/// Ticks of the vertical axis, about.
const TICKS: f64 = 5.0;
/// The label of an axis whose steps are factors.
const LOG: &str = "log scale";
/// A bar with its distance to the next.
const BAR: f64 = 28.0;

/// The light colours of `assets/page.css`. Most programs that place a picture in a paper know no
/// variables of styles, and print on white.
const LIGHT: &[(&str, &str)] = &[
    ("ink", "#1b1f23"),
    ("quiet", "#5a636d"),
    ("grid", "#dfe3e7"),
    ("paper", "#ffffff"),
    ("p0", "#0072b2"),
    ("p1", "#d55e00"),
    ("p2", "#009e73"),
    ("p3", "#3d1466"),
    ("p4", "#6e4a00"),
    ("p5", "#2b2f33"),
    ("p6", "#2f95dd"),
    ("p7", "#b8327a"),
];

/// The picture with each variable replaced by its colour.
fn coloured(picture: String) -> String {
    LIGHT
        .iter()
        .fold(picture, |picture, (name, colour)| picture.replace(&format!("var(--{name})"), colour))
}

/// A picture of its own below a title, which may be empty.
pub(super) fn alone(plot: &Plot, title: &str) -> String {
    sized(plot, WIDTH, Some(title)).0
}

/// For a page, which shows one of both.
pub(super) fn wide_and_narrow(plot: &Plot) -> String {
    let [wide, narrow] = [WIDTH, NARROW].map(|width| sized(plot, width, None).0);
    format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>")
}

/// Two pictures in one, the first above the second, below a title, which may be empty.
pub(super) fn one_above(first: &Plot, second: &Plot, title: &str) -> String {
    let [(first, above), (second, below)] =
        [(first, title), (second, "")].map(|(plot, title)| sized(plot, WIDTH, Some(title)));
    let inner = |picture: &str, y: f64, height: f64| {
        let place = format!("<svg y=\"{y:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\"");
        picture.replacen(MARK, &place, 1)
    };
    let height = above + below;
    format!(
        "{MARK} xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\">{}{}\
         </svg>",
        inner(&first, 0.0, above),
        inner(&second, above, below)
    )
}

/// The picture with its height; with a title it is one of its own.
fn sized(plot: &Plot, width: f64, title: Option<&str>) -> (String, f64) {
    let alone = title.is_some();
    let title = paragraph("", 0, title.unwrap_or_default(), TITLE);
    let title: Vec<&str> = title.lines().filter(|line| !line.is_empty()).collect();
    let head = title.iter().fold(0.0, |height, _| height + LINE + 2.0);
    let name = paragraph("", 0, &plot.title, NAME);
    let names: Vec<&str> = name.lines().filter(|_| alone).collect();
    let head = names.iter().skip(1).fold(head, |height, _| height + LINE);
    let top = if alone { head + 2.0 * LINE + 8.0 } else { 4.0 };
    let mut body = String::new();
    let bottom = match &plot.shape {
        Shape::Lines { x, log, of, lines } => {
            let top = legend(&mut body, lines, (top, width));
            lines_at(&mut body, x, (*log, of), lines, (top, width))
        }
        Shape::Bars(bars) => bars_at(&mut body, bars, (top, width)),
    };
    let note = paragraph("", 0, &plot.note, NOTE);
    let lines: Vec<&str> = if alone { note.lines().collect() } else { Vec::new() };
    let height = lines.iter().fold(bottom, |height, _| height + LINE);
    let mut out = format!(
        "{MARK} xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" \
         role=\"img\" aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">",
        markup(&plot.title)
    );
    if alone {
        let _ =
            write!(out, "<rect width=\"{width}\" height=\"{height:.0}\" fill=\"var(--paper)\"/>");
    }
    for (line, at) in names.iter().rev().zip(0_u8..) {
        let _ = write!(
            out,
            "<text x=\"12\" y=\"{:.0}\" font-size=\"15\" font-weight=\"600\" \
             fill=\"var(--ink)\">{}</text>",
            head + 24.0 - f64::from(at) * LINE,
            markup(line)
        );
    }
    for (line, at) in title.iter().zip(0_u8..) {
        let _ = write!(
            out,
            "<text x=\"12\" y=\"{:.0}\" font-size=\"18\" font-weight=\"600\" \
             fill=\"var(--ink)\">{}</text>",
            24.0 + f64::from(at) * (LINE + 2.0),
            markup(line)
        );
    }
    for (line, at) in lines.iter().rev().zip(0_u8..) {
        let _ = write!(
            out,
            "<text x=\"12\" y=\"{:.0}\" font-size=\"11\" fill=\"var(--quiet)\">{}</text>",
            height - 10.0 - f64::from(at) * LINE,
            markup(line)
        );
    }
    let picture = out + &body + "</svg>";
    (if alone { coloured(picture) } else { picture }, height)
}

/// Where a value lies between two ends.
struct Scale {
    log: bool,
    values: (f64, f64),
    places: (f64, f64),
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (low, high) = (of(self.values.0), of(self.values.1));
        let share = if high > low { (of(value) - low) / (high - low) } else { 0.5 };
        self.places.0 + share * (self.places.1 - self.places.0)
    }
}

/// Whether the vertical axis is logarithmic, and what it shows.
type Values<'q> = (bool, &'q Quantity);

/// Draws from `top` in a width; gives the lower end.
fn lines_at(
    out: &mut String,
    x: &Axis,
    (log, Quantity(name, of)): Values<'_>,
    lines: &[Line],
    (top, width): (f64, f64),
) -> f64 {
    let (upper, lower) = (top + 8.0, top + HEIGHT - BOTTOM);
    let marks = || lines.iter().flat_map(|line| &line.marks);
    let low = if log { marks().map(|mark| mark.low).fold(f64::INFINITY, f64::min) } else { 0.0 };
    let high = marks().map(|mark| mark.high).fold(0.0, f64::max);
    let ticks = of(low, high, log, TICKS);
    let values = (ticks[0].0, ticks[ticks.len() - 1].0);
    let y = Scale { log, values, places: (lower, upper) };
    let across = || marks().map(|mark| mark.x).chain(x.ticks.iter().map(|(at, _)| *at));
    let first = across().fold(f64::INFINITY, f64::min);
    let last = across().fold(f64::NEG_INFINITY, f64::max);
    let margin = if x.ticks.is_empty() { 0.0 } else { 18.0 };
    let places = (LEFT + margin, width - RIGHT - margin);
    let across = Scale { log: x.log, values: (first, last), places };
    for (value, text) in &ticks {
        let at = y.at(*value);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" \
             stroke=\"var(--grid)\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" \
             fill=\"var(--quiet)\">{text}</text>",
            width - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let middle = f64::midpoint(upper, lower);
    let _ = write!(
        out,
        "<text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" fill=\"var(--quiet)\" \
         transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
        labelled(name, log)
    );
    horizontal(out, x, &across, (lower, width));
    let mut taken = Vec::new();
    for line in lines {
        path(out, line, &across, &y, &mut taken);
    }
    lower + BOTTOM
}

/// Labels of the horizontal axis that do not overlap, the first of each clash kept.
fn horizontal(out: &mut String, x: &Axis, across: &Scale, (lower, width): (f64, f64)) {
    let seconds: Vec<(f64, String)>;
    let ticks = match x.ticks.as_slice() {
        [] => {
            let (low, high) = across.values;
            seconds = ticks((1.0, ""), low, high, false, 8.0)
                .into_iter()
                .filter(|(at, _)| (low..=high).contains(at))
                .collect();
            &seconds
        }
        given => given,
    };
    let mut end = f64::NEG_INFINITY;
    for (value, text) in ticks {
        let at = across.at(*value);
        let half = text.chars().count() as f64 * CHARACTER / 2.0;
        if at - half < end + 6.0 {
            continue;
        }
        end = at + half;
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{lower:.1}\" y2=\"{:.1}\" \
             stroke=\"var(--quiet)\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
             fill=\"var(--quiet)\">{}</text>",
            lower + 4.0,
            lower + 18.0,
            markup(text)
        );
    }
    let _ = write!(
        out,
        "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"var(--quiet)\">{}</text>",
        f64::midpoint(LEFT, width - RIGHT),
        lower + 38.0,
        markup(&labelled(&x.label, x.log))
    );
}

fn labelled(name: &str, log: bool) -> String {
    if log { format!("{name} ({LOG})") } else { name.to_owned() }
}

/// A rectangle: left, top, right, lower end.
type Place = [f64; 4];

/// Space between texts in a line: without it two numbers read as one.
const APART: f64 = 8.0;

/// The place of a text beside a dot, where no other text is: first above the line to its left,
/// since curves rise to the right.
fn free(text: &str, (x, y): (f64, f64), taken: &[Place]) -> Option<(Place, &'static str)> {
    let wide = text.chars().count() as f64 * CHARACTER;
    let places = [(-8.0 - wide, -7.0), (8.0, -7.0), (-8.0 - wide, 15.0), (8.0, 15.0)];
    let place = |(dx, dy): (f64, f64)| [x + dx, y + dy - 10.0, x + dx + wide, y + dy];
    let is_free = |one: &Place| {
        let apart = |other: &Place| {
            let beside = one[2] + APART <= other[0] || other[2] + APART <= one[0];
            beside || one[3] <= other[1] || other[3] <= one[1]
        };
        taken.iter().all(apart)
    };
    let found = places.into_iter().map(place).find(is_free)?;
    Some((found, if found[0] < x { "end" } else { "start" }))
}

fn path(out: &mut String, line: &Line, across: &Scale, y: &Scale, taken: &mut Vec<Place>) {
    let colour = format!("var(--p{})", line.colour);
    let place = |mark: &super::Mark| (across.at(mark.x), y.at(mark.y));
    let dashes = if line.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
    for joined in line.marks.chunk_by(|_, next| next.joined).filter(|marks| marks.len() > 1) {
        let points: Vec<String> =
            joined.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes} \
             points=\"{}\"/>",
            points.join(" ")
        );
    }
    for mark in &line.marks {
        let (x, middle) = place(mark);
        if mark.high > mark.low {
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"1.5\"/>",
                y.at(mark.low),
                y.at(mark.high)
            );
        }
        let size = if line.dots { 4.0 } else { 1.5 };
        let look = match mark.doubts.is_empty() {
            true => format!("fill=\"{colour}\""),
            false => format!("fill=\"var(--paper)\" stroke=\"{colour}\" stroke-width=\"2\""),
        };
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"{size}\" {look}><title>{}\
             </title></circle>",
            markup(&mark.words)
        );
        if mark.is_knee {
            let _ = write!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"9\" fill=\"none\" \
                 stroke=\"var(--ink)\" stroke-width=\"1.5\"/>"
            );
        }
        let number = mark.number.as_ref();
        if let Some((number, (place, anchor))) =
            number.and_then(|number| Some((number, free(number, (x, middle), taken)?)))
        {
            taken.push(place);
            let at = if anchor == "end" { place[2] } else { place[0] };
            // Two texts: converters that know no paint-order would cover the number by its stroke.
            for look in ["stroke=\"var(--paper)\" stroke-width=\"3\"", "fill=\"var(--ink)\""] {
                let hidden = if look.starts_with("stroke") { " aria-hidden=\"true\"" } else { "" };
                let _ = write!(
                    out,
                    "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" {look}{hidden}>{}\
                     </text>",
                    place[3],
                    markup(number)
                );
            }
        }
    }
}

/// Attributes that make a text narrower where it has no room as it is, so that nothing is cut.
fn squeezed(text: &str, room: f64) -> String {
    match text.chars().count() as f64 * CHARACTER > room {
        true => format!(" textLength=\"{room:.1}\" lengthAdjust=\"spacingAndGlyphs\""),
        false => String::new(),
    }
}

/// The names of lines; gives the lower end. A line without a name needs none.
fn legend(out: &mut String, lines: &[Line], (top, width): (f64, f64)) -> f64 {
    if lines.iter().all(|line| line.label.is_empty()) {
        return top;
    }
    let (mut x, mut y) = (LEFT, top + 14.0);
    for line in lines {
        let wide = 30.0 + line.label.chars().count() as f64 * CHARACTER + 18.0;
        if x + wide > width - RIGHT && x > LEFT {
            (x, y) = (LEFT, y + LINE);
        }
        if x + wide > width - RIGHT {
            x = RIGHT;
        }
        let _ = write!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--p{})\" \
             stroke-width=\"3\"{}/><text x=\"{:.1}\" y=\"{y:.1}\" fill=\"var(--ink)\"{}>{}</text>",
            x + 22.0,
            y - 4.0,
            y - 4.0,
            line.colour,
            if line.dashed { " stroke-dasharray=\"6 4\"" } else { "" },
            x + 28.0,
            squeezed(&line.label, width - RIGHT - x - 28.0),
            markup(&line.label)
        );
        x += wide;
    }
    y + 6.0
}

/// A bar in words, with the range of its runs.
fn told(bar: &Bar) -> String {
    let rate = throughput(bar.value);
    match bar.runs {
        1 => format!("{}: {rate}, one run", bar.label),
        runs => format!(
            "{}: {rate}, median of {runs}, {} to {}",
            bar.label,
            throughput(bar.low),
            throughput(bar.high)
        ),
    }
}

/// Horizontal bars from 0, behind their labels, or below where one takes more than half of the
/// width; gives the lower end.
fn bars_at(out: &mut String, bars: &[Bar], (top, width): (f64, f64)) -> f64 {
    let most = bars.iter().map(|bar| bar.high).fold(f64::MIN_POSITIVE, f64::max);
    let widest = |text: &str| text.chars().count() as f64 * CHARACTER;
    let label = bars.iter().map(|bar| widest(&bar.label)).fold(0.0, f64::max) + 16.0;
    let above = label > width / 2.0;
    let label = if above { 12.0 } else { label.max(60.0) };
    let (end, anchor) = if above { (label, "start") } else { (label - 8.0, "end") };
    let space = width - label - 90.0;
    let mut y = top;
    for bar in bars {
        let rate = throughput(bar.value) + &markup(&bar.doubts);
        let look = match bar.doubts.is_empty() {
            true => format!("fill=\"var(--p{})\"", bar.colour),
            false => format!(
                "fill=\"var(--p{0})\" fill-opacity=\"0.2\" stroke=\"var(--p{0})\" \
                 stroke-width=\"1.5\" stroke-dasharray=\"5 3\"",
                bar.colour
            ),
        };
        let at = |value: f64| value / most * space;
        let long = at(bar.value).max(1.0);
        let _ = write!(
            out,
            "<text x=\"{end:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" \
             fill=\"var(--ink)\"{}>{}</text>",
            y + 18.0,
            squeezed(&bar.label, if above { width - 2.0 * end } else { end }),
            markup(&bar.label)
        );
        if above {
            y += LINE;
        }
        let _ = write!(
            out,
            "<rect x=\"{label:.1}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"{:.0}\" rx=\"2\" \
             {look}><title>{}</title></rect>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"var(--ink)\">{rate}</text>",
            y + 3.0,
            BAR - 8.0,
            markup(&told(bar)),
            label + long.max(at(bar.high)) + 6.0,
            y + 18.0
        );
        if bar.high > bar.low {
            let (low, high, middle) = (label + at(bar.low), label + at(bar.high), y + 13.0);
            let _ = write!(
                out,
                "<path d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\" \
                 stroke=\"var(--ink)\" stroke-width=\"1.5\" fill=\"none\"/>",
                middle - 4.0,
                middle - 4.0
            );
        }
        y += BAR;
    }
    y + 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_longer_than_its_place_is_not_cut() {
        let line = |label: &str| Line {
            label: label.to_owned(),
            colour: 0,
            marks: Vec::new(),
            dots: true,
            dashed: false,
        };
        let mut out = String::new();
        legend(&mut out, &[line("host"), line(&"x".repeat(90))], (0.0, NARROW));
        assert_eq!(out.matches("textLength=\"318.0\"").count(), 1, "{out}");
        let plot = Plot {
            title: "word ".repeat(40),
            note: String::new(),
            left: String::new(),
            shape: Shape::Bars(Vec::new()),
        };
        assert_eq!(alone(&plot, "").matches("font-size=\"15\"").count(), 3);
    }

    #[test]
    fn numbers_beside_neighbouring_dots_do_not_read_as_one() {
        let mut taken = Vec::new();
        for x in [100.0, 100.0 + CHARACTER, 100.0 + 2.0 * CHARACTER] {
            let (place, _) = free("1", (x, 100.0), &taken).expect("a place");
            taken.push(place);
        }
        for (nth, one) in taken.iter().enumerate() {
            for other in &taken[..nth] {
                let in_a_line = (one[1] - other[1]).abs() < LINE / 2.0;
                let apart = (one[0] - other[2]).max(other[0] - one[2]);
                assert!(!in_a_line || apart >= APART, "{taken:?}");
            }
        }
    }
}
