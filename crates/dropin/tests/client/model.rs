//! Several processes read and write files through the library, while others change the same files
//! in every way that the kernel has. Where nobody changes a file, what the library moved is
//! compared with `pread(2)`, byte by byte.
//!
//! Each file has one for locks (flock(2)): shared by who compares a read, alone for who writes or
//! changes. Reads without a lock run beside all of that; they must not fail, nor write outside
//! their range. Two files are changed seldom, so that the library maps them. A process without the
//! library reads beside the changes too: where the kernel refuses a read of its own accord, it does
//! so there as well.
//!
//! It runs for `GPUIO_MODEL_SECONDS` (10) in `GPUIO_MODEL_DIR`, by the choices of
//! `GPUIO_MODEL_SEED`: `cargo xtask attack --only model`, and `hardware.sh` on a GPU.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{Cuda, Cufile, Entry, GOOD, cuda, cufile, errno, on_system};
use crate::stream::{Kept, stream, sync};

const TEST: &str = "model::files_that_other_processes_change";
const ROLE: &str = "GPUIO_MODEL_ROLE";

/// Files, the first of which are changed seldom.
const FILES: usize = 6;
const SELDOM: usize = 2;
/// Longest file, and what is left of one at least.
const MOST: usize = 4 << 20;
const LEAST: usize = 1 << 20;
/// Memory behind what a read may write.
const MARGIN: usize = 64 << 10;
const UNTOUCHED: u8 = 0xEE;
/// After so long the library has mapped what is read again and again.
const MAPPED_AFTER: u64 = 20;

