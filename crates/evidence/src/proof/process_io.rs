//! What this process caused at storage: `/proc/self/io` (proc_pid_io(5), Linux 2.6.20).

use gpuio_host::Root;
use gpuio_host::proc_io::{self, ProcessIoSample};

use super::mounts::{self, Kept};
use super::verdict::{Flow, Observed};
use super::{
    EvidenceSource, EvidenceSourceEntry, Observation, Share, Subject, goes_through_cache, size,
};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "process_io",
    source: "/proc/self/io, read_bytes and write_bytes",
    first: |context| {
        let (root, jobs) = (context.root, context.jobs);
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

impl EvidenceSource for ProcessIo {
    fn again(&mut self, root: &Root) {
        self.after = read(root);
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let (before, after) = match (&self.before, &self.after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Observation::none(why),
        };
        let moved = before.delta(after);
        let (name, first, second, moved) = match subject.flow {
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
        let (of, share) = subject.share(moved, |_| true);
        let (observed, why) = self.interpret(subject, moved, of, share);
        Observation {
            before: Some(format!("{name} {first}")),
            after: Some(format!("{name} {second}")),
            moved: Some(moved),
            of: Some(of),
            observed,
            why,
        }
    }
}

impl ProcessIo {
    fn interpret(
        &self,
        subject: &Subject<'_>,
        moved: u64,
        of: u64,
        share: Option<Share>,
    ) -> (Observed, String) {
        let (moved, of) = (size(moved), size(of));
        if subject.flow == Flow::Write && goes_through_cache(subject.job(), subject.result()) {
            let why = "writes to the page cache count here when pages are dirtied, not when \
                       storage has them";
            return (Observed::Nothing, why.to_owned());
        }
        let Some(share) = share else {
            return (Observed::Nothing, format!("{moved} of {of} leaves this job's part open"));
        };
        let kept = &self.kept[subject.at];
        // A file system that fetches bytes by other means than the block layer or NFS need not
        // count them here: a small figure then proves nothing.
        if let (Kept::Elsewhere(what), Share::Part | Share::Little) = (kept, share)
            && what != "overlay"
        {
            let why = format!("files lie on {what}, which may move bytes past this counter");
            return (Observed::Nothing, why);
        }
        let why = format!("storage moved {moved} for this process, which moved {of}");
        (Observed::Storage(share), why)
    }
}
