//! Takes the snapshots of a group, and holds what runs in between.

use gpuio_drivers::cufile::Counting;
use gpuio_host::Root;
use gpuio_io::clock::{Clock, Nanos};
use gpuio_io::path::CufileDriver;
use gpuio_record::JobPlan;
use gpuio_watch::{Selection, Watcher};

use crate::evidence::layout::Layout;
use crate::evidence::pcie_meter::Meter;
use crate::evidence::reconcile::Counted;
use crate::evidence::sampler::{DeviceSampler, Sampling};
use crate::evidence::snapshot::{GroupSeries, Readings, Snapshot, resident};
use crate::evidence::source::gpu_pcie;
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
        let resident = resident(setup.jobs, setup.open);
        let meter = gpu_pcie::meter(setup.jobs);
        let cufile = counting.as_ref().map_err(Clone::clone);
        let now = setup.clock.now();
        let before = Snapshot::take(&setup.root, &mut watcher, now, cufile, resident);
        let watcher = Some(watcher);
        Collector { setup, layout, before, counting, meter, watcher, selection, sampling }
    }

    /// The workers start at `at`, which is about to be: sampling begins.
    pub fn started(&mut self, at: Nanos) {
        if let Some(sampling) = &self.sampling
            && let Some(watcher) = self.watcher.take()
        {
            self.watcher = sampling.start(watcher, self.before.sample.clone(), at);
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
        let cufile = self.counting.as_ref().map_err(Clone::clone);
        let now = setup.clock.now();
        let mut after = Snapshot::take(&setup.root, watcher, now, cufile, Vec::new());
        let links = self.meter.and_then(Meter::stop);
        drop(self.counting);
        after.resident = resident(setup.jobs, setup.open);
        let mut readings = Readings {
            layout: self.layout,
            before: self.before,
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
        let moments = readings.before.processors.as_ref().zip(readings.after.processors.as_ref());
        let ticks = rustix::param::clock_ticks_per_second();
        readings.counted.cpu = moments.and_then(|(before, after)| before.until(after, ticks));
        readings
    }
}

/// Has the library count, for groups that have a path of its own.
fn count(setup: &Setup<'_>) -> Result<Counting, String> {
    if !setup.jobs.iter().any(by_foreign_library) {
        return Err("no path of this group uses cuFile".to_owned());
    }
    let driver = setup.cufile.ok_or("cuFile is not open")?;
    Counting::start(driver).map_err(|absent| absent.to_string())
}
