//! A plot as SVG: colours are the page's style variables, which a picture of its own brings along.

use std::fmt::Write as _;

use gpuio_base::units::markup;

use super::{Axis, Bar, Line, MARK, Plot, Shape, WIDE};
use crate::number::throughput;

/// Size of the picture in its own units, and the space around the plot.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// A line of text; a character of it at most.
const LINE: f64 = 20.0;
const CHARACTER: f64 = 7.2;
/// A bar with its distance to the next.
const BAR: f64 = 28.0;

/// Light and dark colours of a picture that stands alone: those of `assets/page.css`.
const STYLE: &str = "<style>svg{--ink:#1b1f23;--quiet:#5a636d;--grid:#dfe3e7;--paper:#fff;\
    --p0:#0072b2;--p1:#d55e00;--p2:#009e73;--p3:#3d1466;--p4:#6e4a00;--p5:#2b2f33;--p6:#2f95dd;\
    --p7:#b8327a}@media(prefers-color-scheme:dark){svg{--ink:#e4e8ec;--quiet:#9aa5b0;\
    --grid:#343c44;--paper:#14181c;--p0:#4aa8e0;--p1:#f08a3c;--p2:#2fc79a;--p3:#f2e36a;\
    --p4:#e8ecef;--p5:#6a76ea;--p6:#a8607a;--p7:#b6dcff}}</style>";

pub(super) fn draw(plot: &Plot, alone: bool) -> String {
    let top = if alone { 2.0 * LINE + 8.0 } else { 4.0 };
    let mut body = String::new();
    let bottom = match &plot.shape {
        Shape::Lines { x, lines } => lines_at(&mut body, x, lines, top),
        Shape::Bars(bars) => bars_at(&mut body, bars, top),
    };
    let height = if alone { bottom + LINE } else { bottom };
    let mut out = format!(
        "{MARK} xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         role=\"img\" aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">",
        markup(&plot.title)
    );
    if alone {
        let _ = write!(
            out,
            "{STYLE}<rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"var(--paper)\"/>\
             <text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"600\" \
             fill=\"var(--ink)\">{}</text><text x=\"12\" y=\"{:.0}\" font-size=\"11\" \
             fill=\"var(--quiet)\">{}</text>",
            markup(&plot.title),
            height - 10.0,
            markup(&plot.note)
        );
    }
    out + &body + "</svg>"
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

/// Draws from `top`; gives the lower end.
fn lines_at(out: &mut String, x: &Axis, lines: &[Line], top: f64) -> f64 {
    let top = legend(out, lines, top);
    let (upper, lower) = (top + 8.0, top + HEIGHT - BOTTOM);
    let marks = || lines.iter().flat_map(|line| &line.marks);
    let low = marks().map(|mark| mark.low).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    let high = marks().map(|mark| mark.high).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let log = low.is_finite() && high / low > WIDE && marks().all(|mark| mark.low > 0.0);
    let values = if log { (low / 1.15, high * 1.15) } else { (0.0, high * 1.08) };
    let y = Scale { log, values, places: (lower, upper) };
    let first = marks().map(|mark| mark.x).fold(f64::INFINITY, f64::min);
    let last = marks().map(|mark| mark.x).fold(f64::NEG_INFINITY, f64::max);
    let margin = if x.ticks.is_empty() { 0.0 } else { 18.0 };
    let places = (LEFT + margin, WIDTH - RIGHT - margin);
    let across = Scale { log: x.log, values: (first, last), places };
    for tick in ticks(y.values, log) {
        let at = y.at(tick);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" \
             stroke=\"var(--grid)\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" \
             fill=\"var(--quiet)\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            short(&throughput(tick))
        );
    }
    horizontal(out, x, &across, lower);
    for line in lines {
        path(out, line, &across, &y);
    }
    lower + BOTTOM
}

/// Labels of the horizontal axis that do not overlap, the first of each clash kept.
fn horizontal(out: &mut String, x: &Axis, across: &Scale, lower: f64) {
    let seconds: Vec<(f64, String)>;
    let ticks = match x.ticks.as_slice() {
        [] => {
            let (low, high) = across.values;
            seconds = steps(low.min(0.0), high, 8.0)
                .filter(|at| *at >= low)
                .map(|at| (at, short(&format!("{at:.2}"))))
                .collect();
            &seconds
        }
        given => given,
    };
    let mut end = f64::NEG_INFINITY;
    for (value, text) in ticks {
        let at = across.at(*value);
        #[expect(clippy::cast_precision_loss, reason = "a few characters")]
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
        f64::midpoint(LEFT, WIDTH - RIGHT),
        lower + 38.0,
        markup(&x.label)
    );
}

