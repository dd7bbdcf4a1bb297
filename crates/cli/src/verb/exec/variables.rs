//! Environment variables for the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use gpuio_base::nearest::use_instead;
use gpuio_base::units::shell_word;
use gpuio_guard::objects::environment;

use super::library::Library;
use crate::args::Exec;
use crate::failure::Failure;

/// Selects which library serves cuFile calls; gpuio's library reads it.
const WHO: &str = "GPUIO_CUFILE";
/// The CUDA driver of gpuio's libraries.
pub(super) const DRIVER: &str = "GPUIO_CUFILE_DRIVER";
const VALUES: [&str; 3] = ["auto", "gpuio", "nvidia"];

/// Variables and their new values, in printing order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variables {
    pub(crate) set: Vec<(&'static str, OsString)>,
}

impl Variables {
    /// From the flags and the current environment.
    pub(crate) fn of(args: &Exec, library: &Library) -> Result<Variables, Failure> {
        Variables::over(args, library, environment::variable)
    }

    fn over(
        args: &Exec,
        library: &Library,
        now: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Variables, Failure> {
        let (preload, path) = ("LD_PRELOAD", "LD_LIBRARY_PATH");
        let mut set = vec![
            (preload, before(&library.object, now(preload), b" :", is_sanitizer)),
            (path, before(&library.directory, now(path), b":;", |_| false)),
        ];
        match (&args.cufile, now(WHO).filter(|who| !who.is_empty())) {
            (Some(who), _) => set.push((WHO, who.into())),
            (None, Some(who)) if !VALUES.iter().any(|value| who == *value) => {
                return Err(Failure::Usage(format!(
                    "{WHO}={} in the environment: {}",
                    who.display(),
                    use_instead(&who.to_string_lossy(), &VALUES)
                )));
            }
            (None, who) => set.extend(who.map(|who| (WHO, who))),
        }
        set.extend(args.gpu.as_ref().map(|gpu| (DRIVER, gpu.into())));
        if let Some(file) = &args.cufile_json {
            let whole = std::fs::canonicalize(file).map_err(|error| {
                Failure::Usage(format!("--cufile-json {}: {error}", file.display()))
            })?;
            set.push(("CUFILE_ENV_PATH_JSON", whole.into()));
        }
        if let Some(trace) = &args.record {
            set.extend(recorded(trace, args.anonymous)?);
        }
        Ok(Variables { set })
    }

    /// Has the runtime of a sanitizer loaded first, unless the list has one.
    pub(crate) fn lead_with(&mut self, runtime: &OsStr) {
        let lists = self.set.iter_mut().filter(|(name, _)| *name == "LD_PRELOAD");
        for (_, list) in lists {
            if !list.as_bytes().split(|byte| *byte == b':').any(is_sanitizer) {
                *list = [runtime, list.as_os_str()].join(OsStr::new(":"));
            }
        }
    }

    /// As commands of a POSIX shell, or as a JSON object.
    pub(crate) fn printed(&self, json: bool) -> Result<String, Failure> {
        if !json {
            let lines = self.set.iter().map(|(name, value)| {
                let text = value.to_str().ok_or_else(|| not_text(name, value))?;
                Ok(format!("export {name}={}\n", shell_word(text)))
            });
            return lines.collect();
        }
        let mut object = serde_json::Map::new();
        for (name, value) in &self.set {
            let text = value.to_str().ok_or_else(|| not_text(name, value))?;
            object.insert((*name).to_owned(), text.into());
        }
        let text = serde_json::to_string_pretty(&object);
        let text = text.map_err(|error| Failure::Ran(format!("no JSON can be made: {error}")))?;
        Ok(text + "\n")
    }

    /// The value that the program gets, if it is set here.
    pub(super) fn value(&self, wanted: &str) -> Option<&OsString> {
        self.set.iter().find_map(|(name, value)| (*name == wanted).then_some(value))
    }

    /// A short description, for `-v`.
    pub(crate) fn description(&self, library: &Library) -> String {
        let who = self.value(WHO).map_or("auto".into(), |value| value.to_string_lossy());
        // Beside the library may be others, which the program must not find.
        let links = match library.object.parent() == Some(&library.directory) {
            true => "",
            false => " (gpuio's cache: links to it, and nothing else)",
        };
        format!(
            "{} in LD_PRELOAD, {}{links} first in LD_LIBRARY_PATH, {WHO}={who},",
            library.object.display(),
            library.directory.display()
        )
    }
}

/// The variables that make the library record the program's calls. The name is whole, since
/// programs change their directory; nothing that has it is overwritten.
fn recorded(trace: &Path, anonymous: bool) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let wrong = |what: String| Failure::Usage(format!("--record {}: {what}", trace.display()));
    let whole = std::path::absolute(trace).map_err(|error| wrong(error.to_string()))?;
    if std::fs::symlink_metadata(&whole).is_ok() {
        return Err(wrong("something has that name, and is kept; use another one".to_owned()));
    }
    let above = whole.parent().filter(|above| !above.is_dir());
    if let Some(above) = above {
        return Err(wrong(format!("{} is no directory; make it first", above.display())));
    }
    let mut set = vec![("GPUIO_CUFILE_RECORD", whole.into_os_string())];
    // A value of the environment would make a named trace anonymous.
    set.push(("GPUIO_CUFILE_RECORD_ANONYMOUS", if anonymous { "1" } else { "0" }.into()));
    Ok(set)
}

