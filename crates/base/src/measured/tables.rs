//! Tables of results that people write by hand, in Markdown: a head with the units of rates, IOPS
//! or latencies and the settings of a load, and a row per result.
//!
//! A row counts where it has a rate or IOPS, and where whether it reads or writes is said: in the
//! head of its column, in the row, or in the lines above the table. Limits, aims, ratios and means
//! of rows are no results. They, other figures that are not read, and rows with a figure that is
//! not taken are named.

use super::number::{self, Decimal};
use crate::stat::Percentile;
use crate::units::parse_bytes;

const KIB: f64 = 1024.0;
/// Longer tables are no summaries.
pub const MOST_ROWS: usize = 256;
/// Lines above a table that may name it.
const ABOVE: usize = 3;

/// A result in a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// Lines between the head and its row.
    pub below: usize,
    /// Its cells of words, as they stand.
    pub labels: Vec<String>,
    pub writes: bool,
    pub random: Option<bool>,
    /// gpuio's name.
    pub path: Option<&'static str>,
    pub threads: Option<u64>,
    pub depth: Option<u64>,
    pub block_bytes: Option<u64>,
    /// Bytes per second. GB are 10^9 bytes, unless IOPS and block are nearer to 2^30.
    pub rate: Option<f64>,
    pub iops: Option<f64>,
    pub latency_ns: Option<f64>,
    /// Percentiles of the latency, in nanoseconds.
    pub percentiles: Vec<(Percentile, f64)>,
}

/// The table that begins at a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub entries: Vec<Entry>,
    /// Heads of columns whose figures are in no entry.
    pub unread: Vec<String>,
    /// Rows with figures that were not taken: the lines between the head and each, and why.
    pub left_out: Vec<(usize, String)>,
    /// Lines from its head on.
    pub lines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Threads,
    Depth,
    Block,
    Rate,
    Iops,
    Latency,
    Percentile(Percentile),
    /// A limit, a ratio.
    No,
    Words,
}

impl Kind {
    fn is_measured(self) -> bool {
        matches!(self, Kind::Rate | Kind::Iops | Kind::Latency | Kind::Percentile(_))
    }
}

#[derive(Debug, Clone)]
struct Column {
    kind: Kind,
    /// The unit in its head.
    unit: Option<[f64; 2]>,
    side: Side,
}

/// Direction, order and path, as far as words say them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Side {
    /// `None` also where words say both.
    pub writes: Option<bool>,
    pub random: Option<bool>,
    /// gpuio's name.
    pub path: Option<&'static str>,
}

/// Reading and writing in the languages of posts.
const READS: [&str; 9] =
    ["read", "lesen", "lecture", "lectura", "lettura", "leitura", "读", "讀", "読"];
const WRITES: [&str; 10] = [
    "write",
    "schreiben",
    "écriture",
    "ecriture",
    "escritura",
    "scrittura",
    "escrita",
    "写",
    "寫",
    "書き",
];
const RANDOM: [&str; 5] = ["rand", "zufäll", "随机", "隨機", "ランダム"];
const SEQUENTIAL: [&str; 6] = ["seq", "顺序", "順序", "连续", "連續", "シーケンシャル"];

