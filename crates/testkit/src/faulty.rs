//! A file whose I/O fails where a test wants it: the only file of a file system in user space,
//! which a thread of the test serves by the kernel's own protocol (`include/uapi/linux/fuse.h`).

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::path::PathBuf;

use crate::file_systems::{Room, run_with, text};

/// An I/O that touches these bytes goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    pub bytes: Range<u64>,
    pub is_write: bool,
    /// As `-EIO`; or 0: the I/O stops before these bytes, unless it begins there. io_uring makes
    /// `-EIO` of a write that stops so.
    pub errno: i32,
}

/// Whether reads and writes of a process go to the server as they are, or through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// By pages, where a short answer means the end of the file: no [`Fault`] of errno 0.
    Pages,
    None,
}

/// Mounts a file of this content at `name`; where, or why that is not possible.
///
/// # Errors
/// `/dev/fuse` can't be used.
pub fn mount(
    room: &mut Room,
    name: &str,
    content: Vec<u8>,
    cache: Cache,
    faults: Vec<Fault>,
) -> Result<PathBuf, String> {
    let place = room.path(name);
    File::create_new(&place).unwrap();
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
    let input = device.try_clone().unwrap();
    // Descriptor 0 of mount(8). The root of this file system is a regular file.
    let options = "fd=0,rootmode=100600,user_id=0,group_id=0,allow_other";
    let arguments = ["-i", "-t", "fuse", "-o", options, "faulty", text(&place)];
    run_with("mount", &arguments, input.into())?;
    room.is_mounted(&place);
    // It ends with the mount.
    std::thread::spawn(move || Server { device, content, cache, faults }.serve());
    Ok(place)
}

struct Server {
    device: File,
    content: Vec<u8>,
    cache: Cache,
    faults: Vec<Fault>,
}

/// Bytes of a request before its arguments, and the most of a write.
const HEAD: usize = 40;
const MOST: usize = 128 << 10;

/// A negative errno, or the answer; nothing, to a request that gets none.
type Answer = Option<Result<Vec<u8>, i32>>;

impl Server {
    fn serve(mut self) {
        let mut request = vec![0; MOST + 4096];
        // The device ends with an error when nothing is mounted.
        while let Ok(len) = self.device.read(&mut request) {
            let Some(answer) = self.answer(&request[..len]) else { continue };
            let (code, body) = answer.map_or_else(|code| (code, Vec::new()), |body| (0, body));
            let mut reply = Message::default();
            reply.u32(u32::try_from(16 + body.len()).unwrap()).u32(code.cast_unsigned());
            reply.u64(u64_at(&request, 8)).0.extend(body);
            // A request that was interrupted meanwhile wants no answer.
            let _ = self.device.write(&reply.0);
        }
    }

    fn answer(&mut self, request: &[u8]) -> Answer {
        let arguments = &request[HEAD..];
        match u32_at(request, 4) {
            // FORGET, INTERRUPT, BATCH_FORGET.
            2 | 36 | 42 => None,
            // GETATTR, SETATTR.
            3 | 4 => Some(Ok(self.attributes())),
            // OPEN: a handle, and FOPEN_DIRECT_IO.
            14 => {
                let mut opened = Message::default();
                opened.u64(0).u32(u32::from(self.cache == Cache::None)).u32(0);
                Some(Ok(opened.0))
            }
            15 => Some(self.moved(arguments, false).map(|bytes| self.content[bytes].to_vec())),
            16 => Some(self.moved(arguments, true).map(|bytes| {
                let mut moved = Message::default();
                moved.u32(u32::try_from(bytes.len()).unwrap()).u32(0);
                let data = &arguments[40..][..bytes.len()];
                self.content[bytes].copy_from_slice(data);
                moved.0
            })),
            // RELEASE, FSYNC, FLUSH.
            18 | 20 | 25 => Some(Ok(Vec::new())),
            26 => Some(Ok(introduction())),
            _ => Some(Err(-libc::ENOSYS)),
        }
    }

    /// The bytes that a READ or WRITE moves. A write beyond the end does not make the file longer:
    /// it fails.
    fn moved(&self, arguments: &[u8], is_write: bool) -> Result<Range<usize>, i32> {
        let (begin, len) = (u64_at(arguments, 8), u64::from(u32_at(arguments, 16)));
        let size = self.content.len() as u64;
        if is_write && begin + len > size {
            return Err(-libc::EFBIG);
        }
        let begin = begin.min(size);
        let mut end = (begin + len).min(size);
        for Fault { bytes, errno, .. } in self.faults.iter().filter(|one| one.is_write == is_write)
        {
            if bytes.start >= end || bytes.end <= begin {
                continue;
            }
            if *errno != 0 {
                return Err(*errno);
            }
            end = if begin < bytes.start { bytes.start } else { end };
        }
        Ok(usize::try_from(begin).unwrap()..usize::try_from(end).unwrap())
    }

    /// `struct fuse_attr_out`: valid for an hour.
    fn attributes(&self) -> Vec<u8> {
        let size = self.content.len() as u64;
        let mut out = Message::default();
        out.u64(3600).u64(0);
        // Inode, size, blocks; times and their nanoseconds; mode, links.
        out.u64(1).u64(size).u64(size / 512).u64(0).u64(0).u64(0).u64(0).u32(0);
        out.u32(libc::S_IFREG | 0o600).u32(1);
        // User, group, device, length of a block, flags.
        out.u32(0).u32(0).u32(0).u32(4096).u32(0);
        out.0
    }
}

/// `struct fuse_init_out` of version 7.31, with one extension of the protocol, `FUSE_ASYNC_DIO`, as
/// libfuse 3 has it. Without it Linux 6.18 completes a read of io_uring that was answered short by
/// the same bytes again and again.
fn introduction() -> Vec<u8> {
    const ASYNC_DIO: u32 = 1 << 15;
    let mut out = Message::default();
    out.u32(7).u32(31).u32(128 << 10).u32(ASYNC_DIO);
    // At most 16 requests wait in the background, and 12 is much.
    out.u32(16 | 12 << 16).u32(u32::try_from(MOST).unwrap());
    // Times count in nanoseconds; the rest is 0.
    out.u32(1).u32(0);
    out.0.resize(64, 0);
    out.0
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}
