//! Failed I/Os, gathered so that a million alike take one line.

use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{self, Fault, Leg, Request};
use gpuio_record::{IoFailure, JobPlan, TargetKind};

/// Kinds kept apart per worker.
const KINDS: usize = 16;
/// Kinds kept apart per job: one of each of many threads that fail on files of their own.
const KINDS_OF_JOB: usize = 1024;

/// One kind of failure: the first of it, and how many.
#[derive(Debug, Clone)]
struct Kind {
    target: u32,
    op: Op,
    fault: Fault,
    offset: u64,
    length: u64,
    times: u64,
}

/// Faults of one worker, or of several merged.
#[derive(Debug, Clone, Default)]
pub(super) struct IoFaults {
    kinds: Vec<Kind>,
    pub(super) total: u64,
}

/// Faults that differ only in how far they got are of one kind.
fn alike(a: Fault, b: Fault) -> bool {
    match (a, b) {
        (Fault::File(IoFault::EndOfFile(_)), Fault::File(IoFault::EndOfFile(_))) => true,
        _ => a == b,
    }
}

impl IoFaults {
    pub(super) fn add(&mut self, target: u32, request: &Request, fault: Fault) {
        let (offset, length) = (request.offset, u64::from(request.len));
        self.put(Kind { target, op: request.op, fault, offset, length, times: 1 }, KINDS);
    }

    fn put(&mut self, kind: Kind, most: usize) {
        self.total += kind.times;
        let same = |held: &Kind| {
            held.target == kind.target && held.op == kind.op && alike(held.fault, kind.fault)
        };
        match self.kinds.iter().position(same) {
            Some(at) => self.kinds[at].times += kind.times,
            None if self.kinds.len() < most => self.kinds.push(kind),
            None => {}
        }
    }

    pub(super) fn merge(&mut self, other: IoFaults) {
        let listed: u64 = other.kinds.iter().map(|kind| kind.times).sum();
        self.total += other.total - listed;
        other.kinds.into_iter().for_each(|kind| self.put(kind, KINDS_OF_JOB));
    }

    pub(super) fn into_record(self, job: &JobPlan) -> Vec<IoFailure> {
        self.kinds.into_iter().map(|kind| kind.into_record(job)).collect()
    }
}

impl Kind {
    fn into_record(self, job: &JobPlan) -> IoFailure {
        let op = match self.op {
            Op::Read => "read",
            Op::Write => "write",
        };
        let leg = match self.fault.leg() {
            Some(Leg::File) => "file",
            Some(Leg::Gpu) => "gpu",
            None => "unknown",
        };
        IoFailure {
            path: job.targets[self.target as usize].path.clone(),
            offset: self.offset,
            length: self.length,
            op: op.into(),
            leg: leg.into(),
            what: injected(self.fault, job.inject.as_deref()).unwrap_or_else(|| {
                words(self.fault, self.length, job.targets[self.target as usize].kind)
            }),
            times: self.times,
        }
    }
}

/// An error of a kind that gpuio itself injects into this job: the device need not have failed.
fn injected(fault: Fault, inject: Option<&str>) -> Option<String> {
    let Fault::File(IoFault::Errno(errno)) = fault else { return None };
    let kind = match errno {
        libc::EIO => "eio",
        libc::ENOSPC => "enospc",
        _ => return None,
    };
    let inject = inject.filter(|all| all.split(',').any(|one| one.split('=').next() == Some(kind)));
    let text = std::io::Error::from_raw_os_error(errno);
    Some(format!("{text}: gpuio injects such errors into this job (inject={})", inject?))
}

fn words(fault: Fault, length: u64, kind: TargetKind) -> String {
    match fault {
        Fault::File(IoFault::EndOfFile(actual)) if kind == TargetKind::BlockDevice => format!(
            "the device ends after {actual} of {length} bytes: it was removed, or is smaller than \
             at the start; see dmesg"
        ),
        Fault::File(IoFault::EndOfFile(actual)) => format!(
            "the file ends after {actual} of {length} bytes: it is shorter than at the start; \
             something truncated it"
        ),
        Fault::Gpu(code) => format!(
            "the CUDA driver answered {code} to the copy; codes from 700 on leave the GPU's \
             context unusable (dmesg may show an Xid)"
        ),
        Fault::Cufile(code) => path::cufile_words(code),
        Fault::Library(fault) => fault.words().to_owned(),
        Fault::File(IoFault::Errno(errno)) => {
            let text = std::io::Error::from_raw_os_error(errno);
            format!("{text}{}", meaning(errno))
        }
    }
}

/// The meaning of an errno for a load, where the kernel's own words leave it open.
fn meaning(errno: i32) -> &'static str {
    match errno {
        libc::EFAULT => {
            ": the kernel could not use the memory of the I/O; with O_DIRECT into managed memory \
             it can't pin pages that the GPU's driver moves: use --buffered"
        }
        libc::EIO => ": the device or its driver failed; see dmesg",
        libc::ENODATA => ": the device can't read or write these sectors; see dmesg",
        libc::ENODEV | libc::ENXIO => ": the device was removed; see dmesg",
        libc::EROFS => ": the file system is read-only now, as after an error; see dmesg",
        libc::ENOSPC => ": the file system or thin device is full",
        libc::EDQUOT => ": this user's quota is used up",
        libc::EINVAL => ": with O_DIRECT, an offset, length or address off the device's alignment",
        libc::EFBIG => ": past the largest file (ulimit -f, or the file system's limit)",
        libc::ENOMEM => ": the kernel had no memory for the I/O",
        libc::ETIMEDOUT => ": the I/O took longer than max_latency",
        libc::ESTALE => ": the NFS server no longer knows the file",
        libc::EOPNOTSUPP => ": this file takes no such I/O",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_happened_to_a_device() {
        let end = Fault::File(IoFault::EndOfFile(0));
        assert!(words(end, 4096, TargetKind::BlockDevice).contains("it was removed"));
        assert!(words(end, 4096, TargetKind::File).contains("something truncated it"));
        let errno = |errno| words(Fault::File(IoFault::Errno(errno)), 4096, TargetKind::File);
        assert!(errno(libc::ENODATA).contains("can't read or write these sectors"));
        assert!(errno(libc::ENXIO).contains("the device was removed"));
    }

    #[test]
    fn an_injected_error_is_none_of_the_device() {
        let of = |errno, inject| injected(Fault::File(IoFault::Errno(errno)), inject);
        let text = of(libc::EIO, Some("short=5%,eio=10%")).unwrap();
        assert!(
            text.ends_with(": gpuio injects such errors into this job (inject=short=5%,eio=10%)")
        );
        assert_eq!(of(libc::EIO, Some("enospc=1%")), None);
        assert_eq!(of(libc::ENXIO, Some("eio=10%")), None);
        assert_eq!(of(libc::EIO, None), None);
    }
}
