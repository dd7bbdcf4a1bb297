//! `iostat`, with or without `-x`, as of sysstat 10 to 12. Its kB are 1024 bytes and its MB 1024 kB
//! (iostat(1), -k and -m).

use gpuio_base::measured::{Measured, Sample, iostat};

use crate::foreign::Direction;
use crate::post::seen::Sight;

const KIB: f64 = 1024.0;
const SECTOR: f64 = 512.0;
/// Times are printed in hundredths of a millisecond.
const HALF_A_DIGIT_MS: f64 = 0.005;

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
    /// The same by the requests of a second and their times, where the tool has all of them.
    pub(crate) waiting: Option<f64>,
    /// By how much that may be off by its printed digits.
    pub(crate) waiting_off: f64,
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

/// The devices at the bottom that move more than a hundredth of the busiest one's bytes.
pub(crate) fn moving(disks: &[Disk], direction: Direction) -> Vec<&Disk> {
    let bottom: Vec<&Disk> = disks.iter().filter(|disk| !disk.is_made_of_others()).collect();
    let bottom = if bottom.is_empty() { disks.iter().collect() } else { bottom };
    let most = bottom.iter().map(|disk| moved(disk, direction)).fold(0.0, f64::max);
    bottom.into_iter().filter(|disk| moved(disk, direction) > most / 100.0).collect()
}

/// The bytes per second of the busier direction of the drives at the bottom.
pub(crate) fn bytes_of(disks: &[Disk]) -> f64 {
    let sum = |side| moving(disks, side).iter().map(|disk| moved(disk, side)).sum::<f64>();
    sum(Direction::Read).max(sum(Direction::Write))
}

/// The bytes per second that a device moves.
pub(crate) fn moved(disk: &Disk, direction: Direction) -> f64 {
    match direction {
        Direction::Read => disk.read_bytes,
        Direction::Write => disk.written_bytes,
        Direction::Both => disk.read_bytes + disk.written_bytes,
    }
}

/// The mean of the reports by device. The first of several is since boot.
pub(super) fn of(tables: &[Measured]) -> Option<Sight> {
    let mut all: Vec<(Disk, f64)> = Vec::new();
    for table in tables {
        let rows = table.rows.iter().skip(table.first_report);
        for row in rows.filter(|row| row.of != iostat::PROCESSORS) {
            let Some(disk) = disk(table, row) else { continue };
            match all.iter_mut().find(|(known, _)| known.name == disk.name) {
                Some((known, count)) => {
                    *count += 1.0;
                    known.mix(&disk, 1.0 / *count);
                }
                None => all.push((disk, 1.0)),
            }
        }
    }
    let disks: Vec<Disk> = all.into_iter().map(|(disk, _)| disk).collect();
    (!disks.is_empty()).then_some(Sight::Disks(disks))
}

fn disk(table: &Measured, row: &Sample) -> Option<Disk> {
    let get = |names: &[&str]| table.value(row, names);
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
    let direction = |rate: &[&str], time: &[&str]| Some((get(rate)?, get(time)?));
    let times = [direction(&["r/s"], &["r_await"]), direction(&["w/s"], &["w_await"])];
    let others = [direction(&["d/s"], &["d_await"]), direction(&["f/s"], &["f_await"])];
    let all = times.into_iter().chain(others.into_iter().flatten().map(Some));
    let waiting: Option<Vec<(f64, f64)>> = all.collect();
    let in_flight = |all: &Vec<(f64, f64)>| all.iter().map(|(rate, ms)| rate * ms / 1e3).sum();
    let off = |all: Vec<(f64, f64)>| all.iter().map(|(rate, _)| rate * HALF_A_DIGIT_MS / 1e3).sum();
    let larger = if read >= written { "rareq-sz" } else { "wareq-sz" };
    Some(Disk {
        name: row.of.clone(),
        reads: get(&["r/s"]),
        writes: get(&["w/s"]),
        read_bytes: read,
        written_bytes: written,
        queue: get(&["aqu-sz", "avgqu-sz"]),
        waiting: waiting.as_ref().map(in_flight),
        waiting_off: waiting.map_or(0.0, off),
        request_bytes: scaled(&[larger], KIB).or(scaled(&["avgrq-sz"], SECTOR)),
        busy: get(&["%util"]),
    })
}

