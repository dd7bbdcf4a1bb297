//! `iostat`, with or without `-x`, as of sysstat 10 to 12. Its kB are 1024 bytes and its MB 1024 kB
//! (iostat(1), -k and -m).

use crate::post::line::Line;
use crate::post::seen::{Sight, is_gap, words};

const KIB: f64 = 1024.0;
const SECTOR: f64 = 512.0;

/// A device; absent columns were not printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) reads: Option<f64>,
    pub(crate) writes: Option<f64>,
    /// Bytes per second.
    pub(crate) read_bytes: f64,
    pub(crate) written_bytes: f64,
    /// Requests in the queue and at the device, on average.
    pub(crate) queue: Option<f64>,
    /// Bytes of a request, of both directions together where the tool has one column.
    pub(crate) request_bytes: Option<f64>,
    /// Per cent of the time with a request.
    pub(crate) busy: Option<f64>,
}

impl Disk {
    /// Whether it lies on other devices of the list: an array, a volume, a loop device.
    pub(crate) fn is_made_of_others(&self) -> bool {
        ["md", "dm-", "loop"].iter().any(|begin| self.name.starts_with(begin))
    }
}

/// The reports from a line on. The first of several is since boot.
pub(super) fn read(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let mut reports: Vec<Vec<Disk>> = Vec::new();
    let mut until = index;
    let mut at = index;
    while at < lines.len() {
        let text = lines[at].text.trim();
        if is_head(text) {
            let (disks, end) = report(lines, at);
            if !disks.is_empty() {
                reports.push(disks);
            }
            (at, until) = (end, end);
            continue;
        }
        let between =
            is_gap(text) || text.to_lowercase().starts_with("avg-cpu") || is_figures(text);
        if at == index || !between {
            break;
        }
        at += 1;
    }
    if reports.len() > 1 {
        reports.remove(0);
    }
    let disks = mean(reports);
    (!disks.is_empty()).then_some((Sight::Disks(disks), until.max(index + 1)))
}

fn is_head(text: &str) -> bool {
    let begins = text.starts_with("Device:") || text.starts_with("Device ");
    begins
        && ["r/s", "rkB/s", "rMB/s", "tps", "kB_read/s"].iter().any(|column| text.contains(column))
}

fn is_figures(text: &str) -> bool {
    text.split_whitespace().all(|word| word.parse::<f64>().is_ok())
}

/// A head's columns, and the words behind them where a page joined the lines.
fn columns(text: &str) -> (Vec<&str>, Vec<&str>) {
    let mut all = words(text);
    let is_column = |word: &&str| {
        let known = ["await", "svctm", "tps", "r_await", "w_await", "d_await", "f_await", "…"];
        let marks = ["/s", "%", "-sz", "kB_", "MB_", "Blk_"];
        known.contains(word) || marks.iter().any(|mark| word.contains(mark))
    };
    let count = all.iter().skip(1).take_while(|word| is_column(word)).count();
    let rest = all.split_off(count + 1);
    all.remove(0);
    (all, rest)
}

fn report(lines: &[Line], head: usize) -> (Vec<Disk>, usize) {
    let (columns, folded) = columns(&lines[head].text);
    let mut disks: Vec<Disk> = Vec::new();
    disks.extend(folded.chunks(columns.len() + 1).filter_map(|row| disk(&columns, row)));
    let mut at = head + 1;
    while let Some(line) = lines.get(at) {
        let row = words(&line.text);
        let found = if row.len() == columns.len() + 1 { disk(&columns, &row) } else { None };
        let cut = is_gap(&line.text) && !line.text.trim().is_empty();
        if found.is_none() && !cut {
            break;
        }
        disks.extend(found);
        at += 1;
    }
    (disks, at)
}

