//! Ceilings that the run will look for, as comments: the key `ceilings` of the jobs asks for them.

use gpuio_record::{CeilingPlan, CeilingSource};

use super::comment;
use crate::ceilings::{direction, source};

pub(super) fn write(out: &mut String, ceilings: &[CeilingPlan]) {
    if ceilings.is_empty() {
        return;
    }
    out.push('\n');
    comment(out, "ceilings, after the last job and outside every job's clock:");
    for ceiling in ceilings {
        let mut words = vec![source(&ceiling.source)];
        match &ceiling.source {
            CeilingSource::Absent { why } => words.push(why.clone()),
            _ => words.push(ceiling.what.clone()),
        }
        words.extend(ceiling.threads.map(|threads| format!("{threads} threads")));
        if ceiling.restores {
            words.push("then a pass that writes the pattern again".to_owned());
        }
        if ceiling.software_gpu {
            words.push("software GPU".to_owned());
        }
        let what = words.join("; ");
        let jobs = ceiling.jobs.join(", ");
        let way = direction(ceiling);
        comment(out, &format!("ceiling '{}' ({way}) of {jobs}: {what}", ceiling.name));
    }
}