/// Choices (xorshift64*).
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % end.max(1)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 4);
        while bytes.len() < len {
            bytes.extend(u32::try_from(self.below(1 << 31)).unwrap().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// A range of a file, mostly in it: short, long or whole.
    fn range(&mut self, size: usize) -> (usize, usize) {
        let len = match self.below(10) {
            0 => MOST,
            1..4 => 1 + self.below(size),
            4..7 => 4096 << self.below(5),
            _ => 1 + self.below(20_000),
        };
        let at = if len == MOST { 0 } else { self.below(size + 3000) };
        if self.below(3) == 0 { (at / 4096 * 4096, len.next_multiple_of(4096)) } else { (at, len) }
    }
}

/// Where it runs, until when, and by which choices.
struct Place {
    dir: PathBuf,
    until: Instant,
    seed: u64,
}

impl Place {
    fn of_environment() -> Self {
        let number = |name: &str, default| {
            std::env::var(name).map_or(default, |value| value.parse::<u64>().unwrap())
        };
        let dir =
            std::env::var_os("GPUIO_MODEL_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let seconds = Duration::from_secs(number("GPUIO_MODEL_SECONDS", 10));
        Self { dir, until: Instant::now() + seconds, seed: number("GPUIO_MODEL_SEED", 1) }
    }

    fn choices(&self, of: u64) -> Choices {
        Choices((self.seed * 1000 + of).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn path(&self, number: usize) -> PathBuf {
        self.dir.join(format!("file{number}"))
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    fn lock(&self, number: usize, how: FlockOperation) -> File {
        let path = self.dir.join(format!("lock{number}"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
        while let Err(error) = rustix::fs::flock(&file, how) {
            assert_eq!(error, rustix::io::Errno::INTR);
        }
        file
    }
}

/// The counts, summed over threads and processes.
#[derive(Default)]
struct Counts {
    operations: AtomicU64,
    comparisons: AtomicU64,
    mapped: AtomicU64,
    changes: AtomicU64,
    /// Reads beside a change to which the kernel said EIO.
    refused: AtomicU64,
    wrong: AtomicU64,
    /// Reads of the process without the library, and those to which the kernel said EIO.
    plain: AtomicU64,
    plain_refused: AtomicU64,
}

impl Counts {
    fn all(&self) -> [(&'static str, &AtomicU64); 8] {
        [
            ("operations", &self.operations),
            ("comparisons", &self.comparisons),
            ("reads of mapped files", &self.mapped),
            ("changes", &self.changes),
            ("refused", &self.refused),
            ("wrong", &self.wrong),
            ("plain reads", &self.plain),
            ("plain refused", &self.plain_refused),
        ]
    }

    fn one(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn line(&self) -> String {
        let all = self.all();
        let words = all.map(|(name, count)| format!("{} {name}", count.load(Ordering::Relaxed)));
        format!("model: {}", words.join(", "))
    }

    /// Adds what a process reported; false if it reported nothing.
    fn add(&self, output: &str) -> bool {
        let Some(line) = output.lines().find_map(|line| line.split("model: ").nth(1)) else {
            return false;
        };
        for (word, (_, count)) in line.split(", ").zip(self.all()) {
            let number = word.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            count.fetch_add(number, Ordering::Relaxed);
        }
        true
    }
}

/// A file of a thread's, registered.
struct Registered {
    inode: u64,
    handle: usize,
    /// Closed at once for some.
    _file: Option<File>,
}

/// A thread that uses the library.
struct User<'a> {
    place: &'a Place,
    counts: &'a Counts,
    cuda: &'a Cuda,
    cufile: &'a Cufile,
    choices: Choices,
    memory: u64,
    stream: usize,
    batch: usize,
    files: [Option<Registered>; FILES],
}

impl User<'_> {
    #[expect(clippy::print_stderr, reason = "the process that started this one looks for it")]
    fn wrong(&self, what: &str) {
        Counts::one(&self.counts.wrong);
        eprintln!("WRONG {}: {what}", self.place.dir.display());
    }

    /// The handle of what has the file's name now.
    fn handle(&mut self, number: usize) -> usize {
        let path = self.place.path(number);
        let known = self.files[number].as_ref().map(|one| one.inode);
        let inode = std::fs::metadata(&path).ok().map(|facts| facts.ino());
        if let Some(one) = &self.files[number]
            && (inode.is_none() || known == inode)
            && self.choices.below(500) > 0
        {
            return one.handle;
        }
        if let Some(old) = self.files[number].take() {
            self.cufile.deregister(old.handle);
        }
        // A descriptor for writing keeps the library from mapping the file.
        let writes = number >= SELDOM;
        let flags = if writes && self.choices.below(3) == 0 { libc::O_DIRECT } else { 0 };
        let opened = loop {
            let with =
                |flags| OpenOptions::new().read(true).write(writes).custom_flags(flags).open(&path);
            if let Ok(file) = with(flags).or_else(|_| with(0)) {
                break file;
            }
        };
        let handle = self.cufile.register(&opened).unwrap();
        let inode = opened.metadata().unwrap().ino();
        let file = (self.choices.below(4) > 0).then_some(opened);
        self.files[number] = Some(Registered { inode, handle, _file: file });
        handle
    }

    /// Moves a range, by a call, a batch or a stream; the memory's part begins at `skip`.
    fn moves(
        &mut self,
        writes: bool,
        handle: usize,
        (at, len): (usize, usize),
        skip: usize,
    ) -> isize {
        Counts::one(&self.counts.operations);
        let number = |value: usize| i64::try_from(value).unwrap();
        match self.choices.below(6) {
            0 => {
                let third = len / 3;
                let parts = [(0, third), (third, third), (2 * third, len - 2 * third)];
                let mut entries: Vec<_> = parts
                    .iter()
                    .filter(|(_, len)| *len > 0)
                    .map(|&(from, len)| Entry {
                        mode: 1,
                        base: self.memory,
                        file_offset: number(at + from),
                        buffer_offset: number(skip + from),
                        len,
                        handle,
                        opcode: i32::from(writes),
                        cookie: from as u64,
                    })
                    .collect();
                assert_eq!(submit(self.cufile, self.batch, &mut entries), GOOD);
                let count = u32::try_from(entries.len()).unwrap();
                let mut events = Vec::new();
                while events.len() < entries.len() {
                    events.extend(fetch(self.cufile, self.batch, 1, count, None));
                }
                events.sort_by_key(|event| event.cookie);
                let failed = events.iter().map(|event| event.result).find(|result| *result < 0);
                failed.unwrap_or_else(|| events.iter().map(|event| event.result).sum())
            }
            1 => {
                let mut kept = Kept::new(len, number(at), number(skip));
                let (reads, stores) = (self.cufile.cuFileReadAsync, self.cufile.cuFileWriteAsync);
                let call = if writes { stores } else { reads };
                assert_eq!(kept.put(call, handle, self.memory, self.stream), GOOD);
                sync(self.cuda, self.stream);
                kept.done()
            }
            _ if writes => self.cufile.write(handle, self.memory, len, number(at), number(skip)),
            _ => self.cufile.read(handle, self.memory, len, number(at), number(skip)),
        }
    }

    /// A read, the memory before and behind which stays as it was. Returns the bytes that it
    /// brought. Where others change the file meanwhile, a piece may find its end before another one
    /// finds bytes.
    fn read(
        &mut self,
        handle: usize,
        (at, len): (usize, usize),
        is_alone: bool,
    ) -> Option<Vec<u8>> {
        let skip = if self.choices.below(2) == 0 { 0 } else { self.choices.below(MARGIN) };
        let len = len.min(MOST);
        // SAFETY: the thread's memory.
        let code = unsafe { (self.cuda.cuMemsetD8_v2)(self.memory, UNTOUCHED, MOST + 2 * MARGIN) };
        assert_eq!(code, 0);
        let moved = self.moves(false, handle, (at, len), skip);
        let Ok(moved) = usize::try_from(moved) else {
            if !is_alone && moved == -1 {
                // The kernel's: ext4 of Linux 6.18 refuses 5 in a million plain reads beside
                // changes so. A batch or a stream tells no errno.
                Counts::one(&self.counts.refused);
                return None;
            }
            self.wrong(&format!("a read of {len} at {at} is {moved}, errno {}", errno()));
            return None;
        };
        let mut all = self.cuda.get(self.memory, skip + len + MARGIN);
        let untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == UNTOUCHED);
        let most = if is_alone { moved.min(len) } else { len };
        if moved > len || !untouched(&all[..skip]) || !untouched(&all[skip + most..]) {
            self.wrong(&format!("a read of {len} at {at}, {moved} done, wrote beside its range"));
            return None;
        }
        all.truncate(skip + moved);
        Some(all.split_off(skip))
    }

    /// Compares a read with `pread(2)`, while nobody changes the file.
    fn compares(&mut self, number: usize) {
        let lock = self.place.lock(number, FlockOperation::LockShared);
        let handle = self.handle(number);
        let path = self.place.path(number);
        let file = File::open(&path).unwrap();
        let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let (at, len) = self.choices.range(size);
        if let Some(found) = self.read(handle, (at, len), true) {
            let mut expected = vec![0; size.saturating_sub(at).min(len).min(MOST)];
            file.read_exact_at(&mut expected, at as u64).unwrap();
            if found != expected {
                let first = found.iter().zip(&expected).position(|(found, right)| found != right);
                self.wrong(&format!(
                    "file {number}, {len} bytes at {at}: {} of {}, first wrong {first:?}",
                    found.len(),
                    expected.len()
                ));
            }
        }
        drop(lock);
        Counts::one(&self.counts.comparisons);
        if number < SELDOM && is_mapped(&path) {
            Counts::one(&self.counts.mapped);
        }
    }

    /// Writes, and compares what `pread(2)` finds there and beside it.
    fn writes(&mut self, number: usize) {
        let lock = self.place.lock(number, FlockOperation::LockExclusive);
        let handle = self.handle(number);
        let file = File::open(self.place.path(number)).unwrap();
        let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let (at, len) = self.choices.range(size);
        let len = len.min(MOST.saturating_sub(at)).max(1);
        let mut expected = vec![0; size.max(at + len)];
        file.read_exact_at(&mut expected[..size], 0).unwrap();
        let bytes = self.choices.bytes(len);
        let skip = self.choices.below(MARGIN);
        self.cuda.put(self.memory + skip as u64, &bytes);
        let moved = self.moves(true, handle, (at, len), skip);
        expected[at..at + len].copy_from_slice(&bytes);
        let found = std::fs::read(self.place.path(number)).unwrap();
        if moved != len.cast_signed() || found != expected {
            let first = found.iter().zip(&expected).position(|(found, right)| found != right);
            self.wrong(&format!(
                "a write of {len} at {at} is {moved}: {} bytes of {}, first wrong {first:?}",
                found.len(),
                expected.len()
            ));
        }
        drop(lock);
        Counts::one(&self.counts.comparisons);
    }

    fn works(&mut self) {
        while self.place.has_time() {
            let number = self.choices.below(FILES);
            match self.choices.below(8) {
                // As a program that reads its file again and again.
                0 if number < SELDOM => {
                    let handle = self.handle(number);
                    for _ in 0..if is_mapped(&self.place.path(number)) { 10 } else { 150 } {
                        self.moves(false, handle, (0, MOST), 0);
                    }
                    (0..20).for_each(|_| self.compares(number));
                }
                0..3 => {
                    let handle = self.handle(number);
                    for _ in 0..4 {
                        let range = self.choices.range(MOST);
                        self.read(handle, range, false);
                    }
                }
                3..5 if number >= SELDOM => self.writes(number),
                _ => self.compares(number),
            }
        }
    }
}

/// Whether a page of the file is mapped in this process, which does not map it itself.
fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.ends_with(path.to_str().unwrap()))
}

/// A process that uses the library, by two threads.
fn user(place: &Place, counts: &Counts, which: u64) {
    let (cuda, cufile) = (cuda(), cufile());
    let mut context = 0;
    // SAFETY: room for one handle.
    assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) }, 0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (cuda, cufile) = (&cuda, &cufile);
            scope.spawn(move || {
                // SAFETY: a living context.
                assert_eq!(unsafe { (cuda.cuCtxSetCurrent)(context) }, 0);
                let memory = cuda.room(MOST + 2 * MARGIN);
                if thread == 1 {
                    // SAFETY: numbers only.
                    let registered =
                        unsafe { (cufile.cuFileBufRegister)(memory, MOST + 2 * MARGIN, 0) };
                    assert_eq!(registered, GOOD);
                }
                let (stream, batch) = (stream(cuda), set_up(cufile, 8).unwrap());
                let choices = place.choices(which * 10 + thread);
                let files = [const { None }; FILES];
                User { place, counts, cuda, cufile, choices, memory, stream, batch, files }.works();
                destroy(cufile, batch);
            });
        }
    });
}

