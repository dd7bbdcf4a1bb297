//! Tables in texts: of GPUs with the drives near to them against the machine, of thread counts with
//! IOPS against the result lines.

use gpuio_base::units::whole;
use gpuio_record::facts::Machine;

use super::{Known, say, words};
use crate::post::line::Line;
use crate::post::result::table_at;
use crate::post::{About, Post, Run, Statement};

pub(super) fn hold(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let mut all = affinity(post, known);
    all.extend(counts(post));
    all.extend(left_out(post));
    all
}

/// Rows with figures that are no results, or not all of whose figures are taken.
pub(super) fn left_out(post: &Post) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < post.lines.len() {
        let Some((table, until)) = table_at(&post.lines, at) else {
            at += 1;
            continue;
        };
        all.extend(table.left_out.iter().map(|(below, why)| {
            let text = format!("Not all figures of this row are taken as results: {why}.");
            say(post, About::LeftOut, &[post.lines[at + below].number], text)
        }));
        at = until;
    }
    all
}

/// A row of a table of affinities.
#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    line: usize,
    gpus: Vec<u32>,
    gpu_buses: Vec<u32>,
    drives: Vec<String>,
    drive_buses: Vec<u32>,
}

fn affinity(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let rows = rows(&post.lines);
    let mut all = Vec::new();
    let mut from = 0;
    for to in 1..=rows.len() {
        if rows.get(to).is_some_and(|next| next.line <= rows[to - 1].line + 5) {
            continue;
        }
        let table = &rows[from..to];
        from = to;
        // The machine is the one that has all of its drives at some address.
        let fits = |known: &&Known<'_>| {
            let mut drives = table.iter().flat_map(|row| &row.drives);
            let mut gpus = table.iter().flat_map(|row| row.gpus.iter().zip(&row.gpu_buses));
            let has = drives.all(|name| bus_of_drive(known.machine, name).is_some());
            has && gpus.any(|(gpu, bus)| bus_of_gpu(known.machine, *gpu) == Some(*bus))
        };
        if let Some(known) = known.iter().find(fits).filter(|_| table.len() > 1) {
            all.extend(held(post, table, known));
        }
    }
    all
}

fn held(post: &Post, table: &[Row], known: &Known<'_>) -> Vec<Statement> {
    let machine = known.machine;
    let mut all = Vec::new();
    let (mut wrong, mut shifted) = (Vec::new(), 0);
    for (index, row) in table.iter().enumerate() {
        let gpus = row.gpus.iter().zip(&row.gpu_buses);
        for (gpu, printed) in gpus {
            let bus = bus_of_gpu(machine, *gpu);
            if let Some(bus) = bus.filter(|bus| bus != printed) {
                let words = format!("GPU {gpu} is at {bus:02x}, the table has {printed:02x}");
                wrong.push((row.line, words));
            }
        }
        let own: Option<Vec<u32>> =
            row.drives.iter().map(|name| bus_of_drive(machine, name)).collect();
        let Some(own) = own else { continue };
        if own == row.drive_buses {
            continue;
        }
        let listed = |buses: &[u32]| {
            words::and(&buses.iter().map(|bus| format!("{bus:02x}")).collect::<Vec<_>>())
        };
        let printed = match row.drive_buses.is_empty() {
            true => "no address".to_owned(),
            false => listed(&row.drive_buses),
        };
        let other = table.iter().position(|row_of| {
            let buses: Option<Vec<u32>> =
                row_of.drives.iter().map(|name| bus_of_drive(machine, name)).collect();
            !row.drive_buses.is_empty() && buses.as_ref() == Some(&row.drive_buses)
        });
        let whose = other.map(|at| format!(", which is {}", words::and(&table[at].drives)));
        shifted += usize::from(other.is_some_and(|at| at + 1 == index));
        let names = words::and(&row.drives);
        let is = if row.drives.len() == 1 { "is" } else { "are" };
        let text = format!(
            "{names} {is} at {}, the table has {printed}{}",
            listed(&own),
            whose.unwrap_or_default()
        );
        wrong.push((row.line, text));
    }
    let lines: Vec<usize> = table.iter().map(|row| row.line).collect();
    if wrong.is_empty() {
        let text = "The table of GPUs and drives agrees with the machine of this text.".to_owned();
        all.push(say(post, About::Agreement, &lines, text));
    } else {
        let how = match shifted > 0 {
            true => " The column of addresses is shifted down by a row.",
            false => "",
        };
        let listed: Vec<String> = wrong.iter().map(|(_, words)| words.clone()).collect();
        let text = format!(
            "The table of GPUs and drives does not agree with the machine of this text: {}.{how}",
            listed.join("; ")
        );
        let lines: Vec<usize> = wrong.iter().map(|(line, _)| *line).collect();
        all.push(say(post, About::Contradiction, &lines, text));
    }
    all
}

