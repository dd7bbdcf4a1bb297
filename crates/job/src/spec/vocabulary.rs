//! Names of settings in messages, in the words of the request.
//!
//! Messages name settings by flags of `gpuio bench`, a value behind an equals sign: `--bs`,
//! `--path=staged`. The user of a job file has keys instead, and the user of gdsio its own flags.

use super::gdsio::{self, GDSIO_KEYS};
use super::keys::{Key, Status, apply, find, keys};
use super::{Dialect, JobSpec, Origin, TakenKeys};

/// The words for settings where a request was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// Flags of `bench` and its like.
    Flags,
    /// Flags of `workload`, whose jobs are a preset's: `--set` for what it has no flag of.
    Workload,
    /// Keys of a job file: fio's, where it has one of that meaning and the section is fio's.
    File {
        /// Whether the section is fio's.
        fio: bool,
    },
    /// Flags of gdsio.
    Gdsio,
}

impl Vocabulary {
    /// That of the source of this field, or of the job where nothing set the field.
    pub fn of(job: &JobSpec, field: &str) -> Vocabulary {
        let mut origins = job.requested.values().map(|requested| &requested.origin);
        if origins.clone().any(|from| matches!(from, Origin::Flag(flag) if gdsio::is_flag(flag))) {
            return Vocabulary::Gdsio;
        }
        let in_file = match job.origin(field) {
            Some(origin) => matches!(origin, Origin::File { .. }),
            None => origins.any(|origin| matches!(origin, Origin::File { .. })),
        };
        let preset = || job.requested.values().any(|it| matches!(it.origin, Origin::Preset(_)));
        match in_file {
            true => Vocabulary::File { fio: job.is_fio() },
            false if preset() => Vocabulary::Workload,
            false => Vocabulary::Flags,
        }
    }

    /// A message with its settings in these words.
    pub fn say(self, message: &str) -> String {
        const AROUND: [char; 5] = [' ', '(', ')', '\'', '`'];
        let part = |part: &str| {
            let word = part.trim_end_matches([',', ';', ':', '.', '?']).trim_end_matches(AROUND);
            let word = word.trim_end_matches([',', ';', ':', '.', '?']);
            let said = self.setting(word).unwrap_or_else(|| word.to_owned());
            said + &part[word.len()..]
        };
        message.split_inclusive(AROUND).map(part).collect()
    }

    /// One word of a message, if it is a setting and has another name here.
    fn setting(self, word: &str) -> Option<String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let (key, value) = match name.strip_prefix("--") {
            Some(flag) => {
                let (key, means) = of_flag(flag)?;
                (key, value.or(means))
            }
            // Keys with values are written as such in messages, too.
            None if self == Vocabulary::Gdsio && value.is_some() => (find(name)?, value),
            None => return None,
        };
        match self {
            Vocabulary::Flags => Some(word.replacen('=', " ", 1)),
            Vocabulary::Workload => {
                let value = value.map_or_else(String::new, |value| format!(" {value}"));
                TakenKeys::of_kinds(&["workload".to_owned()], Vec::new())
                    .spelled(&format!("{}{value}", key.name))
            }
            Vocabulary::File { fio } => Some(in_file(key, value, fio)),
            Vocabulary::Gdsio => Some(gdsio::flag_of(key, value).unwrap_or_else(|| {
                let value = |sign: &str| value.map_or(String::new(), |it| format!("{sign}{it}"));
                let long = format!("--{}", key.name);
                match GDSIO_KEYS.contains(&long.as_str()) {
                    true => long + &value(" "),
                    false => format!("--set {}{}", key.name, value("=")),
                }
            })),
        }
    }
}

/// The key of a flag, and the value that it stands for where it takes none.
fn of_flag(flag: &str) -> Option<(&'static Key, Option<&'static str>)> {
    let shown = keys().find_map(|key| {
        let found = key.flags.iter().find(|it| key.long(it) == flag || it.aliases.contains(&flag));
        found.map(|it| (key, it.means))
    });
    shown.or_else(|| find(flag).map(|key| (key, None)))
}

/// The value of a key that is written without one, if it may be.
fn bare(key: &Key) -> Option<&'static str> {
    match key.status {
        Status::Supported(setter) => setter.bare(),
        _ => None,
    }
}

fn in_file(key: &'static Key, value: Option<&str>, fio: bool) -> String {
    let switch = bare(key).filter(|bare| *bare == "1");
    let value = value.or(switch);
    let theirs = |other: &&Key| {
        other.dialect == Dialect::Fio && bare(other).is_none() && is_alike(key, value, other, value)
    };
    let other = keys().find(theirs).filter(|_| fio && key.dialect == Dialect::Native);
    let name = other.unwrap_or(key).name;
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}

/// Whether two keys with these values ask for the same; without values, whether they set the same.
pub(super) fn is_alike(
    one: &Key,
    value: Option<&str>,
    other: &Key,
    its_value: Option<&str>,
) -> bool {
    let (Status::Supported(a), Status::Supported(b)) = (one.status, other.status) else {
        return false;
    };
    if !a.fields().iter().any(|field| b.fields().contains(field)) {
        return false;
    }
    let asked = |key: &Key, value: &str| {
        let mut job = JobSpec::new("");
        let set = apply(&mut job, key.name, value, Origin::Flag(""));
        job.requested.clear();
        // The number of a path is another name for it.
        job.xfer_type = None;
        set.ok().map(|()| job)
    };
    match (value, its_value) {
        (Some(value), Some(its)) => {
            let first = asked(one, value);
            first.is_some() && first == asked(other, its)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_names_of_the_request() {
        let text = "leave out --fill, or use --buffered; lower --bs or --threads (--path=staged)";
        assert_eq!(Vocabulary::Flags.say(text), text.replace('=', " "));
        let of_workload = Vocabulary::Workload.say("raise --size or lower --bs, --gpu=none");
        assert_eq!(of_workload, "raise --set size=SIZE or lower --bs, --gpu none");
        let file = Vocabulary::File { fio: false }.say(text);
        let keys = "leave out fill, or use buffered=1; lower bs or threads (path=staged)";
        assert_eq!(file, keys);
        let fio = Vocabulary::File { fio: true }.say(text);
        assert_eq!(fio, keys.replace("threads", "numjobs"));
        let gdsio = Vocabulary::Gdsio.say(text);
        assert_eq!(gdsio, "leave out -R, or use -O 1; lower -i or -w (-x 2)");
        let more = "use verify=pass, rw=randread, --path=gather, --gpu=software, depth=4 or a=b";
        let said = Vocabulary::Gdsio.say(more);
        assert_eq!(said, "use -V, -I 2, --set path=gather, --gpu software, --depth 4 or a=b");
        let other = "'systemd-run --scope -p X gpuio bench FILE', don't; 50% = half";
        assert_eq!(Vocabulary::Gdsio.say(other), other);
    }

    /// No flag of `bench` is advice for a user of gdsio, and none for one of a job file.
    #[test]
    fn every_flag_has_a_name_in_each_vocabulary() {
        for key in keys() {
            for flag in key.flags {
                let word = format!("--{}", key.long(flag));
                let said = Vocabulary::Gdsio.say(&word);
                let letter = said.split(' ').next().is_some_and(gdsio::is_flag);
                let long = GDSIO_KEYS.iter().any(|known| said.starts_with(known));
                assert!(letter || long, "{word}: {said}");
                for fio in [false, true] {
                    let said = Vocabulary::File { fio }.say(&word);
                    let name = said.split('=').next().unwrap();
                    assert!(find(name).is_some_and(|key| key.name == name), "{word}: {said}");
                }
            }
        }
    }
}