fn disk(columns: &[&str], row: &[&str]) -> Option<Disk> {
    let (name, cells) = row.split_first()?;
    let cells = cells.iter().map(|cell| cell.replace(',', ".").parse::<f64>().ok());
    let cells: Vec<Option<f64>> = cells.collect();
    let get = |names: &[&str]| {
        let at = columns.iter().position(|column| names.contains(column))?;
        cells.get(at).copied().flatten()
    };
    let scaled = |names: &[&str], scale: f64| get(names).map(|value| value * scale);
    let bytes = |kib: &[&str], mib: &[&str], sectors: &[&str]| {
        let small = scaled(kib, KIB).or(scaled(mib, KIB * KIB));
        small.or(scaled(sectors, SECTOR))
    };
    let read = bytes(&["rkB/s", "kB_read/s"], &["rMB/s", "MB_read/s"], &["rsec/s", "Blk_read/s"]);
    let written =
        bytes(&["wkB/s", "kB_wrtn/s"], &["wMB/s", "MB_wrtn/s"], &["wsec/s", "Blk_wrtn/s"]);
    // A page may have cut the columns of one direction.
    read.or(written)?;
    let (read, written) = (read.unwrap_or(0.0), written.unwrap_or(0.0));
    let larger = if read >= written { "rareq-sz" } else { "wareq-sz" };
    Some(Disk {
        name: (*name).to_owned(),
        reads: get(&["r/s"]),
        writes: get(&["w/s"]),
        read_bytes: read,
        written_bytes: written,
        queue: get(&["aqu-sz", "avgqu-sz"]),
        request_bytes: scaled(&[larger], KIB).or(scaled(&["avgrq-sz"], SECTOR)),
        busy: get(&["%util"]),
    })
}

/// The mean of several reports by device.
fn mean(reports: Vec<Vec<Disk>>) -> Vec<Disk> {
    let mut all: Vec<(Disk, f64)> = Vec::new();
    for disk in reports.into_iter().flatten() {
        match all.iter_mut().find(|(known, _)| known.name == disk.name) {
            Some((known, count)) => {
                let share = 1.0 / (*count + 1.0);
                let mix = |old: &mut f64, new: f64| *old += (new - *old) * share;
                mix(&mut known.read_bytes, disk.read_bytes);
                mix(&mut known.written_bytes, disk.written_bytes);
                for (old, new) in [
                    (&mut known.reads, disk.reads),
                    (&mut known.writes, disk.writes),
                    (&mut known.queue, disk.queue),
                    (&mut known.request_bytes, disk.request_bytes),
                    (&mut known.busy, disk.busy),
                ] {
                    if let (Some(old), Some(new)) = (old.as_mut(), new) {
                        mix(old, new);
                    }
                }
                *count += 1.0;
            }
            None => all.push((disk, 1.0)),
        }
    }
    all.into_iter().map(|(disk, _)| disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;

    fn of(text: &str) -> Vec<Disk> {
        match read(&lines(text), 0) {
            Some((Sight::Disks(disks), _)) => disks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_that_were_cut_and_lines_that_were_joined_are_read() {
        let cut = of("Device  r/s rkB/s r_await rareq-sz w/s wkB/s . . .  %util\nmd127 54360.00 \
                      6958080.00 0.00 128.00 0.00 0.00 . . . 0.00\nnvme2n1 27173.00 3478144.00 \
                      1.03 128.00 0.00 0.00  . . .   100.00\nAlso");
        assert_eq!(cut.len(), 2);
        assert_eq!((cut[1].read_bytes, cut[1].busy), (3_478_144.0 * KIB, Some(100.0)));
        assert_eq!(cut[1].request_bytes, Some(128.0 * KIB));
        let folded =
            of("Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await \
                         w_await svctm %util sdb 0.00 0.00 2077.00 0.00 531712.00 0.00 512.00 1.79 \
                         0.86 0.86 0.00 0.48 100.00");
        assert_eq!((folded[0].name.as_str(), folded[0].queue), ("sdb", Some(1.79)));
        assert_eq!((folded[0].request_bytes, folded[0].reads), (Some(262_144.0), Some(2077.0)));
    }

    #[test]
    fn the_first_of_several_reports_is_since_boot() {
        let text = "Device r/s w/s rMB/s wMB/s %util\nsda 1 1 1 1 1\n\navg-cpu: %user\n 0.1 0.2\n\n\
                    Device r/s w/s rMB/s wMB/s %util\nsda 0 8 0 800 100\n\n\
                    Device r/s w/s rMB/s wMB/s %util\nsda 0 8 0 600 90\n";
        let disks = of(text);
        assert_eq!(disks.len(), 1);
        assert!((disks[0].written_bytes / KIB / KIB - 700.0).abs() < 1e-6, "{disks:?}");
        assert_eq!(disks[0].busy, Some(95.0));
        assert_eq!(read(&lines("Device Id r/s\n"), 0), None);
    }
}
