//! Rebuilds the command line of `bench`, for a run in a process of its own.

use std::ffi::OsString;
use std::path::Path;

use super::{Bench, LoadFlags, Work};

impl Bench {
    /// Arguments for `gpuio` that run this job file with the same flags, except those of `--ab` and
    /// of the output.
    pub(crate) fn arguments_for(&self, job_file: &Path) -> Vec<OsString> {
        let mut words = self.arguments_of_plan(job_file);
        for file in &self.figures.spec {
            words.extend(["--spec".into(), file.into()]);
        }
        for figures in &self.figures.server {
            words.extend(["--server".into(), figures.into()]);
        }
        let switches = [
            ("--quiet", self.out.quiet),
            ("--no-stats-page", self.out.no_stats_page),
            ("--no-watch", self.out.no_watch),
        ];
        let on = switches.into_iter().filter(|(_, on)| *on);
        words.extend(on.map(|(flag, _)| OsString::from(flag)));
        words
    }

    /// The same without flags that only affect a run.
    pub(crate) fn arguments_of_plan(&self, job_file: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["bench".into(), job_file.into()];
        words.extend(self.work.words());
        words.extend(self.ranks.limits.words().into_iter().map(OsString::from));
        words
    }
}

impl Work {
    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.keys().iter().map(|key| key.word().into()).collect();
        let LoadFlags { cufile, overwrite, destroy_data_on } = &self.own;
        let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
        cufile.cufile_lib.iter().for_each(|file| add("--cufile-lib", file.into()));
        cufile.cufile_set.iter().for_each(|pair| add("--cufile-set", pair.into()));
        destroy_data_on.iter().for_each(|file| add("--destroy-data-on", file.into()));
        if *overwrite {
            words.push("--overwrite".into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Verb, parse};
    use super::*;

    fn parsed(words: &[OsString]) -> Bench {
        let all = std::iter::once(OsString::from("gpuio")).chain(words.iter().cloned());
        match parse(all).unwrap().verb {
            Verb::Bench(bench) => *bench,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_come_back_as_they_were() {
        let line = "bench --path gds --bs 4k --verify --ceilings=2s --no-pre-read --keep \
                    --rw randrw --filename a:b --filename c --set seed=3 --size=-1 --quiet \
                    --cufile-set logging.level=INFO --cufile-lib /l.so --overwrite \
                    --destroy-data-on /dev/x --server read=1GB/s --spec s.ini --no-watch \
                    --no-stats-page --refill";
        let first = parsed(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        let second = parsed(&first.arguments_for(Path::new("a.ini")));
        assert_eq!(second.job_file.as_deref(), Some(Path::new("a.ini")));
        let same = Bench { job_file: None, ..second };
        assert_eq!(format!("{first:?}"), format!("{same:?}"));
    }
}
