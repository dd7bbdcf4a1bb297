//! fio's engine against the I/Os in flight that are requested of it (fio's HOWTO, `ioengine` and
//! `iodepth`).

use super::{Known, say};
use crate::post::command::one_at_a_time;
use crate::post::seen::Sight;
use crate::post::{About, Asked, Got, Post, Run, Statement};

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let runs = post.runs.iter().filter_map(|run| Some((run, run.got.as_ref()?)));
    let fio = runs.filter(|(_, got)| got.tool == "fio");
    let said = fio.flat_map(|(run, got)| {
        let words = [in_flight(run, got), buffered(run)];
        let lines = [got.line, run.asked.as_ref().map_or(0, |asked| asked.line)];
        words.into_iter().flatten().map(move |words| say(post, About::Limit, &lines, words))
    });
    said.collect()
}

/// The request, where its command or job file is in the text.
fn request(run: &Run) -> Option<&Asked> {
    run.asked.as_ref().filter(|asked| asked.direction.is_some() || asked.engine.is_some())
}

fn in_flight(run: &Run, got: &Got) -> Option<String> {
    // iostat shows it, and then it is said there.
    let shown = run.beside.iter().any(|seen| matches!(seen.sight, Sight::Disks(_)));
    let asked = request(run);
    let depth = got.depth.or(asked.and_then(|asked| asked.depth));
    let depth = depth.filter(|depth| *depth > 1 && !shown)?;
    let engine = got.engine.as_deref().or(asked.and_then(|asked| asked.engine.as_deref()));
    match engine {
        Some(engine) if one_at_a_time(engine) => Some(format!(
            "iodepth {depth} has no effect with {engine}, which waits for each I/O: a thread has \
             one in flight. Use libaio or io_uring with direct=1."
        )),
        None => asked.map(|_| {
            format!(
                "iodepth {depth} has no effect where no ioengine is named: fio's own waits for \
                 each I/O. Add --ioengine=libaio or io_uring with direct=1."
            )
        }),
        Some("libaio") if asked.is_some_and(Asked::is_buffered) => Some(format!(
            "iodepth {depth} has no effect: libaio waits for each I/O where direct=1 is not set."
        )),
        Some(_) => None,
    }
}

fn buffered(run: &Run) -> Option<String> {
    request(run).filter(|asked| asked.is_buffered())?;
    let text = "direct=1 is not set, so this goes through the page cache: a read may be of memory \
                alone, and a write has ended before storage has it.";
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(flags: &str, engine: &str, depth: u32) -> Vec<String> {
        let text = format!(
            "$ fio --name=a --rw=randread --bs=4k --filename=/dev/nvme0n1 {flags}\n\
             a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine={engine}, \
             iodepth={depth}\nfio-3.28\nStarting 1 process\n\
             a: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=25.9k, BW=101MiB/s \
             (106MB/s)(5934MiB/60001msec)\n"
        );
        let post = crate::post::read("post", &text);
        hold(&post, &[]).into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn a_depth_without_effect_has_its_cause() {
        let psync = said("--ioengine=psync --iodepth=32 --direct=1", "psync", 32);
        assert!(psync.len() == 1, "{psync:?}");
        assert!(psync[0].starts_with("iodepth 32 has no effect with psync"), "{psync:?}");
        let buffered = said("--ioengine=libaio --iodepth=32", "libaio", 32);
        assert!(buffered[0].contains("libaio waits for each I/O where direct=1"), "{buffered:?}");
        assert!(buffered[1].contains("through the page cache"), "{buffered:?}");
        assert!(said("--ioengine=libaio --iodepth=32 --direct=1", "libaio", 32).is_empty());
        assert!(said("--ioengine=psync --direct=1", "psync", 1).is_empty());
        // A job file that is not in the text says nothing of direct.
        let text = "$ fio a.fio\na: (g=0): rw=read, bs=1M-1M, ioengine=libaio, iodepth=8\n  read: \
                    IOPS=519, BW=519MiB/s (544MB/s)(91.2GiB/180001msec)\n";
        assert!(hold(&crate::post::read("post", text), &[]).is_empty());
    }
}