/// Stores into a shared mapping of a part of a file.
fn by_mapping(path: &Path, at: usize, bytes: &[u8], flushes: bool) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let from = at / 4096 * 4096;
    let whole = at - from + bytes.len();
    let (offset, access) = (i64::try_from(from).unwrap(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), whole, access, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    assert_ne!(start, libc::MAP_FAILED);
    // The mapping outlives the descriptor.
    drop(file);
    let to = start.cast::<u8>().wrapping_add(at - from);
    // SAFETY: inside the mapping, and the file is as long: this process alone has the lock.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    if flushes {
        // SAFETY: the mapping from above.
        unsafe { libc::msync(start, whole, libc::MS_SYNC) };
    }
    // SAFETY: as above, and used no more.
    unsafe { libc::munmap(start, whole) };
}

/// Changes a file in one of the ways that there are. Ways that a file system does not have are left
/// out.
fn change(choices: &mut Choices, path: &Path) {
    let write = || OpenOptions::new().read(true).write(true).open(path).unwrap();
    let size = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    let at = choices.below(size);
    let longest = if choices.below(3) == 0 { 400_000 } else { 5000 };
    let len = 1 + choices.below(longest);
    let bytes = choices.bytes(len);
    let inside = &bytes[..bytes.len().min(size - at)];
    let (block, blocks) = (at / 4096 * 4096, 4096 * (1 + choices.below(20)));
    let punched = |how, at: usize, len: usize| {
        let (at, len) = (i64::try_from(at).unwrap(), i64::try_from(len).unwrap());
        // SAFETY: numbers only.
        let _ = unsafe { libc::fallocate(write().as_raw_fd(), how, at, len) };
    };
    let kept = libc::FALLOC_FL_KEEP_SIZE;
    match choices.below(14) {
        0 | 1 => write().write_all_at(&bytes, at as u64).unwrap(),
        2 => {
            let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path);
            let aligned = vec![bytes[0]; 3 * 4096];
            let start = aligned.as_ptr().align_offset(4096);
            if let Ok(direct) = direct {
                let _ = direct.write_at(&aligned[start..start + 8192], block as u64);
            }
        }
        3 => by_mapping(path, at, inside, false),
        4 => by_mapping(path, at, inside, true),
        5 => {
            let shorter = c_path(path);
            let len = i64::try_from(size.saturating_sub(choices.below(9000))).unwrap();
            // SAFETY: the path is NUL-terminated.
            unsafe { libc::truncate(shorter.as_ptr(), len) };
        }
        6 => write().set_len((size + choices.below(100_000)) as u64).unwrap(),
        7 => punched(libc::FALLOC_FL_PUNCH_HOLE | kept, at, inside.len()),
        8 => punched(libc::FALLOC_FL_ZERO_RANGE | kept, at, inside.len()),
        9 => punched(libc::FALLOC_FL_COLLAPSE_RANGE, block, blocks),
        10 => punched(libc::FALLOC_FL_INSERT_RANGE, block, blocks),
        11 => replace(choices, path),
        12 => {
            let file = write();
            let (mut from, mut to) = (choices.below(size) as u64, at as u64);
            let _ = rustix::fs::copy_file_range(
                &file,
                Some(&mut from),
                &file,
                Some(&mut to),
                bytes.len(),
            );
        }
        _ => {
            let len = LEAST + choices.below(LEAST);
            std::fs::write(path, choices.bytes(len)).unwrap();
        }
    }
    let size = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    if !(LEAST..=MOST).contains(&size) {
        write().set_len(size.clamp(LEAST, MOST) as u64).unwrap();
    }
}