fn bus(address: &str) -> Option<u32> {
    let (_, rest) = address.split_once(':')?;
    u32::from_str_radix(rest.split(':').next()?, 16).ok()
}

fn bus_of_gpu(machine: &Machine, index: u32) -> Option<u32> {
    let mut found = machine.gpus.iter().filter(|gpu| gpu.index.known() == Some(&index));
    let first = found.next()?;
    // Two machines in one: nothing is known of either.
    found.next().is_none().then(|| bus(first.pci.as_deref()?))?
}

fn bus_of_drive(machine: &Machine, name: &str) -> Option<u32> {
    let is = |own: &str| own == name || own.strip_prefix(name).is_some_and(|end| end == "n1");
    let drive = machine.block.iter().find(|drive| is(&drive.facts.name))?;
    match &drive.pci[..] {
        [one] => bus(one),
        _ => None,
    }
}

/// Rows of `GPU #, its bus, drive, its bus`, on one line each or with a line for each cell.
fn rows(lines: &[Line]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut open: Option<Row> = None;
    for line in lines {
        let text = line.text.trim();
        let cell = text.ends_with('|');
        if !cell {
            rows.extend(open.take().filter(Row::is_whole));
            rows.extend(row(line.number, text).filter(Row::is_whole));
            continue;
        }
        let Some(more) = row(line.number, text.trim_end_matches(['|', ' '])) else {
            rows.extend(open.take().filter(Row::is_whole));
            continue;
        };
        let done = open.as_ref().is_some_and(|row| !row.drives.is_empty()) && !more.gpus.is_empty();
        if done {
            rows.extend(open.take().filter(Row::is_whole));
        }
        let row = open.get_or_insert_with(|| Row { line: line.number, ..Row::default() });
        row.gpus.extend(more.gpus);
        let buses = if row.drives.is_empty() && more.drives.is_empty() {
            &mut row.gpu_buses
        } else {
            &mut row.drive_buses
        };
        buses.extend(more.gpu_buses);
        row.drives.extend(more.drives);
        row.drive_buses.extend(more.drive_buses);
    }
    rows.extend(open.filter(Row::is_whole));
    rows
}

impl Row {
    fn is_whole(&self) -> bool {
        !self.gpus.is_empty() && self.gpus.len() == self.gpu_buses.len() && !self.drives.is_empty()
    }
}

/// The numbers, addresses and drives of a line that has nothing else but paths and words in
/// brackets before them.
fn row(line: usize, text: &str) -> Option<Row> {
    let mut row = Row { line, ..Row::default() };
    for word in text.split([' ', ',', '|']).filter(|word| !word.is_empty()) {
        let after_drives = !row.drives.is_empty();
        if let Some(hex) = word.strip_prefix("0x") {
            let bus = u32::from_str_radix(hex, 16).ok()?;
            let buses = if after_drives { &mut row.drive_buses } else { &mut row.gpu_buses };
            buses.push(bus);
        } else if let Ok(number) = word.parse() {
            if after_drives || !row.gpu_buses.is_empty() {
                return None;
            }
            row.gpus.push(number);
        } else if word.strip_prefix("nvme").is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == 'n')
        }) {
            row.drives.push(word.to_owned());
        } else {
            let begins = row == Row { line, ..Row::default() } && word.starts_with(['/', '(']);
            let instead_of_a_bus = after_drives && row.drive_buses.is_empty();
            if !begins && !instead_of_a_bus {
                return None;
            }
        }
    }
    (row != Row { line, ..Row::default() }).then_some(row)
}