impl Disk {
    /// Moves each figure towards another's by a share.
    fn mix(&mut self, other: &Disk, share: f64) {
        let mix = |old: &mut f64, new: f64| *old += (new - *old) * share;
        mix(&mut self.read_bytes, other.read_bytes);
        mix(&mut self.written_bytes, other.written_bytes);
        mix(&mut self.waiting_off, other.waiting_off);
        for (old, new) in [
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.queue, other.queue),
            (&mut self.waiting, other.waiting),
            (&mut self.request_bytes, other.request_bytes),
            (&mut self.busy, other.busy),
        ] {
            if let (Some(old), Some(new)) = (old.as_mut(), new) {
                mix(old, new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;
    use crate::post::seen::read;

    fn disks(text: &str) -> Vec<Disk> {
        match read(&lines(text), 0).unwrap().0.sight {
            Sight::Disks(disks) => disks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_only_report_below_the_kernel_s_line_is_the_mean_since_boot() {
        let text = "$ iostat -x 5\nLinux 5.15.0-1 (a1)  11/11/24  _x86_64_ (96 CPU)\n\nDevice  r/s \
                    rkB/s %util\nnvme1n1 9.00 900.00 1.00\n";
        let sight = |text: &str| {
            let lines = lines(text);
            let at = lines.iter().position(|line| line.text.starts_with("Device")).unwrap();
            read(&lines, at).unwrap().0.sight
        };
        assert_eq!(sight(text), Sight::SinceBoot);
        let later = "Device  r/s rkB/s %util\nnvme1n1 5.00 500.00 1.00\n";
        let second = text.replace("1.00\n", "1.25\n");
        let two = format!("{text}\n{later}");
        for other in [text.replace("-x 5", "-xy 5"), later.to_owned(), two, second] {
            assert!(matches!(sight(&other), Sight::Disks(_)), "{other}");
        }
    }

    #[test]
    fn columns_that_were_cut_and_lines_that_were_joined_are_read() {
        let cut = disks(
            "Device  r/s rkB/s r_await rareq-sz w/s wkB/s . . .  %util\nmd127 54360.00 \
                      6958080.00 0.00 128.00 0.00 0.00 . . . 0.00\nnvme2n1 27173.00 3478144.00 \
                      1.03 128.00 0.00 0.00  . . .   100.00\nAlso",
        );
        assert_eq!(cut.len(), 2);
        assert_eq!((cut[1].read_bytes, cut[1].busy), (3_478_144.0 * KIB, Some(100.0)));
        assert_eq!(cut[1].request_bytes, Some(128.0 * KIB));
        let folded = disks(
            "Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await \
                         w_await svctm %util sdb 0.00 0.00 2077.00 0.00 531712.00 0.00 512.00 1.79 \
                         0.86 0.86 0.00 0.48 100.00",
        );
        assert_eq!((folded[0].name.as_str(), folded[0].queue), ("sdb", Some(1.79)));
        assert_eq!((folded[0].request_bytes, folded[0].reads), (Some(262_144.0), Some(2077.0)));
        let waiting = folded[0].waiting.unwrap();
        assert!((waiting - 1.786).abs() < 0.001 && folded[0].waiting_off < 0.011, "{folded:?}");
        assert_eq!(cut[1].waiting, None, "w_await was cut off");
    }

    #[test]
    fn the_first_of_several_reports_is_since_boot() {
        let text = "Device r/s w/s rMB/s wMB/s %util\nsda 1 1 1 1 1\n\navg-cpu: %user\n 0.1 0.2\n\n\
                    Device r/s w/s rMB/s wMB/s %util\nsda 0 8 0 800 100\n\n\
                    Device r/s w/s rMB/s wMB/s %util\nsda 0 8 0 600 90\n";
        let disks = disks(text);
        assert_eq!(disks.len(), 1);
        assert!((disks[0].written_bytes / KIB / KIB - 700.0).abs() < 1e-6, "{disks:?}");
        assert_eq!(disks[0].busy, Some(95.0));
        assert_eq!(read(&lines("Device Id r/s\n"), 0), None);
    }
}