/// Puts another file under the name.
fn replace(choices: &mut Choices, path: &Path) {
    let other = path.with_extension("new");
    let len = LEAST + choices.below(LEAST);
    std::fs::write(&other, choices.bytes(len)).unwrap();
    std::fs::rename(&other, path).unwrap();
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// A process that changes files.
fn changer(place: &Place, counts: &Counts, which: u64) {
    let mut choices = place.choices(which * 10);
    let mut seldom = Instant::now();
    while place.has_time() {
        // The library takes a lease again some time after a writer was there.
        let number = if which == 0 && seldom.elapsed() > Duration::from_secs(8) {
            seldom = Instant::now();
            choices.below(SELDOM)
        } else {
            SELDOM + choices.below(FILES - SELDOM)
        };
        let lock = place.lock(number, FlockOperation::LockExclusive);
        for _ in 0..1 + choices.below(3) {
            change(&mut choices, &place.path(number));
            Counts::one(&counts.changes);
        }
        if number < SELDOM && choices.below(2) == 0 {
            // The longer the library waits, the oftener there was a writer: another file has none.
            replace(&mut choices, &place.path(number));
        }
        drop(lock);
        std::thread::sleep(Duration::from_micros(choices.below(4000) as u64));
    }
}

/// A process that reads without the library and without locks, with `O_DIRECT` and without.
fn reader(place: &Place, counts: &Counts, which: u64) {
    let mut choices = place.choices(which * 10);
    let mut memory = vec![0; MOST + 4096];
    let start = memory.as_ptr().align_offset(4096);
    while place.has_time() {
        let path = place.path(choices.below(FILES));
        let flags = if choices.below(2) == 0 { libc::O_DIRECT } else { 0 };
        let with = |flags| OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let Ok(file) = with(flags).or_else(|_| with(0)) else { continue };
        for _ in 0..20 {
            let (at, len) = choices.range(MOST);
            let (at, len) = (at / 4096 * 4096, (len.min(MOST) / 4096).max(1) * 4096);
            Counts::one(&counts.plain);
            match file.read_at(&mut memory[start..start + len], at as u64) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    Counts::one(&counts.plain_refused);
                }
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
}

fn start(place: &Place, role: &str) -> (Child, PathBuf) {
    let output = place.dir.join(format!("output-{role}"));
    let file = File::create(&output).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([TEST, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env("GPUIO_MODEL_DIR", &place.dir);
    if !on_system() {
        command.env("GPUIO_CUFILE_DRIVER", crate::client::built("libgpuio_softgpu.so"));
    }
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    (command.spawn().unwrap(), output)
}

#[test]
#[ignore = "for as long as it is given: cargo xtask attack --only model"]
fn files_that_other_processes_change() {
    let (place, counts) = (Place::of_environment(), Counts::default());
    if let Ok(role) = std::env::var(ROLE) {
        let (kind, which) = role.split_once('-').unwrap();
        let which = which.parse().unwrap();
        match kind {
            "user" => user(&place, &counts, which),
            "changer" => changer(&place, &counts, which),
            _ => reader(&place, &counts, which),
        }
        println!("{}", counts.line());
        return;
    }
    let dir = tempfile::tempdir_in(&place.dir).unwrap();
    let place = Place { dir: dir.path().to_owned(), ..place };
    let mut choices = place.choices(999);
    for number in 0..FILES {
        std::fs::write(place.path(number), choices.bytes(2 * LEAST)).unwrap();
    }
    let seconds = place.until.saturating_duration_since(Instant::now()).as_secs();
    let roles = ["user-1", "user-2", "changer-0", "changer-3", "reader-4"];
    let children: Vec<_> = roles.iter().map(|role| start(&place, role)).collect();
    let mut failed = Vec::new();
    for (role, (mut child, output)) in roles.iter().zip(children) {
        let status = child.wait().unwrap();
        let said = std::fs::read_to_string(output).unwrap();
        if !counts.add(&said) || !status.success() || said.contains("WRONG") {
            failed.push(format!("{role}: {status}\n{said}"));
        }
    }
    println!("{}", counts.line());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(counts.comparisons.load(Ordering::Relaxed) > 0 || seconds == 0, "nothing was compared");
    let mapped = counts.mapped.load(Ordering::Relaxed);
    assert!(mapped > 0 || seconds < MAPPED_AFTER, "no file was mapped in {seconds} s");
}
