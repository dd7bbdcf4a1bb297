//! Reads the counters of GPUs' PCIe links often enough that none of them goes round unseen.
//!
//! Where they have 32 bits (driver 580 on an H100), they begin again after 4 GiB, which a PCIe 5
//! link carries in 68 ms. A thread reads them four times in that time and adds up; it takes down
//! the longest time between two readings, and where that was too long there is no figure. A reading
//! took 0.5 ms there: 3 % of one CPU, and no concurrent copy showed an effect (docs/proof.md).

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use gpuio_drivers::nvml::{Counter, Gpu, Library, Link, Width};
use gpuio_io::clock::{Clock, Nanos};

use super::window::Moment;

/// Where NVML does not report the link: the fastest that exists.
const FASTEST: Link = Link { generation: 6, lanes: 16 };

/// The bytes on a GPU's link, headers of packets included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Both counters as they stood at first and at last, sent before received.
    pub(crate) first: [u64; 2],
    pub(crate) last: [u64; 2],
    /// Bytes between; a reason where that is not known.
    pub(crate) bytes: Result<[u64; 2], String>,
    /// Those in the window, where all are known.
    pub(crate) in_window: [u64; 2],
    /// Links to a CPU in addition to PCIe, which these counters do not see.
    pub(crate) other_links: u64,
}

/// The bytes on each GPU's link, by UUID.
pub(crate) type Links = Vec<(String, Result<Carried, String>)>;

/// Bytes per second that the link of this GPU received and sent; `None` where that is not known.
pub(crate) fn rates(links: &Links, uuid: &str, seconds: f64) -> Option<(f64, f64)> {
    let (_, carried) = links.iter().find(|(of, _)| of == uuid)?;
    let carried = carried.as_ref().ok()?;
    carried.bytes.as_ref().ok()?;
    let [sent, received] = carried.in_window;
    (seconds > 0.0).then(|| (received as f64 / seconds, sent as f64 / seconds))
}

/// One GPU's counters, added up.
#[derive(Debug, Clone)]
struct Odometer {
    link: Link,
    first: [Counter; 2],
    last: [Counter; 2],
    bytes: Option<[u64; 2]>,
    /// The sum when the window began.
    before: [u64; 2],
    longest: Duration,
}

impl Odometer {
    fn new(link: Link, first: [Counter; 2]) -> Odometer {
        Odometer {
            link,
            first,
            last: first,
            bytes: Some([0; 2]),
            before: [0; 2],
            longest: Duration::ZERO,
        }
    }

    /// Adds a reading that ended at most `gap` after the one before it began.
    fn step(&mut self, gap: Duration, now: [Counter; 2]) {
        let moved = [self.last[0].until(now[0]), self.last[1].until(now[1])];
        self.bytes = match (self.bytes, moved) {
            (Some(sum), [Some(sent), Some(received)]) => Some([sum[0] + sent, sum[1] + received]),
            _ => None,
        };
        self.longest = self.longest.max(gap);
        self.last = now;
    }

    /// Begins at this moment: all of it, or the window alone.
    fn begin(&mut self, moment: Moment) {
        match moment {
            Moment::FirstIo => *self = Odometer::new(self.link, self.last),
            Moment::From => self.before = self.bytes.unwrap_or_default(),
        }
    }

    /// The time in which a counter can go round once; `None` where it can't.
    fn round(&self) -> Option<Duration> {
        if self.first.iter().all(|counter| counter.width == Width::Bits64) {
            return None;
        }
        let most = self.link.bytes_per_second().or(FASTEST.bytes_per_second())?;
        Some(Duration::from_nanos((1_u64 << 32).saturating_mul(1000) / (most / 1_000_000).max(1)))
    }

    fn carried(&self, other_links: u64) -> Carried {
        let bytes = match (self.bytes, self.round()) {
            (None, _) => Err("its counters were reset during the run".to_owned()),
            (Some(_), Some(round)) if self.longest >= round => Err(format!(
                "its counters of 32 bits can go round in {} ms, and {} ms lay between two readings",
                round.as_millis(),
                self.longest.as_millis()
            )),
            (Some(bytes), _) => Ok(bytes),
        };
        let values = |of: [Counter; 2]| of.map(|counter| counter.value);
        let all = self.bytes.unwrap_or_default();
        let in_window = [0, 1].map(|at| all[at].saturating_sub(self.before[at]));
        Carried {
            first: values(self.first),
            last: values(self.last),
            bytes,
            in_window,
            other_links,
        }
    }
}

/// A thread that adds up; it ends with [`Meter::stop`], or when this is dropped.
pub(crate) struct Meter {
    /// Hanging up ends the thread.
    running: Sender<Moment>,
    thread: JoinHandle<Links>,
}

