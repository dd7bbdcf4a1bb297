//! gpuio's path into host memory.

use super::Mode;
use crate::check::machine::has_option;
use crate::check::verdict::{About, Need, Pair};

pub(super) const MODE: Mode = Mode {
    name: "host",
    is: "gpuio's path host: file and host memory, no GPU",
    source: "gpuio, docs/glossary.md, path",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    let reads = Need::yes(About::FileSystem, "any file system can be read into host memory");
    if has_option(pair.mount, "ro") {
        return vec![
            reads,
            Need::yes(About::FileSystem, "it is mounted read-only: reads, no writes"),
        ];
    }
    vec![reads]
}
