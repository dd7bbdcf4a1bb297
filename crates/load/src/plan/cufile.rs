//! What jobs ask of cuFile's configuration.

use std::collections::BTreeMap;

use gpuio_spec::{CufileSetting, JobSpec, Spec};

use super::PlanError;

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
