//! Configures and opens NVIDIA's cuFile library if a path needs it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use gpuio_base::units::ShellLine;
use gpuio_drivers::cufile::{
    Base, Batch, Calls, ConfigError, Driver, Environment, Handle, Library, Search, Setting, Vendor,
};
use gpuio_guard::objects::environment;
use gpuio_guard::outfile::{Directory, Draft};
use gpuio_host::Root;
use gpuio_io::CATALOG;
use gpuio_job::plan::{AUTO, path_names};
use gpuio_job::spec::{CUFILE_PREFIX, JobSpec, Origin, Spec, Vocabulary};
use gpuio_record::{CufileUsed, Plan};
use rustix::fs::{Mode, OFlags};

use crate::args::CufileFlags;
use crate::driver::Loaded;
use crate::failure::Failure;
use crate::ranks;

/// The library, or why its paths can't run.
pub(crate) struct Cufile {
    pub(crate) driver: Option<Driver>,
    missing: Option<String>,
    /// The proof that it reaches GPU memory without host memory for all files of path `auto`, or
    /// why there is none.
    pub(crate) direct: Result<String, String>,
    /// Why batches are not available, if that was tried.
    no_batches: Option<String>,
    /// Whether files were not tried because nothing may be created.
    pub(crate) untried: bool,
}

impl Cufile {
    /// Why the library can't do I/O by these calls; `None` if it can.
    pub(crate) fn missing(&self, calls: Calls) -> Option<String> {
        let lacks = || self.driver.as_ref()?.missing_function(calls).map(|lacks| lacks.to_string());
        let missing = self.missing.clone().or_else(lacks);
        missing.or_else(|| self.no_batches.clone().filter(|_| calls == Calls::Batch))
    }
}

impl Drop for Cufile {
    /// An I/O that the library never finished keeps the driver, but not the configuration.
    fn drop(&mut self) {
        let environment = self.driver.as_ref().and_then(Driver::environment);
        let location = environment.map(Environment::config_directory);
        drop(self.driver.take());
        if let Some(location) = location {
            // Usually the last owner has just removed it.
            location.remove();
        }
    }
}

/// A configuration in the environment, set before a library is loaded that reads it; or why there
/// is none.
pub(crate) type Configured = Result<Environment, String>;

/// Paths that jobs request, by whichever key, of those that may be a path of cuFile's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    named: bool,
    /// `all`.
    all: bool,
    /// `auto`.
    auto: bool,
}

impl Wanted {
    fn of(spec: &Spec) -> Wanted {
        let any = |says: &dyn Fn(&str) -> bool| spec.jobs.iter().any(|job| names(job, says));
        let cufile =
            |name: &str| gpuio_io::path::find(name).is_some_and(|row| row.info.uses_cufile());
        Wanted { named: any(&cufile), all: any(&|name| name == "all"), auto: any(&is_auto) }
    }

    /// Whether only `auto` can select cuFile. `auto` uses it only if nvidia-fs is loaded: without
    /// it NVIDIA's library is not even opened.
    fn only_auto(self) -> bool {
        self.auto && !self.named && !self.all
    }

    fn nothing(self) -> bool {
        !self.auto && !self.named && !self.all
    }
}

fn names(job: &JobSpec, says: &dyn Fn(&str) -> bool) -> bool {
    path_names(job).0.into_iter().any(says)
}

fn is_auto(name: &str) -> bool {
    name == AUTO
}

/// Whether the kernel module for cuFile's direct path is loaded.
fn nvidia_fs_is_loaded() -> bool {
    matches!(gpuio_host::nvidia_fs::sample(&Root::live()), Ok(Some(_)))
}

/// Whether cuFile may be tried on a file created where the job's files will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Yes; the file is removed at once.
    Made,
    /// No: nothing may be created.
    Not,
}

/// Text of a plan in place of the result of a trial.
pub(crate) const UNTRIED: &str = "not tested whether cuFile accepts files there: --dry-run \
    creates none";

const NO_NVIDIA_FS: &str = "nvidia-fs is not loaded";

