//! The files or devices.

use super::Dialect::{All, Native};
use super::flag::{ALL, data, files};
use super::loads::{FEED, RANGES, REPLAY};
use super::printed::{self, FILES, REST, of_blocks, switch};
use super::set::{self, key};
use super::unused::{NO_WRITES, OWN_FILES, when};
use super::{Flag, Key};
use crate::spec::value;
use crate::spec::value::{one_name, words_of};
use gpuio_record::DirectMode;

pub(super) const KEYS: &[Key] = &[
    key(
        "directory",
        All,
        set::DIRECTORY,
        "location of the data files; threads take several, separated by `:`, in turn; `\\:` is a \
         colon of a name",
    )
    .flags(&[
        data(
            "DIR",
            "Directory with one file per thread, created in one that exists [./gpuio-scratch, \
             removed afterwards]",
        ),
        files(
            "DIR",
            "Directory of the data set, created in one that exists [./gpuio-scratch, removed \
             afterwards]",
        ),
    ])
    .not_of(RANGES)
    .unused(|s| {
        when(
            s.requested.filenames.iter().flatten().all(|name| name.starts_with('/'))
                && s.requested.filenames.is_some(),
            "every filename begins with '/'; leave it out, or name files below it",
        )
    })
    .prints(FILES + 1, |p| {
        let names: Vec<String> = p.directories().map(one_name).collect();
        (!names.is_empty()).then(|| names.join(":"))
    })
    .tried(["/d", "/e"])
    .quick(),
    key("filename", All, set::FILENAME, "data files, separated by `:`; `\\:` is a colon of a name")
        .or(&["file"])
        .flags(&[data("FILE", "File or block device to use; repeat for more")])
        .not_of(FEED | REPLAY)
        .decides()
        .prints(FILES + 3, printed::filename)
        .tried(["/have8g", "/have9g"]),
    key(
        "file_prefix",
        Native,
        text!(file_prefix),
        "prefix of the names of files in `directory`: `PREFIX.0`, `PREFIX.1`, …",
    )
    .flags(&[
        data("NAME", "Prefix of file names in the directory [gpuio]"),
        files("NAME", "Prefix of file names in the directory [that of the preset, or replay]"),
    ])
    .unused(|s| {
        when(
            s.requested.filenames.is_some(),
            "it begins the names of files in a directory, and the files are named; leave it out",
        )
    })
    .prints(FILES + 2, |p| p.directory.is_some().then(|| p.file_prefix.clone()))
    .tried(["p", "q"])
    .quick(),
    key("layout", Native, field!(layout, value::layout), "")
        .flags(&[data(
            "LAYOUT",
            "How the data of all threads, and of all ranks, lie in files: file-per-thread, or one \
             file, segmented (a contiguous part each) or strided (blocks in turn) \
             [file-per-thread]",
        )])
        .not_of(FEED | RANGES | REPLAY)
        .prints(REST + 28, |p| Some(printed::shared_layout(p)?.kind.word().to_owned()))
        .with_words(|| words_of(&value::layouts()))
        .tried(["segmented", "strided"]),
    key("read_shift", Native, field!(read_shift, value::read_shift), "")
        .flags(&[data(
            "SHIFT",
            "On several ranks, read what another one wrote: rank (the next), node (of the next \
             host), or how many ranks further on (docs/mpi.md)",
        )])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(
        !s.only_reads(),
        "the load writes, and each rank writes its own data; give it to the job that only reads, \
         or leave it out"
    )
    .or_else(|| when(
        !s.plan.reads_another_rank(),
        "one process runs, so there is no other rank whose data it could read; start several with \
         mpirun or srun, or leave it out"
    ))
        })
        .prints(REST + 30, |p| p.layout.as_ref().filter(|_| p.has_size())?.read_shift.clone())
        .with_words(|| words_of(&value::SHIFTS))
        .tried(["1", "2"]),
    key("direct", All, switch!(direct), "`O_DIRECT` (1) or the page cache (0)")
        .flags(&[Flag {
            verbs: ALL,
            ..data("", "Use O_DIRECT [where the file system supports it]")
        }])
        .decides()
        .prints(REST + 56, |p| Some(switch(p.direct == DirectMode::Direct)))
        .tried(["1", "0"]),
    key("buffered", All, switch!(direct, |on| !on), "the opposite of `direct`")
        .flags(&[Flag { verbs: ALL, conflict: Some("direct"), ..data("", "Use the page cache") }])
        .tried(["1", "0"]),
    key("pre_read", All, switch!(pre_read), "")
        .flags(&[
            data(
                "",
                "Read the files into the page cache before the measurement [if --path all and \
                 --buffered are both given, and in sweeps, if the files fit in half of memory]",
            ),
            Flag {
                long: "no-pre-read",
                behind: Some("invalidate"),
                conflict: Some("pre-read"),
                means: Some("0"),
                ..data("", "Leave the page cache as it is, even with --path all and in sweeps")
            },
            files("", "Read the files into the page cache before the measurement"),
        ])
        .decides()
        .prints(REST + 57, |p| Some(switch(p.pre_read)))
        .tried(["1", "0"]),
    key("invalidate", All, switch!(invalidate), "")
        .flags(&[Flag {
            verbs: ALL,
            conflict: Some("pre-read"),
            ..data("", "Drop the files from the page cache before the measurement")
        }])
        .prints(REST + 58, |p| Some(switch(p.invalidate)))
        .tried(["1", "0"]),
    key("sync", All, set::SYNC, "")
        .flags(&[data("", "Make each write wait for stable storage (O_DSYNC)")])
        .not_of(FEED)
        .unused(|s| when(s.requested.sync == Some(true) && s.only_reads(), NO_WRITES))
        .prints(REST + 59, |p| of_blocks(p).then(|| switch(p.sync)))
        .tried(["1", "0"]),
    key("shared_fd", Native, switch!(shared_fd), "")
        .flags(&[data("", "Share one file descriptor per named file among all threads")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            when(
                s.requested.shared_fd == Some(true)
                    && s.requested.filenames.is_none()
                    && !s.plan.shared_files,
                OWN_FILES,
            )
        })
        .prints(REST + 31, |p| of_blocks(p).then(|| switch(p.shared_fd)))
        .tried(["1", "0"]),
    key("keep", Native, switch!(keep), "keep the data files after the run")
        .flags(&[Flag { verbs: ALL, ..data("", "Keep the scratch files") }])
        .prints(REST + 67, |p| Some(switch(p.keep)))
        .tried(["1", "0"])
        .quick(),
];
