//! What this process caused at storage: `/proc/self/io` (proc_pid_io(5), Linux 2.6.20).

use gpuio_host::Root;
use gpuio_host::proc_io::{self, ProcessIoSample};

use super::mounts::{self, Kept};
use super::verdict::{Flow, Saw};
use super::{Case, Row, Share, Testimony, Witness, goes_through_cache, size};

pub(super) const ROW: Row = Row {
    name: "process_io",
    source: "/proc/self/io, read_bytes and write_bytes",
    first: |scene| {
        let (root, jobs) = (scene.root, scene.jobs);
        let kept = jobs.iter().map(|job| mounts::kept(root, job)).collect();
        Box::new(ProcessIo { kept, before: read(root), after: Err(String::new()) })
    },
};

struct ProcessIo {
    /// Per job, what holds its files.
    kept: Vec<Kept>,
    before: Result<ProcessIoSample, String>,
    after: Result<ProcessIoSample, String>,
}

fn read(root: &Root) -> Result<ProcessIoSample, String> {
    match proc_io::sample(root) {
        Ok(Some(sample)) => Ok(sample),
        Ok(None) => Err("/proc/self/io is not there: a kernel without I/O accounting".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Witness for ProcessIo {
    fn again(&mut self, root: &Root) {
        self.after = read(root);
    }

    fn testify(&self, case: &Case<'_>) -> Testimony {
        let (before, after) = match (&self.before, &self.after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Testimony::none(why),
        };
        let moved = before.delta(after);
        let (name, first, second, moved) = match case.flow {
            Flow::Read => (
                "read_bytes",
                before.total.storage_read_bytes,
                after.total.storage_read_bytes,
                moved.storage_read_bytes,
            ),
            Flow::Write => (
                "write_bytes",
                before.total.storage_write_bytes,
                after.total.storage_write_bytes,
                moved.storage_write_bytes,
            ),
        };
        let (of, share) = case.share(moved, |_| true);
        let (saw, why) = self.judge(case, moved, of, share);
        Testimony {
            before: Some(format!("{name} {first}")),
            after: Some(format!("{name} {second}")),
            moved: Some(moved),
            of: Some(of),
            saw,
            why,
        }
    }
}

impl ProcessIo {
    fn judge(&self, case: &Case<'_>, moved: u64, of: u64, share: Option<Share>) -> (Saw, String) {
        let (moved, of) = (size(moved), size(of));
        if case.flow == Flow::Write && goes_through_cache(case.job(), case.result()) {
            let why = "writes to the page cache count here when pages are dirtied, not when \
                       storage has them";
            return (Saw::Nothing, why.to_owned());
        }
        let Some(share) = share else {
            return (Saw::Nothing, format!("{moved} of {of} leaves this job's part open"));
        };
        let kept = &self.kept[case.at];
        // A file system that fetches bytes by other means than the block layer or NFS need not
        // count them here: a small figure then proves nothing.
        if let (Kept::Elsewhere(what), Share::Part | Share::Little) = (kept, share)
            && what != "overlay"
        {
            let why = format!("files lie on {what}, which may move bytes past this counter");
            return (Saw::Nothing, why);
        }
        let why = format!("storage moved {moved} for this process, which moved {of}");
        (Saw::Storage(share), why)
    }
}
