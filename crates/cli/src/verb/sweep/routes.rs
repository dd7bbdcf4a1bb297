//! Finds the GPU nearest to the data and the one farthest from it, for a preset that compares
//! routes.

use std::path::{Path, PathBuf};

use gpuio_job::spec::{GpuDriver, GpuWhich, JobSpec};
use gpuio_job::sweep::{Axis, routes};
use gpuio_machine::pair::{Ends, ends};
use gpuio_machine::topo::{Class, Topology};

use crate::args::Work;
use crate::failure::Failure;
use crate::jobs;
use crate::source;

/// The near GPU and a note, besides the axes.
pub(super) struct Routes {
    /// Number of the near GPU, for path `routed`.
    pub(super) via: String,
    /// Which GPU is near or far, and what is missing: a line each.
    pub(super) note: String,
}

/// Adds the axes that depend on the machine.
pub(super) fn add(
    axes: &mut Vec<Axis>,
    work: &Work,
    job_file: Option<&Path>,
    directory: &Path,
) -> Result<Routes, Failure> {
    let mut job = match job_file {
        Some(path) => jobs::read_jobs(path)?.jobs.into_iter().next(),
        None => None,
    }
    .unwrap_or_else(|| JobSpec::new("job"));
    let varied = axes.iter().find(|axis| axis.key == "gpu").map(|axis| axis.values.clone());
    let flag = work.written("gpu");
    if let Some(gpu) = flag.or_else(|| varied.as_ref()?.first().map(String::as_str)) {
        jobs::set(&mut job, "gpu", gpu, "--gpu")?;
    }
    let location = location(axes, work, &job, directory);
    let seen = seen(&location);
    let request = job.gpu.clone().unwrap_or_default();
    let listed: Vec<String> = match request.which {
        GpuWhich::List(numbers) => numbers.iter().map(ToString::to_string).collect(),
        // Only the library reports how many there are.
        _ if request.driver == Some(GpuDriver::Software) => vec!["0".to_owned()],
        _ => Vec::new(),
    };
    let mut lines = Vec::new();
    let (via, gpus) = if let (Some(values), Some(via)) = (varied, listed.first()) {
        lines.push(format!("GPU {} counts as near because it was named first.", values[0]));
        (via.clone(), values)
    } else if let Some(via) = listed.first() {
        let prefix = match request.driver {
            Some(GpuDriver::Software) => "software:",
            _ => "",
        };
        let gpus: Vec<String> = listed.iter().map(|gpu| format!("{prefix}{gpu}")).collect();
        lines.push(format!("GPU {} counts as near because it was named first.", gpus[0]));
        (via.clone(), gpus)
    } else {
        let (found, line) = chosen(seen.as_ref(), &location)?;
        lines.push(line);
        (found[0].clone(), found)
    };
    if gpus.len() == 1 {
        lines.push(
            "No routes to a far GPU (direct, through host memory, through the near GPU over \
             NVLink): this sweep has one GPU."
                .to_owned(),
        );
    }
    let network = seen.as_ref().is_some_and(|ends| ends.network);
    if !network {
        lines.push(format!(
            "cuFile's own choice of routes (properties.rdma_dynamic_routing) applies to network \
             file systems only: for {} it is not varied.",
            location.display()
        ));
    }
    routes(axes, gpus, network);
    Ok(Routes { via, note: lines.join("\n") })
}

/// Location of the data: the first path that is named, else the sweep's directory.
fn location(axes: &[Axis], work: &Work, job: &JobSpec, directory: &Path) -> PathBuf {
    let keys = ["target", "directory", "filename"];
    let axis = axes.iter().find(|axis| keys.contains(&axis.key.as_str()));
    let varied = axis.and_then(|axis| axis.values.first()).cloned();
    let first = || work.flags_of("filename").next()?.written.as_deref();
    let flag = work.written("directory").or_else(first).map(str::to_owned);
    let own = || job.directory.clone().or_else(|| job.filenames.as_ref()?.first().cloned());
    let named = varied.or(flag).or_else(own).map(PathBuf::from);
    let location = named.unwrap_or_else(|| directory.to_owned());
    // For a path that does not exist yet, its nearest existing parent decides.
    let whole = std::path::absolute(&location).unwrap_or(location);
    let there = whole.ancestors().find_map(|path| path.canonicalize().ok());
    there.unwrap_or(whole)
}

/// The GPUs of this machine; `None` if no mount is known for the path.
fn seen(location: &Path) -> Option<Ends> {
    let machine = source::only_one(&[], None).ok()?.captured.machine;
    let topology = Topology::of(&machine, &[]);
    ends(&machine, &topology, location.to_str()?).ok()
}

/// The nearest GPU and the farthest, if that is farther, and a line about them.
fn chosen(seen: Option<&Ends>, location: &Path) -> Result<(Vec<String>, String), Failure> {
    let location = location.display();
    let all = seen.map(|ends| ends.gpus.as_slice()).unwrap_or_default();
    let Some((near, distance)) = all.first() else {
        return Err(Failure::Unavailable(format!(
            "--preset routing: no NVIDIA GPU was found to compare distances from {location}. Name \
             two GPUs with --gpu NEAR,FAR, or use gpuio's software GPU: --gpu software:0,1"
        )));
    };
    let number = |name: &String| name.strip_prefix("GPU").unwrap_or(name).to_owned();
    let name = |distance: &Option<Class>| distance.map_or("distance unknown", Class::name);
    let far = all.last().filter(|(_, other)| other > distance && distance.is_some());
    let near_text = format!("GPU {} is near {location} ({})", number(near), name(distance));
    Ok(match far {
        Some((far, other)) => {
            let line = format!("{near_text}, GPU {} far ({}).", number(far), name(other));
            (vec![number(near), number(far)], line)
        }
        None if all.len() > 1 => {
            let line =
                format!("{near_text}; no farther GPU was found. Name two with --gpu NEAR,FAR.");
            (vec![number(near)], line)
        }
        None => (vec![number(near)], format!("{near_text}.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(distances: &[Option<Class>]) -> Ends {
        let gpus =
            distances.iter().enumerate().map(|(at, distance)| (format!("GPU{at}"), *distance));
        Ends { mount: "/mnt".to_owned(), network: false, gpus: gpus.collect() }
    }

    fn of(distances: &[Option<Class>]) -> (Vec<String>, String) {
        chosen(Some(&ends(distances)), Path::new("/mnt/a")).unwrap()
    }

    #[test]
    fn the_farthest_gpu_is_taken_where_it_is_farther() {
        let (gpus, line) = of(&[Some(Class::Pxb), Some(Class::Pxb), Some(Class::Sys)]);
        assert_eq!(gpus, ["0", "2"]);
        assert_eq!(line, "GPU 0 is near /mnt/a (PXB), GPU 2 far (SYS).");
        assert_eq!(of(&[Some(Class::Pxb); 2]).0, ["0"], "as near");
        assert!(of(&[None, None]).1.contains("no farther GPU was found"));
        assert_eq!(of(&[Some(Class::Pix)]).1, "GPU 0 is near /mnt/a (PIX).");
        let none = chosen(Some(&ends(&[])), Path::new("/mnt/a")).unwrap_err();
        assert!(matches!(none, Failure::Unavailable(_)));
    }
}
