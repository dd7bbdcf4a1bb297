//! Takes the snapshots of a group, and holds what runs in between.

use gpuio_base::stat::LiveTotals;
use gpuio_drivers::cufile::Counting;
use gpuio_host::Root;
use gpuio_io::clock::{Clock, Nanos};
use gpuio_io::path::CufileDriver;
use gpuio_record::JobPlan;
use gpuio_watch::{Selection, Watcher};

use crate::evidence::layout::Layout;
use crate::evidence::pcie_meter::Meter;
use crate::evidence::reconcile::{Counted, InWindow};
use crate::evidence::sampler::{DeviceSampler, Sampling};
use crate::evidence::snapshot::{Begun, GroupSeries, Readings, Snapshot, resident};
use crate::evidence::source::gpu_pcie;
use crate::evidence::window::{Moment, Window};
use crate::evidence::{OpenFile, by_foreign_library, series};

/// The readings of a group to take, and how.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Setup<'a> {
    /// Where kernel files are.
    pub root: Root,
    /// The group's jobs. Their files exist and nothing has started.
    pub jobs: &'a [JobPlan],
    pub open: OpenFile<'a>,
    /// The open cuFile library, where some path of the run needs it.
    pub cufile: Option<&'a CufileDriver>,
    /// The run's clock.
    pub clock: Clock,
    /// Samples the devices during the run; `None` where that is off.
    pub sampler: Option<&'a DeviceSampler>,
}

/// A group that is about to run or runs. Dropped, its threads end by themselves.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Collector<'a> {
    setup: Setup<'a>,
    layout: Layout,
    before: Snapshot,
    /// The window's begin, where that was after the first I/O.
    counts: Option<Begun>,
    /// The readings that are still to come, the last first; the common start and the window.
    to_come: Vec<(Nanos, Moment)>,
    start: Nanos,
    window: Option<Window>,
    /// How long the first reading took.
    took: Nanos,
    /// cuFile counts while this is held.
    counting: Result<Counting, String>,
    meter: Result<Meter, String>,
    /// Reads the devices; with the thread while that samples.
    watcher: Option<Watcher>,
    selection: Selection,
    sampling: Option<Sampling>,
}

impl<'a> Collector<'a> {
    /// Takes the snapshot before the clock, when all files are open and nothing has started. May
    /// block on NVML for a second and on the write-back of the jobs' files; what takes long comes
    /// first, so that the counters are read close to the clock.
    #[must_use]
    pub fn begin(setup: Setup<'a>) -> Collector<'a> {
        let layout = Layout::read(&setup.root, setup.jobs, setup.open, setup.cufile);
        let (nodes, selection) = match setup.sampler {
            Some(sampler) => (sampler.nodes(), sampler.selection(setup.jobs)),
            None => (Vec::new(), Selection::nothing()),
        };
        let selection = selection.with(layout.devices.iter().cloned()).from_stat_files();
        let mut watcher = Watcher::new(setup.root.clone(), nodes, selection.clone());
        let sampling = setup.sampler.and_then(|sampler| Sampling::ready(sampler, setup.clock));
        let counting = count(&setup);
        let meter = gpu_pcie::meter(setup.jobs);
        let began = setup.clock.now();
        let resident = resident(setup.jobs, setup.open);
        let before = snapshot(&setup, &counting, &mut watcher, resident);
        let (took, watcher) = (setup.clock.now() - began, Some(watcher));
        Collector {
            setup,
            layout,
            before,
            counts: None,
            to_come: Vec::new(),
            start: began,
            window: None,
            took,
            counting,
            meter,
            watcher,
            selection,
            sampling,
        }
    }

    /// The workers start at `at`, which is about to be.
    pub fn started(&mut self, at: Nanos) {
        let window = Window::of(self.setup.jobs, at);
        self.to_come = window.moments(at, self.took);
        (self.start, self.window) = (at, Some(window));
        if self.to_come.is_empty() {
            self.sample(at);
        }
    }

    /// When [`look`](Self::look) is to be called; `None` once the window has begun.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        self.to_come.last().map(|(at, _)| *at)
    }

