//! The mapper: the thread that registers hot extents and retires what is no longer used.
//!
//! It unregisters nothing that is read. Unregistering waits for all work of the device, and
//! launches and copies of other threads wait for it meanwhile: a program in which a kernel or a
//! stream waits for another thread's next launch would never go on, and neither would our own
//! operations in its streams. So a registration that is no longer used gives its file and its lease
//! back, and keeps its pages. They count in the budget. Registering does not wait for the device.
//!
//! Extents that are written are registered in a context of their own (`filler`), and unregistered.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gpuio_gpu::{FilePages, GpuError, MapError, MappedFile, PageWatch, RetiredFile};

use super::extent::{EXTENT, Ended, Registered};
use super::filler::Filler;
use super::inode::MappedInode;
use super::lease::Watcher;
use super::map::{Access, map};
use super::written::{PinnedExtent, WrittenInode};
use super::{MappedFiles, tick};
use crate::clock::{Clock, Nanos};
use crate::device::Device;
use crate::file::{FileId, Place};

/// Without a budget of its own the library registers one part in so many of the machine's memory.
const SHARE: u64 = 8;
/// And no more where one part in so many of all memory is pinned, by any process or driver.
const MACHINE_SHARE: u64 = 2;
/// An extent that was used within so many ticks is not given up for another device.
const RECENT: u32 = 2;
/// After so many refusals of the driver and no success, no file is mapped any more.
const REFUSALS: i32 = 3;
/// How long the mapper waits before it looks again at an extent that is still in use: at first, and
/// at most. A copy in a program's stream may be held up for long.
const STILL_USED: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));
/// After a registration the mapper maps nothing for so many times as long as it took. The driver
/// and the kernel hold locks meanwhile for which reads wait, so this bounds what they lose: 3 in a
/// hundred.
const PAUSE: Nanos = 31;
/// The same of an extent that is written: `pwrite(2)` is slower than a read by so much that it is
/// better replaced soon.
const WRITE_PAUSE: Nanos = 7;

#[derive(Debug)]
pub(super) struct Mapper {
    tasks: Mutex<Tasks>,
    changed: Condvar,
    /// There is no `pinning` any more.
    pinned: Condvar,
}