/// Applies `--cufile-set` to every job, as the job-file key `cufile.KEY` would.
pub(crate) fn set(spec: &mut Spec, flags: &CufileFlags) -> Result<(), Failure> {
    const FLAG: &str = "--cufile-set";
    let wrong = |error: String| Failure::Usage(format!("{FLAG}: {error}"));
    for text in &flags.cufile_set {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            wrong(format!(
                "'{text}' is not a cuFile setting: write key=value with dots between the parts of \
                 the key, as in properties.allow_compat_mode=true"
            ))
        })?;
        let key = format!("{CUFILE_PREFIX}{}", key.trim());
        for job in &mut spec.jobs {
            gpuio_job::spec::apply(job, &key, value.trim(), Origin::Flag(FLAG))
                .map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(())
}

/// Names the configuration of a rank in the environment before it joins the others. MPI's library
/// starts threads then, and only after that a rank knows its jobs.
pub(crate) fn reserve() {
    if ranks::is_one() {
        // Jobs that need it say what is wrong (`configure`).
        let _ = gpuio_drivers::cufile::reserve(&environment::temporary());
    }
}

/// Writes the configuration and sets it in the environment: first, while there is one thread.
/// `None` if no job may need cuFile.
pub(crate) fn configure(spec: &Spec, flags: &CufileFlags) -> Result<Option<Configured>, Failure> {
    let settings = gpuio_job::plan::cufile_settings(spec)?;
    let requested = flags.cufile_lib.is_some() || !settings.is_empty();
    let wanted = Wanted::of(spec);
    if (wanted.nothing() && !requested) || (wanted.only_auto() && !nvidia_fs_is_loaded()) {
        return Ok(None);
    }
    // A sweep checks its points together.
    if wanted.nothing() && spec.jobs.iter().any(|job| job.one_of_many) {
        return Ok(None);
    }
    if wanted.nothing() {
        return Err(no_cufile_path(spec, "--cufile-lib, --cufile-set, cufile.KEY"));
    }
    let value = |(key, json): (String, String)| {
        // It was parsed as JSON before (`gpuio_base::cufilejson::setting`).
        let value = serde_json::from_str(&json).unwrap_or(serde_json::Value::String(json));
        Setting { key, value }
    };
    let settings: Vec<Setting> = settings.into_iter().map(value).collect();
    let written = Base::of_this_process()
        .and_then(|base| Environment::write(base, &settings, &environment::temporary()))
        .and_then(|environment| environment.apply().map(|()| environment));
    match written {
        Err(error @ ConfigError::Shape { .. }) => {
            Err(Failure::Usage(format!("--cufile-set: {error}")))
        }
        written => {
            for left in written.iter().flat_map(|environment| &environment.left) {
                let (remove, left) = (ShellLine::new("rm -r").file(left), left.display());
                message!(
                    "note: a killed run left {left}, which also holds files that are not gpuio's; \
                     check them, then: {remove}"
                );
            }
            Ok(Some(written.map_err(|error| error.to_string())))
        }
    }
}

/// Refuses a library that was named but that no job uses.
pub(crate) fn is_used(spec: &Spec, flags: &CufileFlags, plan: &Plan) -> Result<(), Failure> {
    let of_many = spec.jobs.iter().any(|job| job.one_of_many);
    if flags.cufile_lib.is_none() || of_many || plan.takes_cufile(&CATALOG) {
        return Ok(());
    }
    let row = |name: &str| gpuio_io::path::find(name).is_some_and(|row| row.info.uses_cufile());
    const FLAG: &str = "--cufile-lib";
    Err(match plan.left_out.iter().find(|out| row(&out.path)) {
        Some(out) => Failure::Unavailable(format!(
            "{FLAG}: it has no effect here: cuFile's paths can't run: {}",
            out.why
        )),
        None => no_cufile_path(spec, FLAG),
    })
}

fn no_cufile_path(spec: &Spec, given: &str) -> Failure {
    let add = spec.jobs.first().map(|job| Vocabulary::of(job, "").say("--path=gds"));
    Failure::Usage(format!(
        "{given}: it has no effect here: it only concerns cuFile paths, and no job uses one; add \
         {}, or leave it out",
        add.unwrap_or_default()
    ))
}