/// The table of results whose head is this line.
pub fn table(lines: &[&str], at: usize) -> Option<Table> {
    let head = cells(lines.get(at)?)?;
    let ruler = cells(lines.get(at + 1)?)?;
    let is_ruler =
        |cell: &String| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':' | ' '));
    if ruler.len() != head.len() || !ruler.iter().all(is_ruler) {
        return None;
    }
    let columns: Vec<Column> = head.iter().map(|head| Column::of(head)).collect();
    let is_setting = |one: &Column| {
        matches!(one.kind, Kind::Threads | Kind::Depth | Kind::Block) || one.side != Side::default()
    };
    let above = lines[..at].iter().rev().filter(|line| !line.trim().is_empty()).take(ABOVE);
    let above = above.map(|line| Side::of(line)).find(|side| side.writes.is_some());
    let above = above.unwrap_or_default();
    let rows = lines[at + 2..].iter().take(MOST_ROWS).map_while(|line| cells(line));
    let rows: Vec<Vec<String>> = rows.collect();
    let measured = rows.iter().flat_map(|row| columns.iter().zip(row));
    let measured = measured.filter(|(column, _)| column.kind.is_measured());
    let decimal = number::decimal(measured.map(|(_, cell)| parts(cell).0));
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    let mut read = vec![false; columns.len()];
    let mut is_set = columns.iter().any(is_setting);
    for (row, below) in rows.iter().zip(2..) {
        let words = columns.iter().zip(row).filter(|(one, _)| one.kind == Kind::Words);
        let own = words.fold(Side::default(), |side, (_, cell)| side.or(Side::of(cell)));
        is_set |= own != Side::default();
        let (found, why) = of_row(&columns, row, own.or(above), decimal, &mut read);
        entries.extend(found.into_iter().map(|one| Entry { below, ..one }));
        left_out.extend(why.map(|why| (below, why)));
    }
    let unread = unread(&columns, &rows, &read).into_iter().map(|nth| head[nth].clone()).collect();
    let is_read = !entries.is_empty() || left_out.iter().any(|(_, why)| why.ends_with(OPEN));
    let lines = rows.len() + 2;
    (is_set && is_read).then_some(Table { entries, unread, left_out, lines })
}

/// The columns with figures that are in no entry.
fn unread(columns: &[Column], rows: &[Vec<String>], read: &[bool]) -> Vec<usize> {
    let bare = |cell: &str| {
        number::digits(cell.trim_end_matches(['%', 'x', ' ']), Some(Decimal::Dot)).is_some()
    };
    let has_figures = |nth: &usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(*nth)).filter(|one| !one.is_empty());
        match columns[*nth].kind {
            _ if read[*nth] => false,
            Kind::Threads | Kind::Depth | Kind::Block => false,
            Kind::Words => cells.clone().next().is_some() && cells.all(|cell| bare(cell)),
            kind => cells.any(|cell| !matches!(figure(cell, kind, None), Figure::No) || bare(cell)),
        }
    };
    (0..columns.len()).filter(has_figures).collect()
}

/// The columns of figures. IOPS come first: they decide which GB a rate is in.
fn in_turn(columns: &[Column]) -> Vec<usize> {
    let turn = |nth: &usize| match columns[*nth].kind {
        Kind::Iops => Some(0),
        Kind::Rate => Some(1),
        Kind::Latency | Kind::Percentile(_) => Some(2),
        _ => None,
    };
    let mut all: Vec<usize> = (0..columns.len()).filter(|nth| turn(nth).is_some()).collect();
    all.sort_by_key(turn);
    all
}

/// Why a cell is left out whose comma may be of thousands too.
const OPEN: &str = "whether its comma is one of decimals is not said";