#[derive(Debug, Default)]
struct Tasks {
    /// Extents to map, oldest first.
    maps: VecDeque<MapTask>,
    /// Tasks that do not wait for the pause between two registrations, oldest first.
    returns: VecDeque<ReturnTask>,
    running: Running,
    /// The file that is mapped to be written, and not published yet.
    pinning: Option<FileId>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Running {
    #[default]
    No,
    /// A thread starts them: who needs them waits for it.
    Starting,
    Yes,
    /// The system starts no threads.
    Never,
}

/// Map a hot extent for a device.
#[derive(Debug)]
struct MapTask {
    extent: HotExtent,
    device: &'static Device,
}

#[derive(Debug)]
enum HotExtent {
    Read(Weak<MappedInode>, usize),
    /// With its bytes, and where the file is.
    Written(Weak<WrittenInode>, Range<u64>, Place),
}

#[derive(Debug)]
enum ReturnTask {
    /// Give up what closed extents of a file hold.
    Sweep(Arc<MappedInode>),
    /// Retire registrations.
    Retire(Vec<Ended>),
    /// Unregister an extent that was written.
    Unpin(MappedFile),
}

enum NextTask {
    Map(MapTask),
    Return(ReturnTask),
    /// There was none for a while.
    None,
}

/// The state of the mapper's thread alone.
#[derive(Default)]
struct Work {
    /// Extents that hold something.
    mapped: Vec<(Weak<MappedInode>, usize)>,
    /// Those that are not used any more.
    retired: Vec<RetiredFile>,
    retired_bytes: u64,
    /// All, with those that are retired and those that are written.
    registered_bytes: u64,
    budget: Budget,
    /// By the index of the device; `None` where there is none.
    fillers: HashMap<u32, Option<&'static Filler>>,
}

impl Mapper {
    pub(super) fn new() -> Self {
        Self { tasks: Mutex::default(), changed: Condvar::new(), pinned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn map_soon(
        &self,
        files: &'static MappedFiles,
        inode: &Arc<MappedInode>,
        index: usize,
        device: &'static Device,
    ) {
        let extent = HotExtent::Read(Arc::downgrade(inode), index);
        self.submit(files, |tasks| tasks.maps.push_back(MapTask { extent, device }));
    }

    /// The same for an extent that is written.
    pub(super) fn pin_soon(
        &self,
        files: &'static MappedFiles,
        inode: &Arc<WrittenInode>,
        (part, place): (Range<u64>, Place),
        device: &'static Device,
    ) {
        let extent = HotExtent::Written(Arc::downgrade(inode), part, place);
        self.submit(files, |tasks| tasks.maps.push_back(MapTask { extent, device }));
    }

    pub(super) fn unpin_soon(&self, files: &'static MappedFiles, file: MappedFile) {
        self.submit(files, |tasks| tasks.returns.push_back(ReturnTask::Unpin(file)));
    }

    pub(super) fn sweep_soon(&self, files: &'static MappedFiles, inode: &Arc<MappedInode>) {
        let task = ReturnTask::Sweep(Arc::clone(inode));
        self.submit(files, |tasks| tasks.returns.push_back(task));
    }

    pub(super) fn retire_soon(&self, files: &'static MappedFiles, ended: Vec<Ended>) {
        let task = ReturnTask::Retire(ended);
        self.submit(files, |tasks| tasks.returns.push_back(task));
    }

    /// Says which file is being mapped to be written.
    pub(super) fn pins(&self, file: Option<FileId>) {
        self.lock().pinning = file;
        self.pinned.notify_all();
    }

    /// Waits while this file is being mapped to be written, at most for `most`.
    pub(super) fn wait_for_pin(&self, file: FileId, most: Duration) {
        let pins = |tasks: &mut Tasks| tasks.pinning == Some(file);
        drop(self.pinned.wait_timeout_while(self.lock(), most, pins));
    }

    /// Starts the mapper and the watcher, unless they run; false if the system refused.
    pub(super) fn has_started(&self, files: &'static MappedFiles) -> bool {
        let mut tasks = self.lock();
        if tasks.running == Running::No {
            tasks.running = Running::Starting;
            drop(tasks);
            let started = start(files);
            tasks = self.lock();
            tasks.running = if started { Running::Yes } else { Running::Never };
            self.changed.notify_all();
        }
        let starts = |tasks: &mut Tasks| tasks.running == Running::Starting;
        let started = self.changed.wait_while(tasks, starts);
        started.unwrap_or_else(PoisonError::into_inner).running == Running::Yes
    }

    fn submit(&self, files: &'static MappedFiles, push: impl FnOnce(&mut Tasks)) {
        // Without the thread nothing was registered.
        if self.has_started(files) {
            push(&mut self.lock());
            self.changed.notify_one();
        }
    }

    /// Waits for the next task, at most for `wait`: an extent to map only from `map_from` of
    /// `clock` on.
    fn next(&self, wait: Option<Duration>, (clock, map_from): (Clock, Nanos)) -> NextTask {
        let mut tasks = self.lock();
        loop {
            if let Some(task) = tasks.returns.pop_front() {
                return NextTask::Return(task);
            }
            let pause = Duration::from_nanos(map_from.saturating_sub(clock.now()));
            if pause.is_zero()
                && let Some(task) = tasks.maps.pop_front()
            {
                return NextTask::Map(task);
            }
            let until_map = (!tasks.maps.is_empty()).then_some(pause);
            tasks = match wait.into_iter().chain(until_map).min() {
                None => self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner),
                Some(most) => {
                    let waited = self.changed.wait_timeout(tasks, most);
                    let (tasks, ended) = waited.unwrap_or_else(PoisonError::into_inner);
                    if ended.timed_out() && wait.is_some() {
                        return NextTask::None;
                    }
                    tasks
                }
            };
        }
    }
}

/// Starts the two threads; false if the system refuses.
fn start(files: &'static MappedFiles) -> bool {
    let watched = crate::spawn::spawn(move || {
        let _ = files.watcher.set(Watcher::here());
        files.watch();
    });
    watched && crate::spawn::spawn(move || files.mapper.run(files))
}

impl Mapper {
    fn run(&self, files: &'static MappedFiles) {
        let mut work = Work { budget: Budget::new(files.budget), ..Work::default() };
        // Files with closed extents that were in use.
        let mut unswept: Vec<Arc<MappedInode>> = Vec::new();
        // Extents of files that ended, which were in use.
        let mut ended: Vec<Ended> = Vec::new();
        let clock = files.clock;
        let mut map_from = 0;
        let mut look = STILL_USED.0;
        loop {
            let waits = !unswept.is_empty() || !ended.is_empty();
            let task = self.next(waits.then_some(look), (clock, map_from));
            look = match task {
                NextTask::None => (look * 2).min(STILL_USED.1),
                NextTask::Map(_) | NextTask::Return(_) => STILL_USED.0,
            };
            files.queued.sweep();
            match task {
                NextTask::Map(MapTask { extent, device }) => {
                    let began = clock.now();
                    let pause = match extent {
                        HotExtent::Read(inode, index) => {
                            if let Some(inode) = inode.upgrade() {
                                self.map(files, &mut work, &inode, index, device);
                            }
                            PAUSE
                        }
                        HotExtent::Written(inode, part, place) => {
                            if let Some(inode) = inode.upgrade() {
                                work.pin(files, &inode, (part, place), device);
                                // It looks at the sizes of such files.
                                files.watcher().into_iter().for_each(Watcher::wake);
                            }
                            WRITE_PAUSE
                        }
                    };
                    let ended = clock.now();
                    map_from = ended + (ended - began) * pause;
                }
                NextTask::Return(ReturnTask::Unpin(file)) => work.unpin(file),
                NextTask::Return(ReturnTask::Sweep(inode)) => unswept.push(inode),
                NextTask::Return(ReturnTask::Retire(more)) => ended.extend(more),
                NextTask::None => {}
            }
            let idle = ended.extract_if(.., |one| one.is_idle());
            idle.for_each(|one| work.retire(one.into_registered()));
            unswept.retain(|inode| !work.sweep(inode));
        }
    }