fn path(out: &mut String, line: &Line, across: &Scale, y: &Scale) {
    let colour = format!("var(--p{})", line.colour);
    let place = |mark: &super::Mark| (across.at(mark.x), y.at(mark.y));
    let points: Vec<String> =
        line.marks.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        out,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
        points.join(" ")
    );
    for mark in &line.marks {
        let (x, middle) = place(mark);
        if mark.high > mark.low {
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
                 stroke-opacity=\".6\"/>",
                y.at(mark.low),
                y.at(mark.high)
            );
        }
        let size = if line.dots { 4.0 } else { 1.5 };
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"{size}\" fill=\"{colour}\"><title>{}\
             </title></circle>",
            markup(&mark.words)
        );
    }
}

/// The names of lines; gives the lower end. A line without a name needs none.
fn legend(out: &mut String, lines: &[Line], top: f64) -> f64 {
    if lines.iter().all(|line| line.label.is_empty()) {
        return top;
    }
    let (mut x, mut y) = (LEFT, top + 14.0);
    for line in lines {
        #[expect(clippy::cast_precision_loss, reason = "a few characters")]
        let wide = 30.0 + line.label.chars().count() as f64 * CHARACTER + 18.0;
        if x + wide > WIDTH - RIGHT && x > LEFT {
            (x, y) = (LEFT, y + LINE);
        }
        let _ = write!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--p{})\" \
             stroke-width=\"3\"/><text x=\"{:.1}\" y=\"{y:.1}\" fill=\"var(--ink)\">{}</text>",
            x + 22.0,
            y - 4.0,
            y - 4.0,
            line.colour,
            x + 28.0,
            markup(&line.label)
        );
        x += wide;
    }
    y + 6.0
}

/// Horizontal bars from 0; gives the lower end.
fn bars_at(out: &mut String, bars: &[Bar], top: f64) -> f64 {
    let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "a few characters")]
    let widest = |text: &str| text.chars().count() as f64 * CHARACTER;
    let label = bars.iter().map(|bar| widest(&bar.label)).fold(0.0, f64::max) + 16.0;
    let label = label.clamp(60.0, WIDTH / 2.0);
    let space = WIDTH - label - 90.0;
    let mut y = top;
    for bar in bars {
        let rate = throughput(bar.value);
        let long = (bar.value / most * space).max(1.0);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"var(--ink)\">{}</text>\
             <rect x=\"{label:.1}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"{:.0}\" rx=\"2\" \
             fill=\"var(--p{})\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"var(--ink)\">{rate}</text>",
            label - 8.0,
            y + 18.0,
            markup(&bar.label),
            y + 3.0,
            BAR - 8.0,
            bar.colour,
            label + long + 6.0,
            y + 18.0
        );
        y += BAR;
    }
    y + 6.0
}

/// Ticks of a rate between two values: powers of two on a logarithmic axis, else round numbers of
/// the unit.
fn ticks(values: (f64, f64), log: bool) -> Vec<f64> {
    let (low, high) = values;
    if log {
        let (first, last) = (low.log2().ceil(), high.log2().floor());
        let step = ((last - first) / 6.0).ceil().max(1.0);
        let places = std::iter::successors(Some(first), |at| Some(at + step));
        return places.take_while(|at| *at <= last).map(f64::exp2).collect();
    }
    let unit = 1024f64.powf((high.max(1.0).ln() / 1024f64.ln()).floor());
    steps(0.0, high / unit, 5.0).map(|at| at * unit).collect()
}

/// Round numbers from `low` to `high`, about so many.
fn steps(low: f64, high: f64, about: f64) -> impl Iterator<Item = f64> {
    let rough = ((high - low) / about).max(f64::MIN_POSITIVE);
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * decade);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    let places = std::iter::successors(Some(first), |at| Some(at + 1.0));
    places.map(move |at| at * step).take_while(move |at| *at <= high)
}

/// A tick's text without digits that say nothing: `2 GiB/s`, not `2.00 GiB/s`.
fn short(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    match number.contains('.') {
        true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_between_the_ends() {
        let gib = 1024f64.powi(3);
        let printed = |values, log| -> Vec<String> {
            let ticks: Vec<f64> = ticks(values, log);
            ticks.iter().map(|at| short(&throughput(*at))).collect()
        };
        let linear = ["0 B/s", "2 GiB/s", "4 GiB/s", "6 GiB/s"];
        assert_eq!(printed((0.0, 7.0 * gib), false), linear);
        let log = ["2 GiB/s", "4 GiB/s", "8 GiB/s", "16 GiB/s", "32 GiB/s", "64 GiB/s"];
        assert_eq!(printed((1.9 * gib, 100.0 * gib), true), log);
        assert_eq!(
            steps(0.0, 30.0, 8.0).collect::<Vec<f64>>(),
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
        );
        assert_eq!(
            ["1.50 GiB/s", "10.0 M", "100 k", "0 B/s"].map(short),
            ["1.5 GiB/s", "10 M", "100 k", "0 B/s"]
        );
    }
}
