//! Our own environment variables; all begin with `GPUIO_CUFILE`.

use std::ffi::{OsStr, OsString, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use gpuio_base::nearest::use_instead;
use gpuio_gpu::Which;

/// Which library moves the bytes (`GPUIO_CUFILE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// NVIDIA's library for files for which it has a direct path, ours for all others.
    Auto,
    /// Ours.
    Gpuio,
    /// NVIDIA's library for everything: each call is forwarded.
    Nvidia,
}

/// Tuning of transfers; `None` for the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tuning {
    /// Most threads that help callers (`GPUIO_CUFILE_WORKERS`).
    pub(crate) workers: Option<u32>,
    /// Most threads that move bytes of large calls at once (`GPUIO_CUFILE_BUSY`).
    pub(crate) busy: Option<u32>,
    /// From so many concurrent calls on, large reads are left to our workers
    /// (`GPUIO_CUFILE_CROWD`).
    pub(crate) oversubscription: Option<u32>,
    /// Most page-locked memory per GPU, MiB (`GPUIO_CUFILE_RING_MB`).
    pub(crate) ring_mib: Option<u32>,
    /// Most bytes of files that the GPU reads or fills in the page cache by itself, MiB
    /// (`GPUIO_CUFILE_MAPPED_MB`); 0 for none.
    pub(crate) mapped_mib: Option<u32>,
    /// Longest piece of a large call, KiB (`GPUIO_CUFILE_CHUNK_KB`).
    pub(crate) chunk_kib: Option<u32>,
    /// Whether calls may use the resident copy kernel (`GPUIO_CUFILE_RESIDENT`, 0 or 1).
    pub(crate) resident: Option<bool>,
    /// Whether files with `O_DIRECT` are never read from the page cache (`GPUIO_CUFILE_STRICT`, 0
    /// or 1); by default only block devices.
    pub(crate) strict: Option<bool>,
}

/// The library's environment variables.
pub(crate) struct Environment {
    pub(crate) backend: Backend,
    /// The result of `cuFileGetVersion` (`GPUIO_CUFILE_VERSION`): 1150, or 1200 for programs that
    /// were built with the larger statistics structures.
    pub(crate) version: c_int,
    /// Which CUDA driver (`GPUIO_CUFILE_DRIVER`): `system`, `software`, or a path. For tests.
    pub(crate) driver: Which,
    /// The path of NVIDIA's library (`GPUIO_CUFILE_LIB`), if it is not to be searched for.
    pub(crate) library: Option<PathBuf>,
    /// Where calls are recorded (`GPUIO_CUFILE_RECORD`), if they are.
    pub(crate) record: Option<PathBuf>,
    /// Whether that is done without names (`GPUIO_CUFILE_RECORD_ANONYMOUS`, 0 or 1).
    pub(crate) record_anonymous: bool,
    pub(crate) tuning: Tuning,
    /// Invalid values, for the log.
    pub(crate) notes: Vec<String>,
}

/// The release with the small statistics structures, whose codes are safe for all clients.
pub(crate) const VERSION: c_int = 1150;
/// The release with the larger statistics.
pub(crate) const VERSION_LARGE: c_int = 1200;

/// Read once, at the first call.
pub(crate) fn get() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut read = Environment::of(&gpuio_guard::objects::environment::variable);
        if gpuio_guard::objects::environment::is_secure() {
            read.notes.push(
                "no variable of the environment is read: this program has rights that its caller \
                 lacks (AT_SECURE, getauxval(3)). Only /etc/cufile.json counts"
                    .to_owned(),
            );
        }
        read
    })
}