impl Meter {
    /// Begins to add up for the GPUs with these UUIDs, and returns after the first readings.
    pub(crate) fn start(uuids: Vec<String>) -> Result<Meter, String> {
        let library = Library::load().map_err(|absent| absent.to_string())?;
        let (running, until) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let body = move || {
            let mut counted: Vec<Counted<'_>> =
                uuids.iter().map(|uuid| Counted::begin(&library, uuid)).collect();
            let pause = counted.iter().filter_map(Counted::pause).min();
            let _ = ready.send(());
            loop {
                let said = match pause {
                    Some(pause) => until.recv_timeout(pause),
                    None => until.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                counted.iter_mut().for_each(Counted::read);
                match said {
                    Ok(moment) => counted.iter_mut().for_each(|one| one.begin_at(moment)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        let ends = counted.iter().map(Counted::end);
                        return uuids.iter().cloned().zip(ends).collect();
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("gpuio-pcie".to_owned()).spawn(body);
        let thread = thread.map_err(|error| format!("no thread to read NVML: {error}"))?;
        // It hangs up without a message only by a panic, which `stop` returns.
        let _ = begun.recv();
        Ok(Meter { running, thread })
    }

    /// Begins at this moment what covers the time from there.
    pub(crate) fn begin(&self, moment: Moment) {
        // A thread that broke says so when it is joined.
        let _ = self.running.send(moment);
    }

    /// Reads a last time: what each link carried.
    pub(crate) fn stop(self) -> Result<Links, String> {
        drop(self.running);
        self.thread.join().map_err(|_| "the thread that reads NVML broke".to_owned())
    }
}

/// A GPU in flight; a reason once a reading failed.
struct Counted<'library> {
    state: Result<(Gpu<'library>, Odometer), String>,
    other_links: u64,
    clock: Clock,
    /// When the last reading began.
    began: Nanos,
}

impl<'library> Counted<'library> {
    fn begin(library: &'library Library, uuid: &str) -> Counted<'library> {
        let clock = Clock::start();
        let gpu = library.gpu(uuid).map_err(|unread| unread.to_string());
        // Those without such links report nothing.
        let other_links = gpu.as_ref().ok().and_then(|gpu| gpu.c2c_links().ok()).unwrap_or(0);
        let state = gpu.and_then(|gpu| {
            let link = gpu.readings().link_most.unwrap_or(FASTEST);
            let first = gpu.pcie_bytes().map_err(|unread| match gpu.pcie_rates() {
                Ok(_) => format!(
                    "{unread}; what it gives is a rate sampled over 20 ms, which is no counter"
                ),
                Err(_) => unread.to_string(),
            })?;
            Ok((gpu, Odometer::new(link, first)))
        });
        Counted { state, other_links, clock, began: 0 }
    }

    /// Between two readings; nothing where the counters can't go round.
    fn pause(&self) -> Option<Duration> {
        let (_, odometer) = self.state.as_ref().ok()?;
        odometer.round().map(|round| round / 4)
    }

    fn read(&mut self) {
        let Ok((gpu, odometer)) = &mut self.state else { return };
        let begins = self.clock.now();
        match gpu.pcie_bytes() {
            Ok(now) => {
                let gap = self.clock.now().saturating_sub(self.began);
                odometer.step(Duration::from_nanos(gap), now);
            }
            Err(unread) => self.state = Err(unread.to_string()),
        }
        self.began = begins;
    }

    fn begin_at(&mut self, moment: Moment) {
        if let Ok((_, odometer)) = &mut self.state {
            odometer.begin(moment);
        }
    }

    fn end(&self) -> Result<Carried, String> {
        let (_, odometer) = self.state.as_ref().map_err(String::clone)?;
        Ok(odometer.carried(self.other_links))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCIE5: Link = Link { generation: 5, lanes: 16 };
    const MS: Duration = Duration::from_millis(1);

    fn narrow(sent: u32, received: u32) -> [Counter; 2] {
        [sent, received].map(|value| Counter { value: value.into(), width: Width::Bits32 })
    }

    fn wide(sent: u64, received: u64) -> [Counter; 2] {
        [sent, received].map(|value| Counter { value, width: Width::Bits64 })
    }

    #[test]
    fn counters_that_go_round_are_added_up() {
        let mut odometer = Odometer::new(PCIE5, narrow(u32::MAX, 0));
        for turn in 1..=8_u32 {
            odometer.step(20 * MS, narrow(9, turn.wrapping_mul(3 << 30)));
        }
        let carried = odometer.carried(0);
        assert_eq!(carried.bytes, Ok([10, 8 * (3 << 30)]));
        assert_eq!((carried.first, carried.last), ([u64::from(u32::MAX), 0], [9, 0]));
    }

    #[test]
    fn readings_too_far_apart_are_no_figure() {
        let mut odometer = Odometer::new(PCIE5, narrow(0, 0));
        assert_eq!(odometer.round().map(|round| round.as_millis()), Some(68));
        odometer.step(67 * MS, narrow(1, 1));
        assert_eq!(odometer.carried(0).bytes, Ok([1, 1]));
        odometer.step(69 * MS, narrow(2, 2));
        odometer.step(MS, narrow(3, 3));
        let why = odometer.carried(0).bytes.unwrap_err();
        assert!(why.contains("68 ms") && why.contains("69 ms"), "{why}");
    }

    #[test]
    fn counters_of_64_bits_need_two_readings_only() {
        let mut odometer = Odometer::new(PCIE5, wide(5, 7));
        assert_eq!(odometer.round(), None);
        odometer.step(Duration::from_secs(3600), wide(6, 1 << 50));
        assert_eq!(odometer.carried(0).bytes, Ok([1, (1 << 50) - 7]));
        odometer.step(MS, wide(0, 0));
        assert!(odometer.carried(0).bytes.unwrap_err().contains("reset"));
    }

    #[test]
    fn the_window_begins_later_than_all_of_it() {
        let mut odometer = Odometer::new(PCIE5, wide(0, 0));
        odometer.step(MS, wide(100, 0));
        odometer.begin(Moment::FirstIo);
        odometer.step(MS, wide(130, 3));
        odometer.begin(Moment::From);
        odometer.step(MS, wide(137, 5));
        let carried = odometer.carried(0);
        assert_eq!((carried.first, carried.bytes), ([100, 0], Ok([37, 5])));
        assert_eq!(carried.in_window, [7, 2]);
    }

    #[test]
    fn an_unknown_link_is_taken_as_the_fastest() {
        let unknown = Link { generation: 9, lanes: 16 };
        let odometer = Odometer::new(unknown, narrow(0, 0));
        assert_eq!(odometer.round(), Odometer::new(FASTEST, narrow(0, 0)).round());
    }
}