/// The results of a row: one for each direction and path that its columns have, with a mark at the
/// columns that they are from; and why figures of it are not taken.
fn of_row(
    columns: &[Column],
    row: &[String],
    own: Side,
    decimal: Option<Decimal>,
    read: &mut [bool],
) -> (Vec<Entry>, Option<String>) {
    let mut entries: Vec<(Side, Entry)> = Vec::new();
    let mut from: Vec<(usize, usize)> = Vec::new();
    let mut why: Option<String> = None;
    if let Some(why) = no_result(columns, row) {
        return (Vec::new(), Some(why));
    }
    // Columns of one kind, direction and path: the rest of their heads, which is not understood,
    // is the difference between their figures.
    let is_double = |column: &Column| {
        let same = |one: &&Column| (one.kind, one.side) == (column.kind, column.side);
        columns.iter().filter(same).count() > 1
    };
    for nth in in_turn(columns).into_iter().filter(|nth| *nth < row.len()) {
        let (column, cell) = (&columns[nth], &row[nth]);
        let has_figure = cell.contains(|c: char| c.is_ascii_digit());
        let (number, unit) = match figure(cell, column.kind, decimal) {
            Figure::Is(number, unit) => (number, unit),
            Figure::Open => {
                why = Some(format!("`{cell}`: {OPEN}"));
                continue;
            }
            Figure::No => {
                let not = has_figure.then(|| format!("`{cell}` is not understood"));
                why = why.or(not);
                continue;
            }
        };
        let value = unit.or(column.unit).map(|scales| scales.map(|scale| number * scale));
        if value.is_none() && column.kind != Kind::Iops {
            why.get_or_insert_with(|| format!("`{cell}` has no unit"));
            continue;
        }
        if is_double(column) {
            why.get_or_insert_with(|| {
                "the heads of two of its columns differ in words that are not understood".to_owned()
            });
            continue;
        }
        let side = column.side.or(own);
        // A latency is of the only result that its head fits.
        let is_time = matches!(column.kind, Kind::Latency | Kind::Percentile(_));
        let mut fitting = entries.iter().filter(|(known, _)| column.side.fits(*known));
        let side = match (fitting.next(), fitting.next()) {
            (Some((only, _)), None) if is_time => *only,
            _ => side,
        };
        let at = entries.iter().position(|(known, _)| *known == side);
        let at = at.unwrap_or_else(|| {
            entries.push((side, Entry::default()));
            entries.len() - 1
        });
        from.push((at, nth));
        let entry = &mut entries[at].1;
        match (column.kind, value) {
            (Kind::Iops, value) => entry.iops = Some(value.map_or(number, |value| value[0])),
            (Kind::Latency, Some(value)) => entry.latency_ns = Some(value[0]),
            (Kind::Percentile(at), Some(value)) => entry.percentiles.push((at, value[0])),
            (_, value) => {
                entry.rate = value.map(|[decimal, binary]| {
                    let product =
                        entry.iops.zip(block(columns, row)).map(|(n, size)| n * size as f64);
                    let far = |value: f64| product.map_or(0.0, |product| (value - product).abs());
                    if far(binary) < far(decimal) { binary } else { decimal }
                })
            }
        }
    }
    let (whole, other) = whole(columns, row, entries, (&from, read));
    (whole, why.or(other))
}

/// Measured figures with the settings of their row, where its direction is said; else why not.
fn whole(
    columns: &[Column],
    row: &[String],
    entries: Vec<(Side, Entry)>,
    (from, read): (&[(usize, usize)], &mut [bool]),
) -> (Vec<Entry>, Option<String>) {
    let cells = || columns.iter().zip(row);
    let mut why = None;
    let number = |kind: Kind| {
        let (_, cell) = cells().find(|(column, _)| column.kind == kind)?;
        cell.split_whitespace().next()?.parse::<u64>().ok()
    };
    let labels = cells().filter(|(column, _)| column.kind == Kind::Words);
    let labels: Vec<String> = labels.map(|(_, cell)| cell.clone()).collect();
    let mut whole = Vec::new();
    for (at, (side, mut entry)) in entries.into_iter().enumerate() {
        let measured = entry.rate.is_some() || entry.iops.is_some();
        let Some(writes) = side.writes.filter(|_| measured) else {
            let not = "no word says, for a rate or IOPS, whether it reads or writes";
            why = Some(not.to_owned());
            continue;
        };
        from.iter().filter(|one| one.0 == at).for_each(|one| read[one.1] = true);
        entry.percentiles.sort_by_key(|one| one.0);
        whole.push(Entry {
            labels: labels.clone(),
            writes,
            random: side.random,
            path: side.path,
            threads: number(Kind::Threads),
            depth: number(Kind::Depth),
            block_bytes: block(columns, row),
            ..entry
        });
    }
    (whole, why)
}