impl Environment {
    fn of(variable: &dyn Fn(&str) -> Option<OsString>) -> Environment {
        let mut notes = Vec::new();
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut refuse = |name: &str, value: &OsStr, accepted: &[&str], used: &str| {
            let instead = match accepted {
                [] => "use a whole number".to_owned(),
                accepted => use_instead(&value.to_string_lossy(), accepted),
            };
            let value = value.display();
            notes.push(format!("{name}={value} is invalid: {instead}. {used} is used"));
        };
        let backend = match filled("GPUIO_CUFILE") {
            None => Backend::Auto,
            Some(value) if value == "auto" => Backend::Auto,
            Some(value) if value == "gpuio" => Backend::Gpuio,
            Some(value) if value == "nvidia" => Backend::Nvidia,
            Some(value) => {
                refuse("GPUIO_CUFILE", &value, &["auto", "gpuio", "nvidia"], "auto");
                Backend::Auto
            }
        };
        let version = match filled("GPUIO_CUFILE_VERSION") {
            None => VERSION,
            Some(value) if value == "1150" => VERSION,
            Some(value) if value == "1200" => VERSION_LARGE,
            Some(value) => {
                refuse("GPUIO_CUFILE_VERSION", &value, &["1150", "1200"], "1150");
                VERSION
            }
        };
        let driver = Which::from_variable(filled("GPUIO_CUFILE_DRIVER"));
        let library = filled("GPUIO_CUFILE_LIB").map(PathBuf::from);
        let record = filled("GPUIO_CUFILE_RECORD").map(PathBuf::from);
        let mut number = |name: &str| {
            let value = filled(name)?;
            let parsed = value.to_str().and_then(|text| text.trim().parse().ok());
            if parsed.is_none() {
                refuse(name, &value, &[], "The default");
            }
            parsed
        };
        let workers = number("GPUIO_CUFILE_WORKERS");
        let busy = number("GPUIO_CUFILE_BUSY");
        let oversubscription = number("GPUIO_CUFILE_CROWD");
        let ring_mib = number("GPUIO_CUFILE_RING_MB");
        let mapped_mib = number("GPUIO_CUFILE_MAPPED_MB");
        let chunk_kib = number("GPUIO_CUFILE_CHUNK_KB");
        // With it each launch returns only when the kernel has exited (CUDA C++ Programming Guide,
        // "Asynchronous Concurrent Execution"; the driver reads it as a number).
        let blocks = filled("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value != "0");
        let resident = number("GPUIO_CUFILE_RESIDENT").map(|value| value != 0);
        let resident = resident.or(blocks.then_some(false));
        let strict = number("GPUIO_CUFILE_STRICT").map(|value| value != 0);
        let anonymous = number("GPUIO_CUFILE_RECORD_ANONYMOUS");
        let record_anonymous = anonymous.is_some_and(|value| value != 0);
        let tuning = Tuning {
            workers,
            busy,
            oversubscription,
            ring_mib,
            mapped_mib,
            chunk_kib,
            resident,
            strict,
        };
        Environment { backend, version, driver, library, record, record_anonymous, tuning, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Environment {
        Environment::of(&|name| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn what_the_environment_says() {
        let none = of(&[("GPUIO_CUFILE", "")]);
        assert_eq!((none.backend, none.version, none.driver), (Backend::Auto, 1150, Which::System));
        assert_eq!(none.tuning, Tuning::default());
        let all = of(&[
            ("GPUIO_CUFILE", "nvidia"),
            ("GPUIO_CUFILE_VERSION", "1200"),
            ("GPUIO_CUFILE_DRIVER", "software"),
            ("GPUIO_CUFILE_LIB", "/opt/libcufile.so.0"),
        ]);
        assert_eq!(
            (all.backend, all.version, all.driver),
            (Backend::Nvidia, 1200, Which::Software)
        );
        assert_eq!(all.library.as_deref(), Some("/opt/libcufile.so.0".as_ref()));
        let odd = of(&[("GPUIO_CUFILE", "amd"), ("GPUIO_CUFILE_VERSION", "1.15")]);
        assert_eq!((odd.backend, odd.version, odd.notes.len()), (Backend::Auto, 1150, 2));
        let near = of(&[("GPUIO_CUFILE", "gpui")]).notes;
        let wanted = "use auto, gpuio or nvidia; nearest: gpuio. auto is used";
        assert_eq!(near, [format!("GPUIO_CUFILE=gpui is invalid: {wanted}")]);
        let tuned = of(&[("GPUIO_CUFILE_WORKERS", "3"), ("GPUIO_CUFILE_RESIDENT", "0")]).tuning;
        assert_eq!((tuned.workers, tuned.resident, tuned.busy), (Some(3), Some(false), None));
        assert_eq!(of(&[("GPUIO_CUFILE_MAPPED_MB", "0")]).tuning.mapped_mib, Some(0));
        assert_eq!(of(&[("GPUIO_CUFILE_RING_MB", "lots")]).notes.len(), 1);
        let recorded = of(&[("GPUIO_CUFILE_RECORD", "t"), ("GPUIO_CUFILE_RECORD_ANONYMOUS", "1")]);
        assert_eq!((recorded.record, recorded.record_anonymous), (Some("t".into()), true));
        assert_eq!((none.record, none.record_anonymous), (None, false));
        let resident = |given: &[(&str, &str)]| of(given).tuning.resident;
        assert_eq!(resident(&[("CUDA_LAUNCH_BLOCKING", "1")]), Some(false));
        assert_eq!(resident(&[("CUDA_LAUNCH_BLOCKING", "0")]), None);
        let both = [("CUDA_LAUNCH_BLOCKING", "1"), ("GPUIO_CUFILE_RESIDENT", "1")];
        assert_eq!(resident(&both), Some(true));
    }
}
