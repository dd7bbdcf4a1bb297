//! The I/Os of one thread one by one, or in windows of time: the lines of logs in fio's manner.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lines that a thread takes from the common space at once.
const CHUNK: u64 = 4096;

/// One I/O, or the I/Os of one direction that completed in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoLine {
    /// When it completed, or the window's end; nanoseconds since the end of the ramp.
    pub at_ns: u64,
    /// The time from due to completed, or the window's length; nanoseconds.
    pub span_ns: u64,
    pub ios: u64,
    pub bytes: u64,
    /// Sum of the latencies from due to completed, nanoseconds.
    pub latency_ns: u64,
    /// Sum of the latencies from started to completed, nanoseconds.
    pub started_ns: u64,
    /// Where the I/O began in its file; 0 in a window.
    pub offset: u64,
    pub write: bool,
}

/// Space for lines, shared by all threads of a run: what a log may take of memory is bounded.
#[derive(Debug, Default)]
pub struct LogSpace(AtomicU64);

impl LogSpace {
    /// Space for as many lines as fit into so many bytes.
    pub fn of_bytes(bytes: u64) -> LogSpace {
        LogSpace(AtomicU64::new(bytes / size_of::<IoLine>() as u64))
    }

    /// Takes space for [`CHUNK`] lines; false where it is used up.
    fn take(&self) -> bool {
        let take = |left: u64| left.checked_sub(CHUNK);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// The log of one thread. Nothing here blocks; memory grows with the lines.
#[derive(Debug)]
pub struct IoLog<'a> {
    space: &'a LogSpace,
    /// 0 where a line is of one I/O.
    window_ns: u64,
    /// Lines that the space taken still has.
    left: u64,
    lines: Vec<IoLine>,
    /// The number of the window under way, and its I/Os: of reads, and of writes.
    window: u64,
    open: [IoLine; 2],
    cut_ns: Option<u64>,
}

/// The lines of a log, in the order of completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoLines {
    pub lines: Vec<IoLine>,
    /// Where the space was used up: since then nothing was kept. Nanoseconds since the ramp's end.
    pub cut_ns: Option<u64>,
}

impl<'a> IoLog<'a> {
    /// With a window a line is of all I/Os of a direction that completed in it.
    pub fn new(space: &'a LogSpace, window_ns: Option<u64>) -> IoLog<'a> {
        IoLog {
            space,
            window_ns: window_ns.unwrap_or(0),
            left: 0,
            lines: Vec::new(),
            window: 0,
            open: [IoLine::default(); 2],
            cut_ns: None,
        }
    }

    /// Adds one I/O, whose time is not before that of the last.
    #[inline]
    pub fn add(&mut self, io: IoLine) {
        let Some(window) = io.at_ns.checked_div(self.window_ns) else { return self.push(io) };
        if window != self.window {
            self.close((self.window + 1).saturating_mul(self.window_ns));
            self.window = window;
        }
        let open = &mut self.open[usize::from(io.write)];
        open.ios += io.ios;
        open.bytes += io.bytes;
        open.latency_ns = open.latency_ns.saturating_add(io.latency_ns);
        open.started_ns = open.started_ns.saturating_add(io.started_ns);
        open.at_ns = io.at_ns;
    }

    /// The lines. The last window ends with its last I/O.
    pub fn end(mut self) -> IoLines {
        let last = self.open.iter().map(|open| open.at_ns).max().unwrap_or(0);
        self.close(last);
        IoLines { lines: self.lines, cut_ns: self.cut_ns }
    }

    /// Lines of the window under way, which ends then.
    fn close(&mut self, end_ns: u64) {
        let began_ns = self.window.saturating_mul(self.window_ns);
        for (open, write) in std::mem::take(&mut self.open).into_iter().zip([false, true]) {
            if open.ios > 0 {
                let span_ns = end_ns.saturating_sub(began_ns);
                self.push(IoLine { at_ns: end_ns, span_ns, offset: 0, write, ..open });
            }
        }
    }

    #[inline]
    fn push(&mut self, line: IoLine) {
        if self.left == 0 && !self.extend(line.at_ns) {
            return;
        }
        self.left -= 1;
        self.lines.push(line);
    }

    #[cold]
    fn extend(&mut self, at_ns: u64) -> bool {
        if self.cut_ns.is_some() || !self.space.take() {
            self.cut_ns.get_or_insert(at_ns);
            return false;
        }
        self.left = CHUNK;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(at_ms: u64, write: bool) -> IoLine {
        let (at_ns, latency_ns) = (at_ms * 1_000_000, 10 + at_ms);
        let (span_ns, started_ns, offset) = (latency_ns, latency_ns - 5, at_ms * 4096);
        IoLine { at_ns, span_ns, ios: 1, bytes: 4096, latency_ns, started_ns, offset, write }
    }

    #[test]
    fn without_a_window_a_line_is_an_io() {
        let space = LogSpace::of_bytes(1 << 20);
        let mut log = IoLog::new(&space, None);
        let all = [io(0, false), io(0, true), io(7, false)];
        all.iter().for_each(|one| log.add(*one));
        assert_eq!(log.end(), IoLines { lines: all.to_vec(), cut_ns: None });
    }

    /// A window without an I/O of a direction has no line of it, and the last ends with its last.
    #[test]
    fn a_window_has_a_line_for_each_direction() {
        let space = LogSpace::of_bytes(1 << 20);
        let mut log = IoLog::new(&space, Some(100_000_000));
        let times = [(1, false), (99, false), (100, false), (150, true), (310, true), (320, false)];
        times.iter().for_each(|&(at, write)| log.add(io(at, write)));
        let found: Vec<_> = (log.end().lines.iter())
            .map(|one| (one.at_ns / 1_000_000, one.span_ns / 1_000_000, one.write, one.ios))
            .collect();
        let wanted = [
            (100, 100, false, 2),
            (200, 100, false, 1),
            (200, 100, true, 1),
            (320, 20, false, 1),
            (320, 20, true, 1),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn sums_are_of_the_windows_ios() {
        let space = LogSpace::of_bytes(1 << 20);
        let mut log = IoLog::new(&space, Some(1_000_000_000));
        [io(1, true), io(2, true)].iter().for_each(|one| log.add(*one));
        let line = log.end().lines[0];
        assert_eq!((line.latency_ns, line.started_ns, line.bytes), (11 + 12, 6 + 7, 8192));
    }

    /// All threads together get no more than the space, and each says where it ended.
    #[test]
    fn the_space_is_shared_and_its_end_is_known() {
        let space = LogSpace::of_bytes(CHUNK * size_of::<IoLine>() as u64);
        let (mut one, mut two) = (IoLog::new(&space, None), IoLog::new(&space, None));
        (0..CHUNK + 2).for_each(|at| one.add(io(at, false)));
        two.add(io(3, false));
        let (one, two) = (one.end(), two.end());
        assert_eq!(one.lines.len() as u64, CHUNK);
        assert_eq!(one.cut_ns, Some(CHUNK * 1_000_000));
        assert_eq!(two, IoLines { lines: Vec::new(), cut_ns: Some(3_000_000) });
    }
}