/// Opens the library with the CUDA driver: NVIDIA's, or the stand-in with the software GPU.
pub(crate) fn open(
    spec: &Spec,
    flags: &CufileFlags,
    configured: Option<Configured>,
    loaded: &Loaded,
    trial: Trial,
) -> Cufile {
    let missing = |why: String| Cufile {
        driver: None,
        direct: Err(why.clone()),
        missing: Some(why),
        no_batches: None,
        untried: false,
    };
    let wanted = Wanted::of(spec);
    let Some(configured) = configured else {
        let why = if wanted.only_auto() { NO_NVIDIA_FS } else { "no job requested it" };
        return missing(why.into());
    };
    let Some(cuda) = &loaded.driver else {
        return missing("no CUDA driver is loaded".into());
    };
    let search = search(flags, cuda.is_software());
    let opened = configured.and_then(|environment| {
        let library = Library::load(&search).map_err(|absent| absent.to_string())?;
        Driver::open(library, Some(environment), cuda.is_software())
            .map_err(|absent| absent.to_string())
    });
    let driver = match opened {
        Ok(driver) => driver,
        Err(why) => return missing(why),
    };
    // A named path reports its own error; `all` runs the paths that can run.
    let all = wanted.all && !wanted.named;
    if all
        && trial == Trial::Made
        && let Some(why) = spec.jobs.iter().find_map(|job| refusal(&driver, job))
    {
        return missing(why);
    }
    let facts = driver.facts();
    let direct = direct_path(driver.is_stand_in(), facts.nvidia_fs, facts.compat_allowed).and_then(
        |proof| {
            if trial == Trial::Not {
                return Err(UNTRIED.into());
            }
            let mut autos = spec.jobs.iter().filter(|job| names(job, &is_auto));
            autos.find_map(|job| refusal(&driver, job)).map_or(Ok(proof), Err)
        },
    );
    let tried = all.then(|| Batch::set_up(&driver, 1, 4096).map(drop).err());
    let no_batches = tried.flatten().map(|error| error.to_string());
    let untried = all && trial == Trial::Not;
    Cufile { driver: Some(driver), missing: None, direct, no_batches, untried }
}

/// The proof, from the library's own facts, of a path without host memory, before a file is tried.
/// An accepted file proves nothing while the library may go through host memory without reporting
/// it.
fn direct_path(
    stand_in: bool,
    nvidia_fs: Option<(u32, u32)>,
    compat_allowed: Option<bool>,
) -> Result<String, String> {
    if stand_in {
        return Err("the stand-in for cuFile goes through host memory".into());
    }
    let Some((major, minor)) = nvidia_fs else {
        return Err(NO_NVIDIA_FS.into());
    };
    match compat_allowed {
        Some(false) => Ok(format!(
            "cuFile accepts files there, uses nvidia-fs {major}.{minor} and may not go through \
             host memory"
        )),
        Some(true) => {
            Err("cuFile may go through host memory without reporting it; forbid it with \
            --cufile-set properties.allow_compat_mode=false"
                .into())
        }
        None => Err("cuFile does not report whether it may go through host memory".into()),
    }
}

/// Where to search the library: as named, or also in the active Python environment.
pub(crate) fn search(flags: &CufileFlags, software: bool) -> Search {
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"];
    Search {
        given: flags.cufile_lib.clone(),
        prefixes: prefixes
            .iter()
            .filter_map(|name| environment::variable(name))
            .map(PathBuf::from)
            .collect(),
        stand_in: software,
    }
}

/// cuFile's error for a file in the location of the job's files; `None` if no file can be created,
/// or cuFile accepts it. A device is tried itself, read-only, because no file can be created next
/// to its node.
fn refusal(driver: &Driver, job: &JobSpec) -> Option<String> {
    let named = job.filenames.iter().flatten().next().map(PathBuf::from);
    let base = job.directory.as_ref().map(PathBuf::from);
    let target = match (&base, named) {
        (Some(base), Some(name)) => base.join(name),
        (Some(location), None) => location.clone(),
        (None, Some(name)) => name,
        (None, None) => PathBuf::from("."),
    };
    if is_device(&target) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT;
        let device = rustix::fs::open(&target, flags, Mode::empty()).ok()?;
        return answer(driver, &device, &target.display().to_string());
    }
    let location = base.unwrap_or(target);
    let is_location = |location: &&Path| location.is_dir() && !location.as_os_str().is_empty();
    refusal_in(driver, location.ancestors().find(is_location).unwrap_or(Path::new(".")))
}

fn is_device(target: &Path) -> bool {
    let kind = std::fs::metadata(target).map(|found| found.file_type());
    kind.is_ok_and(|kind| kind.is_block_device() || kind.is_char_device())
}

