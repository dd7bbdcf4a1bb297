//! Transparent huge pages for the ring of staging buffers.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;

pub(super) const RULE: Rule = Rule {
    name: "huge-pages",
    question: "May buffers lie on transparent huge pages?",
    why: "A buffer of 1 MiB on pages of 4 KiB is 256 pages to pin and 256 pieces in a drive's \
          list; on huge pages it is one.",
    fix: "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`, for good with \
           transparent_hugepage=madvise on the kernel's command line.",
    source: "Documentation/admin-guide/mm/transhuge.rst",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let location = "/sys/kernel/mm/transparent_hugepage/enabled";
    vec![match machine.host.kernel.transparent_huge_pages.as_deref() {
        Some(mode @ ("always" | "madvise")) => {
            Found::pass(format!("transparent huge pages: {mode}"))
        }
        Some(mode) => {
            let fix = format!("`echo madvise > {location}`");
            Found::warn(format!("transparent huge pages: {mode}"), fix).at([location])
        }
        None => Found::unknown("the mode was not read, or the kernel was built without them"),
    }]
}