/// Why a row with figures is no result of a run: it is a limit, an aim or a mean of the others by
/// its words, or it has a word instead of a count of threads.
fn no_result(columns: &[Column], row: &[String]) -> Option<String> {
    let cells = || columns.iter().zip(row);
    let settings = || cells().filter(|(one, _)| !one.kind.is_measured() && one.kind != Kind::No);
    let other = settings()
        .find(|(_, cell)| is_limit(cell) || has_word(cell, &MEANS) || has_word(cell, &PERCENTILES));
    if let Some((_, cell)) = other {
        return Some(format!("by its words `{cell}` it may be no run"));
    }
    let counts = cells().filter(|(one, _)| matches!(one.kind, Kind::Threads | Kind::Depth));
    let mut counts = counts.filter(|(_, cell)| cell.contains(char::is_alphanumeric));
    let (_, cell) = counts.find(|(_, cell)| {
        let first = cell.split_whitespace().next().unwrap_or_default();
        first.parse::<u64>().is_err() && !cell.eq_ignore_ascii_case("n/a")
    })?;
    Some(format!("`{cell}` is no count of threads or of I/Os in flight"))
}

/// Words of rows that are parts of a distribution, and of heads that are, of rates.
const PERCENTILES: [&str; 4] = ["p50", "p90", "p95", "p99"];
/// Words of rows that are means of others.
const MEANS: [&str; 11] = [
    "avg",
    "average",
    "mean",
    "median",
    "geomean",
    "sum",
    "durchschnitt",
    "mittelwert",
    "summe",
    "gesamt",
    "moyenne",
];

fn has_word(text: &str, names: &[&str]) -> bool {
    words(text).iter().any(|word| names.contains(&word.as_str()))
}

/// Whether words make a figure a limit, an aim, a ratio or a part of a distribution.
fn is_limit(text: &str) -> bool {
    const NO: [&str; 20] = [
        "max",
        "min",
        "maximum",
        "minimum",
        "limit",
        "spec",
        "ideal",
        "peak",
        "ratio",
        "speedup",
        "%",
        "total",
        "stdev",
        "goal",
        "soll",
        "ziel",
        "nominal",
        "rated",
        "roofline",
        "datasheet",
    ];
    const STEMS: [&str; 11] = [
        "theor",
        "th\u{e9}or",
        "teor",
        "target",
        "expect",
        "erwart",
        "advertis",
        "requir",
        "predict",
        "estimat",
        "projected",
    ];
    const PARTS: [&str; 6] = ["理论", "目标", "目標", "平均", "合计", "理論"];
    has_word(text, &NO)
        || PARTS.iter().any(|part| text.contains(part))
        || words(text).iter().any(|word| STEMS.iter().any(|stem| word.starts_with(stem)))
}

/// The block size of a row: `4K`, `1 MiB`, or the first word of `4K random read`.
fn block(columns: &[Column], row: &[String]) -> Option<u64> {
    let sized = |text: &str| {
        let lettered = text.ends_with(|c: char| c.is_ascii_alphabetic());
        parse_bytes(text).ok().filter(|bytes| lettered && *bytes > 0)
    };
    let cells = || columns.iter().zip(row);
    let own = cells().find(|(column, _)| column.kind == Kind::Block);
    let own = own.and_then(|(_, cell)| sized(&cell.replace(' ', "")));
    own.or_else(|| {
        let mut words = cells().filter(|(column, _)| column.kind == Kind::Words);
        words.find_map(|(_, cell)| sized(cell.split_whitespace().next()?))
    })
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let inner = line.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let cells: Vec<String> =
        inner.split('|').map(|cell| cell.replace(['*', '`', '~'], "").trim().to_owned()).collect();
    (cells.len() > 1).then_some(cells)
}