fn answer(driver: &Driver, file: &impl AsFd, name: &str) -> Option<String> {
    Handle::register(driver, file.as_fd(), name).err().map(|error| error.to_string())
}

/// Tries an empty file, which is removed when this returns. It has a name because NVIDIA's library
/// opens files again by name (5031 without).
fn refusal_in(driver: &Driver, there: &Path) -> Option<String> {
    const TRY: &str = "gpuio-try";
    let directory = Directory::open(there).ok()?;
    // Files of killed runs are empty too. A remaining one has a name that shows its owner.
    let empty = |file: &File| file.metadata().is_ok_and(|facts| facts.len() == 0);
    let _ = directory.clear_drafts(OsStr::new(TRY), empty);
    let made = Draft::begin_named(directory.try_clone().ok()?, OsStr::new(TRY)).ok()?;
    // Opened again, since a file system that refuses O_DIRECT would leave a created file behind;
    // and not by name, since NVIDIA's library accepts no descriptor with O_NOFOLLOW (5019).
    let again = format!("/proc/self/fd/{}", made.file().as_raw_fd());
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::open(again.as_str(), flags, Mode::empty());
    let file = open(flags | OFlags::DIRECT).or_else(|_| open(flags)).ok()?;
    answer(driver, &file, &format!("a file in {}", there.display()))
}

/// The library as the record describes it.
pub(crate) fn used(driver: &Driver) -> CufileUsed {
    let facts = driver.facts();
    let environment = driver.environment();
    CufileUsed {
        library: driver.path().display().to_string(),
        version: facts.version,
        nvidia_fs: facts.nvidia_fs,
        compat_allowed: facts.compat_allowed,
        poll_mode: facts.poll_mode,
        poll_threshold_kib: facts.poll_threshold_kib,
        stand_in: driver.is_stand_in(),
        gpuio: driver.vendor() == Vendor::Gpuio,
        config_from: environment
            .and_then(|environment| environment.based_on.as_ref())
            .map(|path| path.display().to_string()),
        config: environment.map(Environment::flat).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_facts_prove_a_direct_path() {
        let module = Some((2, 26));
        assert!(direct_path(false, module, Some(false)).is_ok_and(|proof| proof.contains("2.26")));
        for (stand_in, nvidia_fs, compat, why) in [
            (true, module, Some(false), "stand-in"),
            (false, None, Some(false), NO_NVIDIA_FS),
            (false, module, Some(true), "allow_compat_mode=false"),
            (false, module, None, "does not report"),
        ] {
            let why_not = direct_path(stand_in, nvidia_fs, compat).unwrap_err();
            assert!(why_not.contains(why), "{why_not}");
        }
    }

    /// Whatever key means a path of cuFile's, its library is wanted.
    #[test]
    fn every_request_that_means_a_path_of_cufiles_wants_it() {
        let wanted = |text: &str| {
            let text = format!("[a]\nrw=read\nsize=1m\n{text}\n");
            Wanted::of(&gpuio_job::spec::parse_job_file("f", &text, &|_| None).unwrap())
        };
        for text in [
            "ioengine=libcufile",
            "ioengine=libcufile\ncuda_io=cufile",
            "ioengine=libcufile\ngpu_dev_ids=0:1",
            "path=gds-batch",
            "xfer_type=0",
            "xfer_type=5",
            "xfer_type=7",
        ] {
            assert!(wanted(text).named, "{text}");
        }
        for text in [
            "ioengine=libcufile\ncuda_io=posix",
            "ioengine=libcufile\npath=host",
            "ioengine=sync\ngpu=0",
            "xfer_type=2",
            "gpu=0",
            "",
        ] {
            assert!(wanted(text).nothing(), "{text}");
        }
    }

    #[test]
    fn words_that_may_lead_to_cufile() {
        let wanted = |names: &[&str]| {
            let paths = Some(names.iter().map(|name| (*name).to_owned()).collect());
            let job = JobSpec { paths, ..JobSpec::new("a") };
            Wanted::of(&Spec { name: None, jobs: vec![job] })
        };
        assert!(wanted(&["host", "staged"]).nothing());
        assert!(wanted(&["host", "auto"]).only_auto());
        assert!(!wanted(&["gds", "auto"]).only_auto() && wanted(&["gds"]).named);
        assert!(!wanted(&["all", "auto"]).only_auto() && wanted(&["all"]).all);
    }
}
