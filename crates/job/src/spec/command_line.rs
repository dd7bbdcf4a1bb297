//! Command lines in fio's words.

use super::ini::{FIO_MARK, has_key_of};
use super::{Dialect, JobSpec, Origin};

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
        (false, false) => return,
    };
    job.dialect = Some(Dialect::Fio);
    job.notes.push(format!(
        "{flag} is fio's word, so what no flag says is as in fio: direct=0, iodepth=1, bs=4k, one \
         pass; {instead} has gpuio's defaults"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Origin, apply};

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
            assert_eq!((job.is_fio(), job.notes.len()), (is_fio, usize::from(is_fio)), "{words}");
        }
    }
}