/// Words in lower case; `I/O` is one of them.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace("i/o", "io").replace(['µ', 'μ'], "u");
    let parts = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '%' | '_'));
    parts.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Side {
    /// The words of a head, a cell or a sentence.
    pub fn of(text: &str) -> Side {
        let words = words(text);
        let is = |word: &str, stem: &str| {
            let bare = ["rand", "seq", "random", "sequential"];
            let bare = bare.iter().find_map(|start| word.strip_prefix(start)).unwrap_or(word);
            bare == stem || bare.strip_prefix(stem) == Some("s")
        };
        let any = |stem: &str| match stem.is_ascii() {
            true => words.iter().any(|word| is(word, stem)),
            false => text.contains(stem),
        };
        let begins = |start: &str| match start.is_ascii() {
            true => words.iter().any(|word| word.starts_with(start)),
            false => text.contains(start),
        };
        let writes = match (READS.into_iter().any(any), WRITES.into_iter().any(any)) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        };
        let random = match (RANDOM.into_iter().any(begins), SEQUENTIAL.into_iter().any(begins)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        // A path that words deny is another one, and which one they do not say.
        let denied = words.iter().any(|word| {
            let no = ["without", "w/o", "no", "not", "non", "ohne", "sans", "off", "disabled"];
            no.contains(&word.as_str()) || word.starts_with("compat")
        });
        let path = words.iter().find_map(|word| match word.as_str() {
            "gds" | "gpud" | "gpudirect" if !denied => Some("gds"),
            "cpu_gpu" if !denied => Some("staged"),
            "cpuonly" if !denied => Some("host"),
            _ => None,
        });
        Side { writes, random, path }
    }

    /// Whether another one says the same where this one says something.
    fn fits(self, other: Side) -> bool {
        let same = |(one, other): (Option<bool>, Option<bool>)| one.is_none() || one == other;
        let path = self.path.is_none() || self.path == other.path;
        path && [(self.writes, other.writes), (self.random, other.random)].into_iter().all(same)
    }

    /// With what another one says where this one says nothing.
    fn or(self, other: Side) -> Side {
        Side {
            writes: self.writes.or(other.writes),
            random: self.random.or(other.random),
            path: self.path.or(other.path),
        }
    }
}

impl Column {
    fn of(head: &str) -> Column {
        let words = words(head);
        let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
        let begins = |start: &str| words.iter().any(|word| word.starts_with(start));
        let found = words.iter().find_map(|word| unit(word));
        let times = found.is_none_or(|(kind, _)| kind == Kind::Latency);
        let kind = match found {
            _ if is_limit(head) => Kind::No,
            _ if times && let Some(kind) = percentile(head) => kind,
            _ if has_word(head, &PERCENTILES) => Kind::No,
            _ if begins("iops") || has(&["kiops", "miops"]) => Kind::Iops,
            Some((kind, _)) => kind,
            None if begins("thread") || has(&["numjobs", "jobs", "workers"]) => Kind::Threads,
            None if begins("iodepth") || has(&["depth", "qd"]) => Kind::Depth,
            None if has(&["block", "bs", "blocksize", "iosize"])
                || has(&["io"]) && has(&["size"]) =>
            {
                Kind::Block
            }
            None if begins("throughput") || has(&["bandwidth", "bw"]) => Kind::Rate,
            None if begins("lat") => Kind::Latency,
            None => Kind::Words,
        };
        let scales = match kind {
            Kind::Iops if has(&["kiops", "k"]) => Some([1e3; 2]),
            Kind::Iops if has(&["miops", "m"]) => Some([1e6; 2]),
            Kind::Iops => None,
            _ => found.map(|(_, scales)| scales),
        };
        Column { kind, unit: scales, side: Side::of(head) }
    }
}

/// The percentile that a head names: `p99.9`, `p999`, `99.9th`.
fn percentile(head: &str) -> Option<Kind> {
    let lower = head.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.find_map(|word| {
        let digits = word.strip_prefix('p').or(word.strip_suffix("th"))?;
        digits.parse::<f64>().ok()?;
        let nines = digits.len() > 2 && digits.bytes().all(|digit| digit == b'9');
        let text = if nines { format!("99.{}", &digits[2..]) } else { digits.to_owned() };
        Some(Percentile::parse(&text).map_or(Kind::No, Kind::Percentile))
    })
}

