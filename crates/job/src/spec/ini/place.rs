//! Sections `[place HOSTS/NUMBER]`: what the rank of this number on each of these hosts takes.

use crate::spec::Origin;
use crate::spec::job::JobSpec;
use crate::spec::keys::{KeyError, apply, find};

/// The keys that may differ from rank to rank, since they say where and not what.
pub(super) const KEYS: [&str; 6] = ["directory", "filename", "file_prefix", "gpu", "numa", "cpus"];

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<'a> {
    /// Its host's name (uname(2)).
    pub host: &'a str,
    /// Its number among the ranks of that host, from 0.
    pub local_rank: u32,
}

/// A section with its settings.
#[derive(Debug)]
pub(super) struct Place {
    /// Line and column of the header.
    pub(super) at: (u32, u32),
    hosts: Vec<String>,
    local_rank: u32,
    /// The job that it is for; `None` for all.
    job: Option<String>,
    settings: Vec<(String, String, Origin)>,
}

/// Whether a section's name is of this kind. A job may be called `place`.
pub(super) fn is_header(name: &str) -> bool {
    name.strip_prefix("place").is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// Whether a key may stand in such a section; one that no table knows is reported as such later.
pub(super) fn takes(key: &str) -> bool {
    let known = find(key.split([' ', '\t']).next().unwrap_or(key));
    known.is_none_or(|known| {
        KEYS.contains(&known.name) || ["cpus_allowed", "numa_cpu_nodes"].contains(&known.name)
    })
}

impl Place {
    /// From a header; `None` where its form is wrong.
    pub(super) fn read(name: &str, at: (u32, u32)) -> Option<Place> {
        let mut words = name.strip_prefix("place")?.trim().splitn(2, [' ', '\t']);
        let (hosts, number) = words.next()?.rsplit_once('/')?;
        let job = words.next().map(|job| job.trim().to_owned());
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        let local_rank = number.parse().ok()?;
        let whole = hosts.iter().all(|host| !host.is_empty());
        whole.then_some(Place { at, hosts, local_rank, job, settings: Vec::new() })
    }

    pub(super) fn add(&mut self, key: &str, value: &str, origin: Origin) {
        self.settings.push((key.to_owned(), value.to_owned(), origin));
    }

    pub(super) fn fits(&self, at: At<'_>) -> bool {
        self.local_rank == at.local_rank && self.hosts.iter().any(|host| is_called(host, at.host))
    }

    /// The job that it names, where no job has that name.
    pub(super) fn of_no_job(&self, jobs: &[JobSpec]) -> Option<String> {
        self.job.clone().filter(|name| jobs.iter().all(|job| job.name != *name))
    }

    pub(super) fn apply_to(&self, jobs: &mut [JobSpec]) -> Result<(), KeyError> {
        let is_for = |job: &&mut JobSpec| self.job.as_ref().is_none_or(|name| job.name == *name);
        for job in jobs.iter_mut().filter(is_for) {
            for (key, value, origin) in &self.settings {
                apply(job, key, value, origin.clone())?;
            }
        }
        Ok(())
    }
}

/// Whether a host is called so: with or without its domain, and `*` stands for any characters.
fn is_called(pattern: &str, host: &str) -> bool {
    let short = host.split('.').next().unwrap_or(host);
    gpuio_base::units::fits_wildcard(pattern, host)
        || gpuio_base::units::fits_wildcard(pattern, short)
}
