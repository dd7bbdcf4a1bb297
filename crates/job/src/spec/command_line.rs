//! Command lines in fio's words.

use super::ini::{FIO_MARK, has_key_of};
use super::{Dialect, JobSpec, Origin, find};

/// Gives a job that flags alone describe fio's meanings, where they are fio's: with `ioengine`, or
/// with `--name` beside which no word is gpuio's own. A note says so. Other jobs stay as they are.
pub fn speak_fio(job: &mut JobSpec) {
    let by_flag = |origin: &Origin| matches!(origin, Origin::Flag(_));
    let flags_alone = job.requested.values().all(|requested| by_flag(&requested.origin));
    if job.dialect.is_some() || !flags_alone {
        return;
    }
    let marked = job.requested.values().any(|requested| requested.key == FIO_MARK);
    let name = job.origin("name").is_some_and(|origin| *origin == Origin::Flag("--name"));
    let named = name && !has_key_of(job, Dialect::Native);
    let (flag, instead) = match (marked, named) {
        (true, _) => ("--ioengine", "--engine"),
        (false, true) => ("--name", "a line without it"),
        (false, false) => {
            job.notes.extend(not_fio(job).filter(|_| name).or_else(|| own_defaults(job)));
            return;
        }
    };
    job.dialect = Some(Dialect::Fio);
    job.notes.push(format!(
        "{flag} is fio's word, so what no flag says is as in fio: direct=0, iodepth=1, bs=4k, one \
         pass; {instead} has gpuio's defaults"
    ));
}

/// The note on a line with `--name` in which a word of gpuio's own has undone fio's defaults.
/// Nothing is to be said where those that differ most are given.
fn not_fio(job: &JobSpec) -> Option<String> {
    let own = |key: &str| find(key).is_some_and(|key| key.dialect == Dialect::Native);
    let word = job.requested.values().find(|requested| own(requested.key))?;
    let given = ["engine", "depth", "direct"].iter().all(|field| job.origin(field).is_some());
    (!given).then(|| {
        format!(
            "{} is gpuio's word, so what no flag says is as in gpuio (among others direct, engine, \
             depth and runtime), not as in fio; --ioengine=psync has fio's defaults",
            word.key
        )
    })
}

/// The note on a word of gdsio's among flags alone, which changes no default. Nothing is to be said
/// where both that differ most are given.
fn own_defaults(job: &JobSpec) -> Option<String> {
    let of_gdsio = |key: &str| find(key).is_some_and(|key| key.dialect == Dialect::Gdsio);
    let said = job.requested.values().find(|requested| of_gdsio(requested.key))?;
    let given = ["engine", "depth"].iter().all(|field| job.origin(field).is_some());
    (!given).then(|| {
        format!(
            "{} is gdsio's word, and what no flag says is as in gpuio, not as in gdsio (among \
             others engine and depth); gpuio gdsio has gdsio's defaults",
            said.key
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Origin, apply};

    #[test]
    fn a_word_of_gdsios_changes_no_default_and_a_note_says_so() {
        for (words, notes) in [
            ("xfer_type=1 num_threads=2", 1),
            ("num_threads=2", 1),
            ("xfer_type=1 engine=psync depth=1", 0),
            ("path=host threads=2", 0),
        ] {
            let mut job = JobSpec::new("job");
            for word in words.split(' ') {
                let (key, value) = word.split_once('=').unwrap();
                apply(&mut job, key, value, Origin::Flag("--set")).unwrap();
            }
            speak_fio(&mut job);
            assert_eq!((job.dialect, job.notes.len()), (None, notes), "{words}");
        }
    }

    #[test]
    fn a_line_of_fios_words_has_its_meanings() {
        for (words, is_fio) in [
            ("ioengine=psync", true),
            ("ioengine=psync path=host", true),
            ("name=a rw=read numjobs=2 iodepth=4", true),
            ("name=a depth=4", false),
            ("name=a engine=psync", false),
            ("name=a path=host", false),
            ("rw=read iodepth=4", false),
        ] {
            let mut job = JobSpec::new("job");
            for word in words.split(' ') {
                let (key, value) = word.split_once('=').unwrap();
                let flag = if key == "name" { "--name" } else { "--set" };
                apply(&mut job, key, value, Origin::Flag(flag)).unwrap();
            }
            speak_fio(&mut job);
            let says = is_fio || words.starts_with("name=");
            assert_eq!((job.is_fio(), job.notes.len()), (is_fio, usize::from(says)), "{words}");
        }
    }
}