/// A unit by its word in lower case: of rates in bytes per second, of times in ns, in both meanings
/// of GB.
fn unit(word: &str) -> Option<(Kind, [f64; 2])> {
    let rate = word.strip_suffix("/sec").or(word.strip_suffix("/s")).or(word.strip_suffix("ps"));
    if let Some(bytes) = rate {
        let scales = match bytes {
            "kib" => [KIB; 2],
            "kb" => [1e3, KIB],
            "mib" => [KIB * KIB; 2],
            "mb" => [1e6, KIB * KIB],
            "gib" => [KIB * KIB * KIB; 2],
            "gb" => [1e9, KIB * KIB * KIB],
            _ => return None,
        };
        // `Gbps` are bits, `GBps` are not, and heads are written in either way.
        return word.contains('/').then_some((Kind::Rate, scales));
    }
    let scale = match word {
        "us" | "usec" | "usecs" => 1e3,
        "ms" | "msec" | "msecs" => 1e6,
        _ => return None,
    };
    Some((Kind::Latency, [scale; 2]))
}

/// The content of a cell.
enum Figure {
    /// A number, and what its unit stands for.
    Is(f64, Option<[f64; 2]>),
    /// A number whose comma may be of decimals or of thousands.
    Open,
    No,
}

/// The number at the beginning of a cell, and the rest.
fn parts(cell: &str) -> (&str, &str) {
    let cell = cell.trim_start_matches(['~', '≈']).trim();
    let end = cell.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    cell.split_at(end.unwrap_or(cell.len()))
}

/// The number at the beginning of a cell and the unit behind it: `12.5 GB/s`, `485k`, `27,700`.
fn figure(cell: &str, kind: Kind, decimal: Option<Decimal>) -> Figure {
    let (text, rest) = parts(cell);
    let rest = without_spread(rest);
    let word = rest.split_whitespace().next().unwrap_or_default();
    let lower = word.to_lowercase().replace(['µ', 'μ'], "u");
    let scales = match lower.as_str() {
        "" | "iops" => None,
        "k" => Some([1e3; 2]),
        "m" => Some([1e6; 2]),
        other => match unit(other) {
            Some((_, scales)) => Some(scales),
            None => return Figure::No,
        },
    };
    // I/Os per second have no decimals: where a comma may be of thousands, it is.
    let is_whole = kind == Kind::Iops && scales.is_none();
    let decimal = if is_whole && text.contains(',') { Some(Decimal::Dot) } else { decimal };
    match number::digits(text, decimal).and_then(|digits| digits.parse().ok()) {
        Some(number) => Figure::Is(number, scales),
        None if number::digits(text, Some(Decimal::Dot)).is_some() => Figure::Open,
        None => Figure::No,
    }
}