/// The list with `first` before all but what has to lead it, and not a second time later. Its other
/// parts stay: an empty part of a search path is the working directory (ld.so(8)), but an entirely
/// empty path is none.
fn before(
    first: &Path,
    list: Option<OsString>,
    separators: &[u8],
    leads: fn(&[u8]) -> bool,
) -> OsString {
    let first = first.as_os_str().as_bytes();
    let list = list.unwrap_or_default();
    let parts = list.as_bytes().split(|byte| separators.contains(byte));
    let parts = parts.filter(|part| *part != first && !list.is_empty());
    let (mut all, rest): (Vec<_>, Vec<_>) = parts.partition(|part| leads(part));
    all.push(first);
    all.extend(rest);
    OsString::from_vec(all.join(&b':'))
}

/// Whether a preloaded object is a sanitizer's runtime, by the names that GCC and Clang give it.
/// AddressSanitizer refuses to start behind another object, and others miss its allocations.
pub(super) fn is_sanitizer(object: &[u8]) -> bool {
    let name = object.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let gcc = ["libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so", "libubsan.so"];
    let clang = ["libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.lsan", "libclang_rt.tsan"];
    gcc.iter().chain(&clang).any(|start| name.starts_with(start.as_bytes()))
        || name.starts_with(b"libclang_rt.ubsan")
}

fn not_text(name: &str, value: &OsStr) -> Failure {
    Failure::Usage(format!(
        "{name} would be {}, which is not UTF-8 and can't be printed; run the program with gpuio \
         exec instead",
        value.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Exec {
        let command = vec!["true".into()];
        let (cufile, cufile_json, record, anonymous) = (None, None, None, false);
        let (env, json, verbose) = (false, false, false);
        let (gpu, prefetch) = (None, Vec::new());
        Exec { env, json, verbose, cufile, gpu, cufile_json, record, anonymous, prefetch, command }
    }

    fn library() -> Library {
        Library { object: "/l/libcufile.so.0".into(), directory: "/l".into() }
    }

    fn over(args: &Exec, set: &[(&str, &str)]) -> Result<Vec<(String, String)>, Failure> {
        let find = |name: &str| set.iter().find(|(key, _)| *key == name);
        let variables = Variables::over(args, &library(), |name| find(name).map(|f| f.1.into()))?;
        let text = |(name, value): (&str, OsString)| (name.into(), value.into_string().unwrap());
        Ok(variables.set.into_iter().map(text).collect())
    }

    #[test]
    fn existing_entries_stay_after_ours_and_ours_is_there_once() {
        let all = over(&args(), &[]).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!((&*all[0].1, &*all[1].1), ("/l/libcufile.so.0", "/l"));
        let theirs = [("LD_PRELOAD", "a.so b.so:/l/libcufile.so.0"), ("LD_LIBRARY_PATH", "")];
        let all = over(&args(), &theirs).unwrap();
        assert_eq!((&*all[0].1, &*all[1].1), ("/l/libcufile.so.0:a.so:b.so", "/l"));
        // A sanitizer's runtime has to be the first object of a program.
        for name in ["libasan.so.8", "/usr/lib/libtsan.so", "/c/libclang_rt.asan-x86_64.so"] {
            let set = [("LD_PRELOAD", format!("/lib/libjemalloc.so:{name} b.so"))];
            let all = over(&args(), &[(set[0].0, &set[0].1)]).unwrap();
            assert_eq!(all[0].1, format!("{name}:/l/libcufile.so.0:/lib/libjemalloc.so:b.so"));
        }
        let all = over(&args(), &[("LD_LIBRARY_PATH", "/x;/y::/l")]).unwrap();
        assert_eq!(all[1].1, "/l:/x:/y:");
    }

    #[test]
    fn the_library_is_chosen_by_the_flag_or_the_variable_or_default() {
        let who = |args: &Exec, set: &[(&str, &str)]| {
            over(args, set).map(|all| all.get(2).map(|(_, value)| value.clone()))
        };
        assert_eq!(who(&args(), &[]).unwrap(), None);
        assert_eq!(who(&args(), &[(WHO, "nvidia")]).unwrap().unwrap(), "nvidia");
        let flag = Exec { cufile: Some("gpuio".into()), ..args() };
        assert_eq!(who(&flag, &[(WHO, "what")]).unwrap().unwrap(), "gpuio");
        let Err(Failure::Usage(why)) = who(&args(), &[(WHO, "what")]) else { panic!() };
        assert!(why.contains("what") && why.contains("use auto, gpuio or nvidia"), "{why}");
    }

    #[test]
    fn recording_names_a_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        let args = Exec { record: Some(trace.clone()), ..args() };
        let all = over(&args, &[]).unwrap();
        assert_eq!(all[2], ("GPUIO_CUFILE_RECORD".into(), trace.to_str().unwrap().into()));
        assert_eq!(all[3], ("GPUIO_CUFILE_RECORD_ANONYMOUS".into(), "0".into()));
        assert_eq!(over(&args, &[(WHO, "nvidia")]).unwrap().len(), 5);
        std::fs::write(&trace, "mine").unwrap();
        let Err(Failure::Usage(why)) = over(&args, &[]) else { panic!() };
        assert!(why.contains("is kept"), "{why}");
        let nowhere = Exec { record: Some("/nowhere/at/all".into()), ..args };
        assert!(over(&nowhere, &[]).is_err());
    }

    #[test]
    fn words_of_a_shell_are_quoted() {
        let set = vec![("A", OsString::from("it's $HOME"))];
        let variables = Variables { set };
        assert_eq!(variables.printed(false).unwrap(), "export A='it'\\''s $HOME'\n");
        let json = variables.printed(true).unwrap();
        assert_eq!(json, "{\n  \"A\": \"it's $HOME\"\n}\n");
    }
}