/// Rows of a thread count and IOPS below a head with both words, against the result lines.
fn counts(post: &Post) -> Vec<Statement> {
    let lines = &post.lines;
    let head = |line: &Line| {
        let text = line.text.to_lowercase();
        text.contains("iops") && (text.contains("thread") || text.contains("total_time"))
    };
    let mut all = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| head(line)) {
        let table = table_of_counts(&lines[index + 1..]);
        if table.len() < 2 {
            continue;
        }
        let above: Vec<&Run> = post.runs.iter().filter(|run| run.line < line.number).collect();
        let (mut right, mut wrong) = (0, Vec::new());
        for (at, threads, iops) in &table {
            let of =
                |run: &&&Run| run.got.as_ref().is_some_and(|got| got.threads == Some(*threads));
            let Some(own) = above.iter().rev().find(of).and_then(|run| run.got.as_ref()?.iops)
            else {
                continue;
            };
            if (own / iops - 1.0).abs() < 0.002 {
                right += 1;
            } else {
                let (said, is) = (words::count(*iops), words::count(own));
                let words = format!("{threads} threads have {is} IOPS, the table says {said}");
                wrong.push((*at, words));
            }
        }
        for (at, words) in &wrong {
            all.push(say(post, About::Contradiction, &[*at], format!("{words}.")));
        }
        if wrong.is_empty() && right > 1 {
            let text = format!("The table's {right} rows agree with the result lines above it.");
            let lines: Vec<usize> = table.iter().map(|row| row.0).collect();
            all.push(say(post, About::Agreement, &lines, text));
        }
    }
    all
}

/// The first rows of two numbers each; a page may print each cell on its own line.
fn table_of_counts(lines: &[Line]) -> Vec<(usize, u64, f64)> {
    let mut cells: Vec<(usize, f64)> = Vec::new();
    for line in lines {
        let text = line.text.trim().replace([',', '|'], "");
        let numbers: Option<Vec<f64>> =
            text.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers {
            Some(numbers) if !numbers.is_empty() && numbers.len() <= 2 => {
                cells.extend(numbers.into_iter().map(|number| (line.number, number)));
            }
            _ if text.chars().all(|c| c == '-' || c == ' ') && cells.is_empty() => {}
            _ => break,
        }
    }
    let row = |pair: &[(usize, f64)]| {
        let threads = pair[0].1;
        let fits = (1.0..1e6).contains(&threads) && threads.fract() == 0.0;
        fits.then(|| (pair[0].0, whole(threads), pair[1].1))
    };
    cells.chunks_exact(2).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_gpus_drives_and_their_buses() {
        let text = "0, 1 0x34, 0x36 nvme2, nvme3 NVMe PCIe\n4, 5 0x57, 0x59 nvme4, nvme5 \
                    0x2e, 0x2f\n\
                    /raid1 (/dev/md1) 0, 1 0x07, 0x0F nvme0, nvme1 0x08, 0x09\nplain words 0x12\n\
                    0, 1 |\n0x07, 0x0F |\nnvme0, nvme1 |\n0x08, 0x09 |\n2, 3 |\n0x47, 0x4e |\n\
                    nvme4, nvme5 |\n0x52, 0x53 |\n";
        let rows = rows(&crate::post::line::lines(text));
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert_eq!((rows[0].drive_buses.len(), &rows[1].drive_buses[..]), (0, &[0x2e, 0x2f][..]));
        assert_eq!((&rows[2].gpu_buses[..], rows[2].gpus.len()), (&[7, 15][..], 2));
        assert_eq!((&rows[4].drives[..], rows[4].line), (&["nvme4".into(), "nvme5".into()][..], 9));
    }

    #[test]
    fn tables_of_threads_are_held_against_result_lines() {
        let line = |threads: u32, ops: u32| {
            format!(
                "IoType: RANDREAD XferType: GPUD Threads: {threads} DataSetSize: 4/4(KiB) IOSize: \
                 4(KiB) Throughput: 0.1 GiB/sec, Avg_Latency: 1.0 usecs ops: {ops} total_time \
                 100.0 secs\n"
            )
        };
        let text = line(4, 100_000) + &line(8, 200_000) + "Thread Count (-w) IOPS\n4 1,000\n";
        let said = |end: &str| counts(&crate::post::read("post", &(text.clone() + end)));
        assert!(said("8 2,000\n")[0].words.contains("2 rows agree"));
        let wrong = said("8 2,500\n");
        assert!(
            wrong[0].words.contains("the table says 2.5") && wrong[0].lines == [5],
            "{wrong:?}"
        );
    }
}