/// The words behind a figure without its spread: `± 0.1 GiB/s`, `+/-0.1`.
fn without_spread(rest: &str) -> &str {
    let spread = ["±", "+/-", "+-"].iter().find_map(|sign| rest.trim_start().strip_prefix(sign));
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    spread.map_or(rest, |spread| spread.trim_start().trim_start_matches(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_no_run_are_left_out_and_named() {
        let text = "| GPU | Threads | GDS read (GiB/s) | read (GiB/s) (without GDS) |\n\
                    |---|---|---|---|\n| 0 | 1 | 2.1 ± 0.1 | 1.9 +/- 0.2 |\n\
                    | **avg** | | 9.0 | 4.7 |\n| theoretical | | 13.4 | 13.4 |\n\
                    | target | 16 | 20 | 20 |\n| 0 | max | 14 | 7 |\n| 1 | 8 | 3-4 | 2.0 |\n";
        let lines: Vec<&str> = text.lines().collect();
        let table = table(&lines, 0).unwrap();
        let rates = table.entries.iter().map(|one| (one.below, one.path, one.rate));
        let gib = KIB * KIB * KIB;
        let wanted = [(2, Some("gds"), 2.1), (2, None, 1.9), (7, None, 2.0)];
        assert!(rates.eq(wanted.map(|(at, path, rate)| (at, path, Some(rate * gib)))), "{table:?}");
        let left: Vec<usize> = table.left_out.iter().map(|one| one.0).collect();
        assert_eq!(left, [3, 4, 5, 6, 7], "{table:?}");
        assert_eq!(table.left_out[2].1, "by its words `target` it may be no run");
        for row in ["理论值", "Durchschnitt", "Soll", "expected", "data sheet (theory)"] {
            let text = format!("| drive | read GiB/s |\n|---|---|\n| a | 2 |\n| {row} | 4 |\n");
            assert_eq!(of(&text).len(), 1, "{text}");
        }
        let two = "| threads | ext4 read GiB/s | xfs read GiB/s | write GiB/s |\n\
                   |---|---|---|---|\n| 8 | 2 | 3 | 4 |\n";
        assert!(of(two).len() == 1 && of(two)[0].writes, "{:?}", of(two));
    }

    fn of(text: &str) -> Vec<Entry> {
        let lines: Vec<&str> = text.lines().collect();
        (0..lines.len()).find_map(|at| table(&lines, at)).map(|one| one.entries).unwrap_or_default()
    }

    #[test]
    fn heads_say_unit_setting_and_direction() {
        let all = of("| Threads | BS | GDS Read (GiB/s) | Write (GiB/s) | Read p99 (us) |\n\
                      |---|:-:|---|---|---|\n| 8 | 1M | 6.5 | **2.0** | 900 |\n\
                      | 16 | 1M | 7 | - | 1 |\n");
        let gib = KIB * KIB * KIB;
        assert_eq!(all.len(), 3, "{all:?}");
        let read = &all[0];
        assert_eq!(
            (read.threads, read.block_bytes, read.path),
            (Some(8), Some(1 << 20), Some("gds"))
        );
        assert_eq!((read.rate, read.writes, read.below), (Some(6.5 * gib), false, 2));
        assert_eq!((all[1].rate, all[1].writes, all[1].path), (Some(2.0 * gib), true, None));
        assert_eq!((all[2].threads, all[2].below, read.latency_ns), (Some(16), 3, None));
        let p99 = Percentile::TAIL;
        assert_eq!(
            (&read.percentiles[..], &all[1].percentiles[..]),
            (&[(p99, 900e3)][..], &[][..])
        );
    }

    #[test]
    fn percentiles_are_read_and_other_figures_are_named() {
        let unread = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            let one = table(&lines, 0).unwrap();
            (one.entries, one.unread)
        };
        let (all, left) = unread(
            "| test | read IOPS | p999 | 50th lat | max (us) | score | p100 us | notes |\n\
             |---|---|---|---|---|---|---|---|\n\
             | 4K | 485k | 2 ms | 264 us | 9000 | 7 | 8 | 3 runs |\n",
        );
        let percentiles = [(Percentile::MEDIAN, 264e3), (Percentile::TABLE[2], 2e6)];
        assert_eq!((all.len(), &all[0].percentiles[..]), (1, &percentiles[..]));
        assert_eq!(left, ["max (us)", "score", "p100 us"]);
        let (all, left) =
            unread("| read GiB/s | write GiB/s | p99 ms |\n|---|---|---|\n| 2 | 1 | 4 |\n");
        assert!(all.iter().all(|one| one.percentiles.is_empty()), "{all:?}");
        assert_eq!(left, ["p99 ms"], "of which is not said");
    }

    #[test]
    fn decimal_commas_and_heads_in_other_languages_are_read() {
        let all = of("| Test | Threads | Lesen (GB/s) | Schreiben (GB/s) |\n|--|--|--|--|\n\
                      | read x | 16 | 12,5 | 6,25 |\n| read y | 16 | 8,125 | 5,9 |\n");
        let rates: Vec<_> = all.iter().map(|one| (one.writes, one.rate)).collect();
        let wanted = [(false, 12.5e9), (true, 6.25e9), (false, 8.125e9), (true, 5.9e9)];
        assert_eq!(rates, wanted.map(|(writes, rate)| (writes, Some(rate))));
        let all = of("| 线程 thread | 读 (GB/s) | 写 (GB/s) |\n|--|--|--|\n| 8 | 1.5 | 2 |\n");
        assert_eq!((all.len(), all[1].writes, all[1].rate), (2, true, Some(2e9)));
        let slip = of("| Threads | Read GiB/s |\n|--|--|\n| 8 | 9,3 |\n| 8 | 11.1 |\n");
        assert_eq!(slip[0].rate, Some(9.3 * KIB * KIB * KIB));
    }

    #[test]
    fn a_comma_of_decimals_or_thousands_is_left_out_with_a_reason() {
        let left_out = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            let table = table(&lines, 0).unwrap();
            assert_eq!((table.entries.len(), table.left_out[0].0), (0, 2), "{table:?}");
            table.left_out[0].1.clone()
        };
        let comma = left_out("| Threads | Read (MB/s) |\n|--|--|\n| 8 | 1,234 |\n");
        assert!(comma.contains("`1,234`: whether its comma"), "{comma}");
        let thousands =
            of("| Threads | read GB/s | read IOPS |\n|--|--|--|\n| 8 | 2,5 | 27,700 |\n");
        assert_eq!(thousands[0].iops, Some(27_700.0));
    }

    #[test]
    fn gb_are_of_10_unless_iops_and_block_say_otherwise() {
        let of = |iops: u32| {
            let text =
                format!("| bs | read GB/s | read IOPS |\n|--|--|--|\n| 1M | 12.0 | {iops} |\n");
            of(&text)[0].rate.unwrap()
        };
        assert!((of(11_444) - 12e9).abs() < 1.0);
        assert!((of(12_288) - 12.0 * KIB * KIB * KIB).abs() < 1.0);
        let alone = super::tests::of("| bs | read GB/s |\n|--|--|\n| 1M | 12.0 |\n");
        assert_eq!(alone[0].rate, Some(12e9));
    }

    #[test]
    fn a_latency_without_direction_is_of_the_only_result() {
        for head in ["avg latency (us)", "latency us", "latency (µs)", "lat usec"] {
            let all = of(&format!(
                "| threads | bs | read GiB/s | {head} |\n|---|---|---|---|\n\
                 | 16 | 1M | 12.1 | 826 |\n"
            ));
            assert_eq!((all.len(), all[0].latency_ns), (1, Some(826e3)), "{head}: {all:?}");
        }
        let both = of("| read GiB/s | write GiB/s | lat ms |\n|---|---|---|\n| 2 | 1 | 4 |\n");
        assert!(both.iter().all(|one| one.latency_ns.is_none()), "of which is not said: {both:?}");
    }

    #[test]
    fn rows_and_lines_above_say_the_direction() {
        let all = of("| test | QD | IOPS | latency | bandwidth |\n|--|--|--|--|--|\n\
                      | 4K random read | 32 | 485k | 264 us | 1.99 GB/s |\n\
                      | 1M seq write | 8 | 2,000 | 4 ms | 2.1 GB/s |\n");
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            (all[0].iops, all[0].latency_ns, all[0].depth),
            (Some(485e3), Some(264e3), Some(32))
        );
        assert_eq!(
            (all[0].rate, all[0].random, all[0].block_bytes),
            (Some(1.99e9), Some(true), Some(4096))
        );
        assert_eq!((all[1].writes, all[1].random), (true, Some(false)));
        let table = "| Threads | MB/s |\n|---|---|\n| 4 | 900 |\n";
        assert!(of(table).is_empty(), "nothing says whether it reads");
        assert!(of(&format!("Reads and writes:\n{table}")).is_empty());
        assert_eq!(of(&format!("## Reads\n\n{table}")).len(), 1);
        for other in [
            "| GPU | Name |\n|---|---|\n| 0 | A100 |\n",
            "| Read mode | expected GB/s |\n|---|---|\n| a | 3 |\n",
            "| drive | read GB/s\n| 4 | 900 |\n",
            "| Read | Gbps |\n|---|---|\n| a | 3 |\n",
        ] {
            assert!(of(other).is_empty(), "{other}: {:?}", of(other));
        }
    }
}