    /// Maps an extent, if all that it needs is there.
    fn map(
        &self,
        files: &'static MappedFiles,
        work: &mut Work,
        inode: &Arc<MappedInode>,
        index: usize,
        device: &'static Device,
    ) {
        // Counted anew, whatever comes of it: it is tried again when it is hot again.
        inode.cells[index].cool();
        work.sweep(inode);
        // SAFETY: this is the mapper.
        if unsafe { inode.cells[index].holds() } {
            // For another state of the device, or another device: that use ends first.
            if inode.cells[index].last_used() + RECENT < tick(files.clock.now()) {
                inode.cells[index].close();
                work.sweep(inode);
            }
            return;
        }
        let Some(ended) = inode.find_rule(files.clock.now()) else { return };
        let Some(registered) = self.register(files, work, inode, index, device) else { return };
        let len = registered.file.pinned_bytes();
        work.registered_bytes += len;
        // SAFETY: this is the mapper.
        match unsafe { inode.publish(index, registered, ended, tick(files.clock.now())) } {
            Ok(()) => work.mapped.push((Arc::downgrade(inode), index)),
            Err(registered) => work.retire(registered),
        }
    }

    /// Registers an extent, within the budget.
    fn register(
        &self,
        files: &'static MappedFiles,
        work: &mut Work,
        inode: &Arc<MappedInode>,
        index: usize,
        device: &'static Device,
    ) -> Option<Registered> {
        let fd = inode.fd()?;
        let size = rustix::fs::fstat(fd.as_ref()).ok()?;
        let size = u64::try_from(size.st_size).ok()?;
        let start = index as u64 * EXTENT;
        let end = (start + EXTENT).min(size);
        if end <= start || !work.has_room(files, end - start) {
            return None;
        }
        let mapped = move |file: BorrowedFd<'_>| FilePages::map(file, start..end);
        let pages = map(fd.place(), Access::Read, mapped);
        let made = pages.and_then(|pages| {
            pages.read_in(&|| true)?;
            let file = pages.register(device.context(), true)?;
            match file.seen_by(device.context()) {
                Ok(device_ptr) => Ok((file, device_ptr)),
                Err(error) => {
                    drop(file.retire());
                    Err(MapError::Gpu(error))
                }
            }
        });
        match made {
            Ok((file, device_ptr)) => {
                files.refusals.store(i32::MIN / 2, Ordering::Relaxed);
                Some(Registered {
                    file,
                    device_ptr,
                    serial: device.serial(),
                    ends_file: end == size,
                })
            }
            // The next read finds the device as it is then.
            Err(MapError::Gpu(error)) if error.is_reset() => None,
            Err(error) => {
                inode.refused.store(true, Ordering::Relaxed);
                if matches!(error, MapError::Gpu(_))
                    && files.refusals.fetch_add(1, Ordering::Relaxed) + 1 >= REFUSALS
                {
                    files.off.store(true, Ordering::Relaxed);
                }
                None
            }
        }
    }
}

impl Work {
    /// Gives up what closed extents of a file hold; false if one is still in use.
    fn sweep(&mut self, inode: &Arc<MappedInode>) -> bool {
        let mut all = true;
        let mut mapped = std::mem::take(&mut self.mapped);
        mapped.retain(|(one, index)| {
            let cell = &inode.cells;
            if !std::ptr::eq(one.as_ptr(), Arc::as_ptr(inode)) || cell[*index].is_open() {
                return one.strong_count() > 0;
            }
            // SAFETY: this is the mapper's thread, which alone has a `Work`.
            match unsafe { cell[*index].take() } {
                Some(registered) => {
                    self.retire(registered);
                    false
                }
                None => {
                    all = false;
                    true
                }
            }
        });
        self.mapped = mapped;
        all
    }

