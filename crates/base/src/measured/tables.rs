//! Tables of results that people write by hand, in Markdown: a head with the units of rates, IOPS
//! or latencies and the settings of a load, and a row per result.
//!
//! A row counts where it has a rate or IOPS, and where whether it reads or writes is said: in the
//! head of its column, in the row, or in the lines above the table. Limits, ratios and percentiles
//! are no results.

use super::number::{self, Decimal};
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
}

/// The table that begins at a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub entries: Vec<Entry>,
    /// Cells of rates, IOPS and latencies that are left out: the lines between the head and their
    /// row, and why.
    pub unclear: Vec<(usize, String)>,
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
    /// A limit, a ratio, a percentile.
    No,
    Words,
}

#[derive(Debug, Clone)]
struct Column {
    head: String,
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
    let rows = || lines[at + 2..].iter().take(MOST_ROWS).map_while(|line| cells(line));
    let measured = |row: Vec<String>| {
        let cells = columns.iter().zip(row).filter(|(column, _)| column.is_measured());
        cells.map(|(_, cell)| parts(&cell).0.to_owned()).collect::<Vec<_>>()
    };
    let numbers: Vec<String> = rows().flat_map(measured).collect();
    let decimal = number::decimal(numbers.iter().map(String::as_str));
    let (mut entries, mut unclear) = (Vec::new(), Vec::new());
    let mut is_set = columns.iter().any(is_setting);
    let mut count = 2;
    for row in rows() {
        count += 1;
        let words = columns.iter().zip(&row).filter(|(one, _)| one.kind == Kind::Words);
        let own = words.fold(Side::default(), |side, (_, cell)| side.or(Side::of(cell)));
        is_set |= own != Side::default();
        let (all, why) = of_row(&columns, &row, own.or(above), decimal);
        entries.extend(all.into_iter().map(|one| Entry { below: count - 1, ..one }));
        unclear.extend(why.into_iter().map(|why| (count - 1, why)));
    }
    let is_read = !entries.is_empty() || !unclear.is_empty();
    (is_set && is_read).then_some(Table { entries, unclear, lines: count })
}

/// The results of a row: one for each direction and path that its columns have; and why cells are
/// left out.
fn of_row(
    columns: &[Column],
    row: &[String],
    own: Side,
    decimal: Option<Decimal>,
) -> (Vec<Entry>, Vec<String>) {
    let mut entries: Vec<(Side, Entry)> = Vec::new();
    let mut unclear = Vec::new();
    let cells = || columns.iter().zip(row);
    let has_figure = |cell: &str| cell.contains(|c: char| c.is_ascii_digit());
    // IOPS first: they decide which GB a rate is in.
    let of_kind = |kind: Kind| cells().filter(move |(column, _)| column.kind == kind);
    let measured = [Kind::Iops, Kind::Rate, Kind::Latency].into_iter().flat_map(of_kind);
    for (column, cell) in measured {
        let side = column.side.or(own);
        let same = |other: &&Column| other.kind == column.kind && other.side.or(own) == side;
        let twin = cells().filter(|(_, cell)| has_figure(cell)).map(|(other, _)| other);
        let twin = twin.filter(same).find(|other| !std::ptr::eq(*other, column));
        let mut leave = |why: String| unclear.extend(side.writes.map(|_| why));
        if let Some(twin) = twin.filter(|_| has_figure(cell)) {
            leave(format!(
                "column \"{}\": how it differs from \"{}\" is not understood",
                column.head, twin.head
            ));
            continue;
        }
        let (number, unit) = match figure(cell, column.kind, decimal) {
            Figure::Is(number, unit) => (number, unit),
            Figure::Open => {
                let why = "whether its comma is one of decimals is not said";
                leave(format!("\"{cell}\": {why}"));
                continue;
            }
            Figure::No => continue,
        };
        let value = unit.or(column.unit).map(|scales| scales.map(|scale| number * scale));
        if value.is_none() && column.kind != Kind::Iops {
            continue;
        }
        // A latency without a direction is of the row's only result.
        let bare = column.kind == Kind::Latency && column.side == Side::default();
        let side = match entries.as_slice() {
            [(only, _)] if bare => *only,
            _ => side,
        };
        let at = entries.iter().position(|(known, _)| *known == side);
        let at = at.unwrap_or_else(|| {
            entries.push((side, Entry::default()));
            entries.len() - 1
        });
        let entry = &mut entries[at].1;
        match (column.kind, value) {
            (Kind::Iops, value) => entry.iops = Some(value.map_or(number, |value| value[0])),
            (Kind::Latency, Some(value)) => entry.latency_ns = Some(value[0]),
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
    let number = |kind: Kind| {
        let (_, cell) = cells().find(|(column, _)| column.kind == kind)?;
        cell.split_whitespace().next()?.parse::<u64>().ok()
    };
    let whole = entries.into_iter().filter_map(|(side, entry)| {
        let measured = entry.rate.is_some() || entry.iops.is_some();
        let writes = side.writes.filter(|_| measured)?;
        Some(Entry {
            writes,
            random: side.random,
            path: side.path,
            threads: number(Kind::Threads),
            depth: number(Kind::Depth),
            block_bytes: block(columns, row),
            ..entry
        })
    });
    (whole.collect(), unclear)
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
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '%' | '_'));
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
        let path = words.iter().find_map(|word| match word.as_str() {
            "gds" | "gpud" | "gpudirect" => Some("gds"),
            "cpu_gpu" => Some("staged"),
            "cpuonly" => Some("host"),
            _ => None,
        });
        Side { writes, random, path }
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
        const NO: [&str; 16] = [
            "p50",
            "p90",
            "p95",
            "p99",
            "max",
            "min",
            "limit",
            "expected",
            "theoretical",
            "spec",
            "ideal",
            "ratio",
            "speedup",
            "%",
            "total",
            "stdev",
        ];
        let words = words(head);
        let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
        let begins = |start: &str| words.iter().any(|word| word.starts_with(start));
        let found = words.iter().find_map(|word| unit(word));
        let kind = match found {
            _ if has(&NO) => Kind::No,
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
        Column { head: head.to_owned(), kind, unit: scales, side: Side::of(head) }
    }

    fn is_measured(&self) -> bool {
        matches!(self.kind, Kind::Rate | Kind::Iops | Kind::Latency)
    }
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
    // I/Os per second have no decimals.
    let decimal = decimal.or((kind == Kind::Iops && scales.is_none()).then_some(Decimal::Dot));
    match number::digits(text, decimal).and_then(|digits| digits.parse().ok()) {
        Some(number) => Figure::Is(number, scales),
        None if number::digits(text, Some(Decimal::Dot)).is_some() => Figure::Open,
        None => Figure::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn cells_that_have_two_meanings_are_left_out_with_a_reason() {
        let left_out = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            let table = table(&lines, 0).unwrap();
            assert_eq!((table.entries.len(), table.unclear[0].0), (0, 2), "{table:?}");
            table.unclear[0].1.clone()
        };
        let comma = left_out("| Threads | Read (MB/s) |\n|--|--|\n| 8 | 1,234 |\n");
        assert!(comma.contains("\"1,234\""), "{comma}");
        let heads = "| Threads | x GB/s | y GB/s |\n|--|--|--|\n| 8 | 1.5 | 2.5 |\n";
        let read = heads.replace("| 8 ", "| read 8 ");
        let twins = left_out(&read.replace("Threads", "Test"));
        assert!(twins.contains("\"x GB/s\": how it differs from \"y GB/s\""), "{twins}");
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