    /// Reads what is due while the workers wait or run. `moved` is what each job has moved. Returns
    /// when the window began, if it began with this call.
    pub fn look(&mut self, moved: impl FnOnce() -> Vec<LiveTotals>) -> Option<Nanos> {
        let now = self.setup.clock.now();
        let (_, moment) = self.to_come.pop_if(|(at, _)| *at <= now)?;
        let (setup, window) = (&self.setup, self.window?);
        let watcher = self.watcher.as_mut()?;
        let resident = match moment {
            Moment::FirstIo => resident(setup.jobs, setup.open),
            Moment::From => Vec::new(),
        };
        let moved = moved();
        let now = setup.clock.now();
        let snapshot = snapshot(setup, &self.counting, watcher, resident);
        let in_time = moment == Moment::FirstIo && window.is_before_io(setup.clock.now());
        if let Ok(meter) = &self.meter {
            meter.begin(if in_time { moment } else { Moment::From });
        }
        if in_time {
            self.before = snapshot;
        } else {
            self.counts = Some(Begun { snapshot, moved });
        }
        self.to_come.is_empty().then(|| {
            self.sample(now);
            now
        })
    }

    /// The window has begun: sampling begins.
    fn sample(&mut self, from: Nanos) {
        let first = self.counts.as_ref().map_or(&self.before, |begun| &begun.snapshot);
        if let Some(sampling) = &self.sampling
            && let Some(watcher) = self.watcher.take()
        {
            self.watcher = sampling.start(watcher, first.sample.clone(), (self.start, from));
        }
    }

    /// Takes the snapshot after the last I/O, before anything is verified. Waits for a sample that
    /// is being taken.
    #[must_use]
    pub fn end(mut self) -> Readings {
        let setup = &self.setup;
        let mut sampled = self.sampling.take().and_then(Sampling::end);
        let watcher = sampled.as_mut().map(|sampled| &mut sampled.watcher);
        // Where the thread broke its watcher is lost, and GPUs with it.
        let mut another = None;
        let watcher = watcher.or(self.watcher.as_mut()).unwrap_or_else(|| {
            let selection = self.selection.clone().without(&["gpu"]);
            another.insert(Watcher::new(setup.root.clone(), Vec::new(), selection))
        });
        let mut after = snapshot(setup, &self.counting, watcher, Vec::new());
        let links = self.meter.and_then(Meter::stop);
        drop(self.counting);
        after.resident = resident(setup.jobs, setup.open);
        let mut readings = Readings {
            layout: self.layout,
            before: self.before,
            counts: self.counts,
            after,
            links,
            counted: Counted::default(),
            series: None,
        };
        if let (Some(sampled), Some(sampler)) = (sampled, setup.sampler) {
            let series = sampled.with_last(readings.after.sample.clone());
            let nth = setup.jobs.first().map_or(0, |job| job.group);
            let mut group = series::group(nth, &series);
            if let Some(whole) = series::whole(&series) {
                readings.counted =
                    Counted::of(&whole, &group, sampler.machine(), readings.links.as_ref().ok());
                series::put_links(&mut group, &readings.counted);
            }
            let (count, cpu_ns) = (series.count, series.cpu_ns);
            let interval_ns = sampler.interval_ns();
            readings.series = Some(GroupSeries { interval_ns, group, count, cpu_ns });
        }
        let from = readings.counts.as_ref().map_or(&readings.before, |begun| &begun.snapshot);
        // A window that never began has no figures of others.
        let begun = self.to_come.is_empty();
        let moments = from.processors.as_ref().zip(readings.after.processors.as_ref());
        let moments = moments.filter(|_| begun);
        let ticks = rustix::param::clock_ticks_per_second();
        readings.counted.cpu = moments.and_then(|(before, after)| before.until(after, ticks));
        let never = (!begun).then(InWindow::default);
        readings.counted.in_window = never.or_else(|| readings.in_window());
        readings.counted.limits.clone_from(&readings.layout.limits);
        readings
    }
}

/// All counters now.
fn snapshot(
    setup: &Setup<'_>,
    counting: &Result<Counting, String>,
    watcher: &mut Watcher,
    resident: Vec<Result<f64, String>>,
) -> Snapshot {
    let cufile = counting.as_ref().map_err(Clone::clone);
    Snapshot::take(&setup.root, watcher, setup.clock.now(), cufile, resident)
}

/// Has the library count, for groups that have a path of its own.
fn count(setup: &Setup<'_>) -> Result<Counting, String> {
    if !setup.jobs.iter().any(by_foreign_library) {
        return Err("no path of this group uses cuFile".to_owned());
    }
    let driver = setup.cufile.ok_or("cuFile is not open")?;
    Counting::start(driver).map_err(|absent| absent.to_string())
}