    /// Registers an extent to be written, within the budget.
    fn pin(
        &mut self,
        files: &MappedFiles,
        inode: &WrittenInode,
        (part, place): (Range<u64>, Place),
        device: &'static Device,
    ) {
        let index = part.start / EXTENT;
        let mut pinned = None;
        if self.has_room(files, part.end - part.start) {
            match self.filler(files, device) {
                Some(filler) => {
                    files.mapper.pins(Some(place.file));
                    // From now on who ends the file waits.
                    if !inode.has_ended() {
                        pinned = self.pin_in(filler, inode, (part, place));
                    }
                }
                None => inode.refuse(),
            }
        }
        let pinned = pinned.map(|pinned| (device.context().device(), pinned));
        inode.publish(index, pinned, tick(files.clock.now()));
        files.mapper.pins(None);
    }

    fn pin_in(
        &mut self,
        filler: &'static Filler,
        inode: &WrittenInode,
        (part, place): (Range<u64>, Place),
    ) -> Option<PinnedExtent> {
        let table = inode.files.page_table()?;
        let mapped = map(place, Access::Write, move |file| {
            let pages = FilePages::map_to_write(file, part.clone())?;
            // Registering would fill holes with pages, and the watch does.
            let is_dense = pages.has_all_pages(file)?;
            let watch = if is_dense { Some(PageWatch::new(file, part)?) } else { None };
            Ok(watch.map(|watch| (watch, pages)))
        });
        let registered = mapped.and_then(|mapped| {
            let Some((watch, pages)) = mapped else { return Ok(None) };
            Ok(Some((watch, pages.register(&filler.context, false)?)))
        });
        match registered {
            Ok(registered) => {
                let (watch, file) = registered?;
                self.registered_bytes += file.pinned_bytes();
                let pinned = PinnedExtent::new(inode.files, filler, watch, file);
                // A page that was lost before it was pinned, and kernels before 5.14.
                (!pinned.has_lost(table)).then_some(pinned)
            }
            // The driver, or the system, will always do so.
            Err(MapError::Gpu(_) | MapError::Call { errno: libc::ENOSYS | libc::EPERM, .. }) => {
                inode.refuse();
                None
            }
            // The file became shorter, or the program closed the descriptor.
            Err(_) => None,
        }
    }

    /// The context and lanes of a device, made when they are first needed.
    fn filler(&mut self, files: &MappedFiles, device: &Device) -> Option<&'static Filler> {
        let make = || {
            let _table = files.page_table()?;
            let made: Result<_, GpuError> = Filler::new(device.context());
            made.ok().flatten().map(|made| &*Box::leak(Box::new(made)))
        };
        *self.fillers.entry(device.context().device()).or_insert_with(make)
    }

    /// Unregisters an extent that was written. Waits for copies of ours alone.
    fn unpin(&mut self, file: MappedFile) {
        let len = file.pinned_bytes();
        // Where the driver refuses, its pages stay, and count.
        if file.close().is_ok() {
            self.registered_bytes -= len;
        }
    }

