//! The settings of cuFile's configuration that jobs need.

use std::collections::BTreeMap;

use gpuio_base::catalog::{Catalog, PathInfo};
use gpuio_record::{JobPlan, LeftOut};

use super::PlanError;
use crate::spec::{CufileSetting, JobSpec, Spec};

/// The settings of all jobs together, by the path of their keys, values as JSON.
///
/// # Errors
/// Two jobs that want different values: cuFile reads its configuration once in a process.
pub fn settings(spec: &Spec) -> Result<BTreeMap<String, String>, PlanError> {
    let mut all: BTreeMap<&str, (&JobSpec, &CufileSetting)> = BTreeMap::new();
    for job in &spec.jobs {
        for (key, setting) in &job.cufile {
            let (first, other) = all.entry(key).or_insert((job, setting));
            if other.json != setting.json {
                return Err(PlanError::Usage {
                    at: Some(format!("job '{}', cufile.{key} ({})", job.name, setting.origin)),
                    what: format!(
                        "it wants {} and job '{}' wants {} ({}): cuFile reads its configuration \
                         once in a process; use two job files with gpuio bench --ab, or gpuio \
                         sweep --vary cufile.{key}=…",
                        setting.json, first.name, other.json, other.origin
                    ),
                });
            }
        }
    }
    let json = |(_, setting): (&JobSpec, &CufileSetting)| setting.json.clone();
    Ok(all.into_iter().map(|(key, one)| (key.to_owned(), json(one))).collect())
}

/// The settings for these jobs, at least one of which must take a path of cuFile's where there are
/// any.
///
/// # Errors
/// As of [`settings`]; settings that no job uses.
pub(super) fn of_jobs(
    spec: &Spec,
    jobs: &[JobPlan],
    left_out: &[LeftOut],
    catalog: &Catalog,
) -> Result<BTreeMap<String, String>, PlanError> {
    let mut all = settings(spec)?;
    let takes_cufile = |job: &JobPlan| job.register_buffer.is_some();
    let mut given = spec.jobs.iter().flat_map(|job| job.cufile.iter().map(move |one| (job, one)));
    let (Some((job, (key, setting))), false) = (given.next(), jobs.iter().any(takes_cufile)) else {
        return Ok(all);
    };
    if job.one_of_many {
        all.clear();
        return Ok(all);
    }
    let at = Some(format!("job '{}', cufile.{key} ({})", job.name, setting.origin));
    let cufiles = |out: &&LeftOut| catalog.path(&out.path).is_some_and(PathInfo::uses_cufile);
    Err(match left_out.iter().find(cufiles) {
        Some(out) => PlanError::Unavailable {
            at,
            what: format!("it has no effect here: cuFile's paths can't run: {}", out.why),
        },
        None => PlanError::Usage {
            at,
            what: super::said(
                job,
                "",
                "it has no effect here: it concerns cuFile's paths, and no job takes one; add \
                 --path=gds, or leave it out",
            ),
        },
    })
}
