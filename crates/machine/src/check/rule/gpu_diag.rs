//! The results of DCGM's tests, where its output is among the files read.

use gpuio_record::facts::{Diagnosis, Machine, Verdict};

use super::Rule;
use crate::check::finding::Found;

pub(super) const RULE: Rule = Rule {
    name: "gpu-diag",
    question: "If the output of `dcgmi diag` was given: did the GPUs pass every test?",
    why: "A GPU whose memory, PCIe link or NVLinks fail their test moves bytes slowly or wrongly, \
          whatever the storage does.",
    fix: "Run the test alone (`dcgmi diag -r TEST -v`), look at its words and at Xid messages of \
           dmesg; reseat or replace the GPU, riser or cable.",
    source: "NVIDIA, DCGM User Guide, DCGM Diagnostics",
    shown_by: "dcgmi diag",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let all = &machine.diagnoses;
    if all.is_empty() {
        return vec![Found::not_applicable("no output of dcgmi diag was given with --from")];
    }
    let bad = all.iter().filter(|one| matches!(one.verdict, Verdict::Fail | Verdict::Warn));
    let mut found: Vec<Found> = bad.map(|one| of(one, all)).collect();
    if found.is_empty() && all.iter().all(|one| one.verdict == Verdict::Skip) {
        found.push(Found::unknown("dcgmi diag skipped every test"));
    } else if found.is_empty() {
        found.push(Found::pass("dcgmi diag printed no test that failed"));
    }
    found
}

/// A test that did not pass, with all that is said of it.
fn of(one: &Diagnosis, all: &[Diagnosis]) -> Found {
    let words = all.iter().filter(|other| other.test == one.test && !other.words.is_empty());
    let words: Vec<&str> = words.map(|other| other.words.as_str()).collect();
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
    let fix = "look at `dcgmi diag -r 3 -v` and dmesg (Xid)";
    let found = match one.verdict {
        Verdict::Fail => {
            Found::fail(format!("dcgmi diag printed `{}: Fail`{words}", one.test), fix)
        }
        _ => Found::warn(format!("dcgmi diag printed `{}: Warn`{words}", one.test), fix),
    };
    found.at((!one.of.is_empty()).then_some(one.of.as_str()))
}