    /// Whether `len` bytes more fit into the budget. If not, extents that were written and are not
    /// used now are let go of, so that there is room later.
    fn has_room(&mut self, files: &MappedFiles, len: u64) -> bool {
        if self.registered_bytes + len > self.budget.bytes {
            // Those of a device that was reset.
            let retired = std::mem::take(&mut self.retired);
            self.retired = retired.into_iter().filter_map(RetiredFile::released).collect();
            let retired = self.retired.iter().map(RetiredFile::pinned_bytes).sum::<u64>();
            self.registered_bytes -= self.retired_bytes - retired;
            self.retired_bytes = retired;
        }
        let allowed = self.budget.allows(self.registered_bytes, len);
        if !allowed {
            let before = tick(files.clock.now()).saturating_sub(RECENT);
            files.let_go_of_written(len, before);
        }
        allowed
    }

    /// Ends the use of a registration. Its pages count until the device is reset.
    fn retire(&mut self, registered: Registered) {
        let len = registered.file.pinned_bytes();
        match registered.file.retire() {
            Some(retired) => {
                self.retired_bytes += len;
                self.retired.push(retired);
            }
            None => self.registered_bytes -= len,
        }
    }
}

/// How many bytes may be registered.
#[derive(Default)]
struct Budget {
    bytes: u64,
    /// The most bytes that are pinned on the whole machine, where the user set no budget: other
    /// processes register files too.
    of_machine: Option<u64>,
}

impl Budget {
    /// The user's limit, or a part of what this process may use.
    fn new(requested: Option<u64>) -> Self {
        if let Some(bytes) = requested {
            return Self { bytes, of_machine: None };
        }
        let facts = gpuio_host::memory::read(&gpuio_host::Root::live(), &mut Vec::new());
        Self {
            bytes: facts.usable_bytes.unwrap_or(0) / SHARE,
            of_machine: facts.total_bytes.map(|total| total / MACHINE_SHARE),
        }
    }

    /// Whether so many bytes are allowed, of which `new` are not registered yet.
    fn allows(&self, registered: u64, new: u64) -> bool {
        let pinned = |most| {
            let pinned = gpuio_host::memory::pinned_bytes(&gpuio_host::Root::live());
            pinned.is_none_or(|pinned| pinned + new <= most)
        };
        registered + new <= self.bytes && self.of_machine.is_none_or(pinned)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use gpuio_gpu::{Context, Driver, Which};

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn what_is_retired_keeps_its_pages_and_counts() {
        const LEN: u64 = 1 << 20;
        let context = Context::new(&Driver::load(&Which::Software).unwrap(), 0).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LEN).unwrap();
        let name = file.path().to_str().unwrap().to_owned();
        let registered = || {
            let pages = FilePages::map(file.as_file().as_fd(), 0..LEN).unwrap();
            let registered = pages.register(&context, true).unwrap();
            let device_ptr = registered.seen_by(&context).unwrap();
            Registered { file: registered, device_ptr, serial: 1, ends_file: true }
        };
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|line| line.contains(&name))
        };
        let budget = Budget { bytes: 2 * LEN + LEN / 2, of_machine: None };
        let settings = Settings { driver: Which::Software, ..Settings::default() };
        let files: &'static MappedFiles = Box::leak(Box::new(MappedFiles::new(&settings)));
        let mut work = Work { budget, ..Work::default() };
        for nth in 1..=2 {
            assert!(work.has_room(files, LEN));
            let one = registered();
            work.registered_bytes += one.file.pinned_bytes();
            assert!(is_mapped());
            work.retire(one);
            assert!(!is_mapped(), "the file is let go of");
            assert_eq!((work.registered_bytes, work.retired_bytes), (nth * LEN, nth * LEN));
        }
        assert!(!work.has_room(files, LEN) && work.has_room(files, LEN / 2));
        let full = Budget { bytes: u64::MAX / 2, of_machine: Some(0) };
        let pinned = gpuio_host::memory::pinned_bytes(&gpuio_host::Root::live());
        assert_eq!(full.allows(0, 1), pinned.is_none(), "the machine has no room");
    }
}
