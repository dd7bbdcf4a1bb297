//! rsize and wsize of NFS mounts.

use gpuio_base::units::format_bytes;
use gpuio_record::facts::{Machine, NfsFacts};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{nfs_mounts, without_nfs};

pub(super) const RULE: Rule = Rule {
    name: "nfs-size",
    question: "Do NFS mounts read and write up to 1 MiB in one request?",
    why: "Each request to the server carries rsize or wsize at most: small ones make many round \
          trips of one large block.",
    fix: "Mount with `-o rsize=1048576,wsize=1048576`; where it comes out smaller, the server \
           sets the limit.",
    source: "nfs(5), rsize and wsize",
    shown_by: "mount",
    evaluate,
};

const WANTED: u64 = 1 << 20;
/// Half of it costs blocks of 1 MiB one more round trip, and others nothing.
const HALF: u64 = WANTED / 2;

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_nfs(machine) {
        return vec![found];
    }
    nfs_mounts(machine).into_iter().map(|(at, nfs)| one(nfs).at([at])).collect()
}

fn one(nfs: &NfsFacts) -> Found {
    let (Some(read), Some(write)) = (nfs.read_bytes, nfs.write_bytes) else {
        return Found::unknown("its options do not show rsize and wsize");
    };
    let observed = format!("rsize is {}, wsize is {}", format_bytes(read), format_bytes(write));
    if read.min(write) >= WANTED {
        return Found::pass(observed);
    }
    let fix = "unmount, and mount with `-o rsize=1048576,wsize=1048576`; where it comes out \
                smaller, raise the server's limit";
    if read.min(write) >= HALF {
        let size = format_bytes(read.min(write));
        return Found::info(format!("{observed}: only blocks above {size} are split")).fix(fix);
    }
    Found::warn(observed, fix)
}
