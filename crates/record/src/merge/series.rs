//! Series of all ranks as one.

use crate::Point;

/// Points of one job, added on a grid of one interval.
#[derive(Debug, Default)]
pub(crate) struct SeriesSum {
    /// The grid: nanoseconds.
    step_ns: i64,
    /// Bytes and I/Os of reads and of writes with their latencies, and the largest latency, by the
    /// number of the cell.
    cells: std::collections::BTreeMap<i64, Cell>,
    last_ns: i64,
    /// Whether some rank's points lack their latencies.
    no_latencies: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    counts: [u64; 6],
    max_ns: Option<u64>,
}

fn counts(point: &Point) -> [u64; 6] {
    [
        point.read_bytes,
        point.write_bytes,
        point.read_ios,
        point.write_ios,
        point.read_latency_ns.unwrap_or(0),
        point.write_latency_ns.unwrap_or(0),
    ]
}

fn signed(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl SeriesSum {
    /// The grid is that of the series of rank 0: its longest interval.
    pub(crate) fn like(points: &[Point]) -> SeriesSum {
        let step_ns = points.iter().map(|point| signed(point.span_ns)).max().unwrap_or(1).max(1);
        SeriesSum { step_ns, ..SeriesSum::default() }
    }

    /// Adds the points of one rank. The counts of an interval are spread evenly over it; the sums
    /// are kept exactly.
    pub(crate) fn add(&mut self, points: &[Point]) {
        for point in points {
            let (end, span) = (point.at_ns, signed(point.span_ns).max(1));
            let begin = end.saturating_sub(span);
            self.last_ns = self.last_ns.max(end);
            self.no_latencies |= point.read_latency_ns.is_none();
            let (first, last) = (self.cell(begin), self.cell(end - 1));
            let mut given = [0_u64; 6];
            for cell in first..=last {
                let until = ((cell + 1) * self.step_ns).min(end);
                let into = self.cells.entry(cell).or_default();
                for ((sum, given), all) in into.counts.iter_mut().zip(&mut given).zip(counts(point))
                {
                    let share = i128::from(all) * i128::from(until - begin) / i128::from(span);
                    let share = u64::try_from(share).unwrap_or(all);
                    *sum += share - *given;
                    *given = share;
                }
                into.max_ns = into.max_ns.max(point.max_ns);
            }
        }
    }

    fn cell(&self, at: i64) -> i64 {
        at.div_euclid(self.step_ns)
    }

    /// The series. Percentiles of an interval can't be added: they are absent.
    pub(crate) fn finish(self) -> Vec<Point> {
        let known = !self.no_latencies;
        let point = |(number, cell): (i64, Cell)| {
            let end = ((number + 1) * self.step_ns).min(self.last_ns);
            let [read_bytes, write_bytes, read_ios, write_ios, reads_ns, writes_ns] = cell.counts;
            Point {
                at_ns: end,
                span_ns: u64::try_from(end - number * self.step_ns).unwrap_or(0),
                read_bytes,
                write_bytes,
                read_ios,
                write_ios,
                read_latency_ns: known.then_some(reads_ns),
                write_latency_ns: known.then_some(writes_ns),
                max_ns: cell.max_ns,
                ..Point::default()
            }
        };
        self.cells.into_iter().map(point).collect()
    }
}
