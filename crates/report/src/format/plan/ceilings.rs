//! Comments about the ceilings that the run will measure, requested by the key `ceilings` of the
//! jobs.

use gpuio_record::{CeilingPlan, CeilingSource};

use super::comment;
use crate::ceilings::{direction, source};

pub(super) fn write(out: &mut String, ceilings: &[CeilingPlan]) {
    if ceilings.is_empty() {
        return;
    }
    out.push('\n');
    comment(out, "ceilings, measured after the last job and not part of any job's time:");
    for ceiling in ceilings {
        let mut words = vec![source(&ceiling.source)];
        match &ceiling.source {
            CeilingSource::Absent { why } => words.push(why.clone()),
            _ => words.push(ceiling.what.clone()),
        }
        words.extend(ceiling.threads.map(|threads| format!("{threads} threads")));
        if ceiling.restores {
            words.push("then a pass that restores the pattern".to_owned());
        }
        if ceiling.software_gpu {
            words.push("software GPU".to_owned());
        }
        let what = words.join("; ");
        let jobs = ceiling.jobs.join(", ");
        let bounds = direction(ceiling);
        comment(out, &format!("ceiling '{}' ({bounds}) of {jobs}: {what}", ceiling.name));
    }
}
