//! Every error of a job file, as it is printed.

use gpuio_job::spec::{MAX_ERRORS, parse_job_file};

use crate::{env, wrapped};

fn errors_of(text: impl AsRef<[u8]>) -> String {
    let errors = parse_job_file("a.fio", text, &env).unwrap_err();
    wrapped(errors.iter().map(ToString::to_string))
}

#[test]
fn keys() {
    let text = "[a]\niodeph=4\nbanana=1\nthinkcycles=5\nwrite_hist_log=x\ninclude other.fio\n\
                bs\nbs 4k\nbs=\n=4k\ndirectory=${EMPTY}\nxfer_tpye=1\nStonewall\n";
    insta::assert_snapshot!(errors_of(text), @"
    a.fio:2:1: unknown key 'iodeph'; nearest: iodepth
    a.fio:3:1: unknown key 'banana'; no similar key; see docs/job-file.md
    a.fio:4:1: key 'thinkcycles' (fio) is not supported by gpuio: CPU work between I/Os is
        not simulated; use instead: rate_iops=
    a.fio:5:1: key 'write_hist_log' (fio) is not supported by gpuio: no log of histograms is
        written; use instead: -o FILE with --format json, which includes the histograms
    a.fio:6:1: 'other.fio' can't be included: there is no file here that could be included
    a.fio:7:1: key 'bs' needs a value; write bs=VALUE, or leave it out
    a.fio:8:1: no '=' after key 'bs'; write bs=VALUE
    a.fio:9:4: key 'bs' has an empty value; give one, or remove the line
    a.fio:10:1: no key before '='; write key=value
    a.fio:11:11: key 'directory' has an empty value: its environment variable is set and
        empty; give one, or remove the line
    a.fio:12:1: unknown key 'xfer_tpye'; nearest: xfer_type
    a.fio:13:1: unknown key 'Stonewall'; nearest: stonewall
    ");
}

/// It asks for one more log, and measures nothing else.
#[test]
fn the_interval_of_a_log_of_histograms_is_noted() {
    let spec = parse_job_file("a.fio", "[a]\nlog_hist_msec=100\n", &env).unwrap();
    let notes = &spec.jobs[0].notes;
    assert!(notes.len() == 1 && notes[0].contains("'log_hist_msec'"), "{notes:?}");
}

#[test]
fn sizes_and_times() {
    let text = "[a]\nbs=4x\nbs=0\nbs=4k,8x\nbs=1M:4M\nbs=64k-4k\nbsrange=4k\noffset=101%\n\
                size=1.3k\nsize=99E\nruntime=10sx\nramp_time=5M\nrate=1m,2m,,1m\nrate_iops=10q\n";
    insta::assert_snapshot!(errors_of(text), @"
    a.fio:2:5: value '4x' of 'bs', at 'x': expected a size in bytes, or with k, m, g, t, p
        or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    a.fio:3:4: value '0' of 'bs': the size is 0; give a size above 0, such as 4k or 1G
    a.fio:4:8: value '4k,8x' of 'bs', at 'x': expected a size in bytes, or with k, m, g, t,
        p or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    a.fio:5:9: value '1M:4M' of 'bs', at its end: expected one size (4k), a range (4k-64k)
        or min:max:step (1M:4M:1M)
    a.fio:6:8: value '64k-4k' of 'bs', at '4k': the largest size is smaller than the
        smallest; swap them
    a.fio:7:11: value '4k' of 'bsrange', at its end: expected a range of sizes, such as
        4k-64k
    a.fio:8:8: value '101%' of 'offset': expected a whole percentage from 0 to 100
    a.fio:9:7: value '1.3k' of 'size', at '.3k': expected a size that is a whole number of
        bytes, such as 1.5K or 1536
    a.fio:10:6: value '99E' of 'size': expected a size below 2^64 bytes (16E)
    a.fio:11:12: value '10sx' of 'runtime', at 'x': expected a duration in seconds, or with
        ns, us, ms, s, m (min), h or d: 10, 10s, 1.5s, 500ms, 2m, 1d
    a.fio:12:12: value '5M' of 'ramp_time', at 'M': expected a duration in seconds, or with
        ns, us, ms, s, m (min), h or d: 10, 10s, 1.5s, 500ms, 2m, 1d
    a.fio:13:12: value '1m,2m,,1m' of 'rate', at ',1m': a list is read,write,trim: three
        values at most
    a.fio:14:13: value '10q' of 'rate_iops', at 'q': expected a size in bytes, or with k, m,
        g, t, p or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    ");
}

#[test]
fn counts_and_lists() {
    let text = "[a]\niodepth=0\nnumjobs=-1\nnumjobs=4294967296\nrandseed=0x\nrwmixread=101\n\
                cpus_allowed=0-3,x\ncpus_allowed=3-0\nnuma_cpu_nodes=0,1\nbssplit=4k/60:8k/50\n\
                bssplit=4k/60:8k/0\nbssplit=4k/60\nfilename=a::b\npath=host,,x\ngpu=0:1\n\
                gpu=software:two\ngpu_dev_id=0,1\ngpu=cuda:0\n";
    insta::assert_snapshot!(errors_of(text), @r"
    a.fio:2:9: value '0' of 'iodepth': 0 has no effect; give 1 or more
    a.fio:3:9: value '-1' of 'numjobs': expected a whole number below 2^64, decimal or 0x…,
        without a suffix
    a.fio:4:9: value '4294967296' of 'numjobs': too many; give a number below 2^32
    a.fio:5:12: value '0x' of 'randseed', at its end: expected a whole number below 2^64,
        decimal or 0x…, without a suffix
    a.fio:6:11: value '101' of 'rwmixread': expected a whole percentage from 0 to 100
    a.fio:7:18: value '0-3,x' of 'cpus_allowed', at 'x': expected numbers and ranges joined
        by commas, each at most 65535, such as 0-3,8
    a.fio:8:16: value '3-0' of 'cpus_allowed', at '0': expected a range whose end is not
        below its start, such as 0-3
    a.fio:9:17: value '0,1' of 'numa_cpu_nodes', at ',1': expected one NUMA node, such as 0;
        for several nodes write one job for each
    a.fio:10:9: value '4k/60:8k/50' of 'bssplit': the percentages sum to 110; they must sum
        to 100
    a.fio:11:18: value '4k/60:8k/0' of 'bssplit', at '0': a block of 0 percent is never
        used; leave it out
    a.fio:12:9: value '4k/60' of 'bssplit': the percentages sum to 60; they must sum to 100
    a.fio:13:12: value 'a::b' of 'filename', at ':b': a file name is empty; names are
        separated by ':', and '\:' is a colon of a name
    a.fio:14:11: value 'host,,x' of 'path', at ',x': a name is empty; give names separated
        by commas, or all
    a.fio:15:6: value '0:1' of 'gpu', at ':1': expected software: or system: before the
        colon; several GPUs are separated by commas, such as 0,1
    a.fio:16:14: value 'software:two' of 'gpu', at 'two': expected GPU numbers (0,1 or 0-3),
        all, none, software or software:0,1
    a.fio:17:13: value '0,1' of 'gpu_dev_id', at ',1': expected one GPU number, such as 0;
        for several GPUs write one job for each, or gpu=0,1
    a.fio:18:5: value 'cuda:0' of 'gpu': expected the number alone: 0 instead of cuda:0
    ");
}

#[test]
fn words() {
    let text = "[a]\nrw=randrea\nrw=trim\nrw=read:x\nioengine=libcufile\nioengine=io_urin\n\
                ioengine=sg\nengine=a b\ndirect=maybe\nverify=pattern_hdr\nverify=inlin\n\
                random_distribution=zoned:50/5\nrandom_distribution=normal\n\
                random_distribution=zipf:1.0\nrate_process=thinktime\nmem=shm\nmemory=gpu\n\
                xfer_type=8\n";
    insta::assert_snapshot!(errors_of(text), @"
    a.fio:2:4: value 'randrea' of 'rw': expected one of read, write, randread, randwrite,
        rw, readwrite, randrw; nearest: randread
    a.fio:3:4: value 'trim' of 'rw': trim moves no bytes to measure and is not supported;
        use fio for trim, and read, write or a mix here
    a.fio:4:9: value 'read:x' of 'rw', at 'x': expected a size in bytes, or with k, m, g, t,
        p or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    a.fio:6:10: value 'io_urin' of 'ioengine': expected one of psync, sync, vsync, pvsync,
        pvsync2, io_uring, libaio, posixaio, mmap, null; nearest: io_uring
    a.fio:7:10: value 'sg' of 'ioengine': SCSI passthrough is not supported; use
        engine=io_uring on the block device
    a.fio:8:9: value 'a b' of 'engine', at ' b': expected the name of one engine, such as
        psync or io_uring
    a.fio:9:8: value 'maybe' of 'direct': expected one of 1, 0, yes, no, true, false, on,
        off
    a.fio:10:8: value 'pattern_hdr' of 'verify': of fio's checksums gpuio writes and checks
        crc32c; use verify=crc32c, or verify=pass for gpuio's own position-dependent pattern
    a.fio:11:8: value 'inlin' of 'verify': expected one of off, pass, full, file, crc32c,
        inline, rewrite, crc32c-intel, md5, crc64, crc32, crc16, crc7, xxhash, sha512,
        sha256, sha1, meta, pattern, 0, 1, none; nearest: inline
    a.fio:12:27: value 'zoned:50/5' of 'random_distribution', at '50/5': the shares of the
        I/Os sum to 50; they must sum to 100
    a.fio:13:27: value 'normal' of 'random_distribution', at its end: give its number:
        normal:10 (deviation in %)
    a.fio:14:26: value 'zipf:1.0' of 'random_distribution', at '1.0': expected theta above 0
        and not exactly 1, such as 1.2
    a.fio:15:14: value 'thinktime' of 'rate_process': expected one of steady, poisson,
        linear
    a.fio:16:5: value 'shm' of 'mem': shared memory segments are for fio's processes, and
        gpuio only has threads; use malloc or mmap
    a.fio:17:8: value 'gpu' of 'memory': expected one of device, vmm, pinned, malloc, mmap,
        managed
    a.fio:18:11: value '8' of 'xfer_type': expected a transfer type from 0 to 7 (1 is host
        memory, 2 staged to the GPU, 3 managed memory, 4 staged through the page cache);
        gpuio's own key is path=
    ");
}

#[test]
fn sections() {
    let vdbench = errors_of("sd=sd1,lun=/dev/sdb\n");
    assert!(vdbench.contains("Vdbench") && !vdbench.contains("[global]"), "{vdbench}");
    insta::assert_snapshot!(errors_of("bs=4k\n[a\niodeph=1\n[]\n[b] bs=4k\n[c] # fine\n"), @"
    a.fio:1:1: key 'bs' is before any section; put [global] or [name] above it
    a.fio:2:1: the section header has no ']'; write [name] on a line of its own
    a.fio:3:1: unknown key 'iodeph'; nearest: iodepth
    a.fio:4:1: the section has no name; write [global] or [name]
    a.fio:5:5: 'bs=4k' after the section header; put it on the next line
    ");
    insta::assert_snapshot!(
        errors_of(""),
        @"a.fio:1:1: the file has no job; add a section such as [job1], which may be empty"
    );
    insta::assert_snapshot!(
        errors_of("[global]\nbs=4k\n"),
        @"a.fio:3:1: the file has no job; add a section such as [job1], which may be empty"
    );
}

#[test]
fn variables() {
    let text = "[a]\ndirectory=/x/${NOT_SET}/y\nsize=${\nsize=${}\nsize=${1A}\n\
                bs=${THREADS}q\nbs=  ${THREADS}k:x\n";
    insta::assert_snapshot!(errors_of(text), @"
    a.fio:2:14: environment variable 'NOT_SET' is not set; set it, or write $${NOT_SET} if
        the text ${NOT_SET} itself is meant
    a.fio:3:6: '${' needs a variable name of letters, digits and '_', and then '}'; write
        $${ if the text ${ itself is meant
    a.fio:4:6: '${' needs a variable name of letters, digits and '_', and then '}'; write
        $${ if the text ${ itself is meant
    a.fio:5:6: '${' needs a variable name of letters, digits and '_', and then '}'; write
        $${ if the text ${ itself is meant
    a.fio:6:14: value '12q' of 'bs', at 'q': expected a size in bytes, or with k, m, g, t, p
        or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    a.fio:7:19: value '12k:x' of 'bs', at its end: expected one size (4k), a range (4k-64k)
        or min:max:step (1M:4M:1M)
    ");
}

#[test]
fn look_alikes() {
    let text = "[a]\nbs＝4k\ncpus_allowed=0，1\nbsrange=4k–64k\nsize=1\u{a0}G\nｂｓ=4k\n\
                [b］\nrunｔime = 4\n";
    insta::assert_snapshot!(errors_of(text), @"
    a.fio:2:3: 'bs＝4k' contains '＝' (U+FF1D), which only looks like '='; type the ASCII sign
    a.fio:3:15: '0，1' contains '，' (U+FF0C), which only looks like ','; type the ASCII sign
    a.fio:4:11: '4k–64k' contains '–' (U+2013), which only looks like '-'; type the ASCII
        sign
    a.fio:5:7: '1 G' contains ' ' (U+00A0), which only looks like ' '; type the ASCII sign
    a.fio:6:1: 'ｂｓ' contains 'ｂ' (U+FF42), which only looks like 'b'; type the ASCII sign
    a.fio:7:3: 'b］' contains '］' (U+FF3D), which only looks like ']'; type the ASCII sign
    a.fio:8:4: 'runｔime' contains 'ｔ' (U+FF54), which only looks like 't'; type the ASCII
        sign
    ");
}

#[test]
fn bytes_that_are_not_text() {
    insta::assert_snapshot!(errors_of(b"[a]\nbs=4k\ndirectory=/\xc3\xa9/\xff\n"), @"
    a.fio:3:14: this byte is not UTF-8 text; save the file as UTF-8, and check that it is a
        job file
    ");
    insta::assert_snapshot!(
        errors_of(b"\xff\xfe[\0a\0]\0"),
        @"a.fio:1:1: this byte is not UTF-8 text; the file looks like UTF-16: save it as UTF-8"
    );
    insta::assert_snapshot!(
        errors_of("[a]\nbs=4\0k\n"),
        @"a.fio:2:5: a NUL character; this is not a text file, or it is damaged: write it again"
    );
}

#[test]
fn errors_of_a_broken_file_are_reported_up_to_the_limit() {
    let text = format!("[a]\n{}", "nonsense_key_here=1\n".repeat(50));
    let errors = parse_job_file("a.fio", text, &env).unwrap_err();
    assert_eq!(errors.len(), MAX_ERRORS);
    assert_eq!(errors[MAX_ERRORS - 1].line, 21);
}

#[test]
fn control_signs_and_long_words_stay_on_one_line() {
    let text = format!("[a]\n{}=1\nbs=\u{1b}[31m\n", "k".repeat(5000));
    insta::assert_snapshot!(errors_of(text), @r"
    a.fio:2:1: unknown key 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…';
        no similar key; see docs/job-file.md
    a.fio:3:4: value '\u{1b}[31m' of 'bs': expected a size in bytes, or with k, m, g, t, p
        or e as powers of 1024: 4096, 4k, 1MiB, 1.5G
    ");
}

/// Keys about writes wait until it is known whether the load writes, but no longer than other
/// errors of the file.
#[test]
fn refused_keys_about_writes_are_among_all_errors_of_a_file() {
    let errors = |rw: &str| {
        let text =
            format!("[global]\ndedupe_percentage=50\n[a]\nrw={rw}\nfoo=1\n[b]\nbs=4q\nrw={rw}\n");
        let errors = parse_job_file("a.fio", &text, &|_| None).unwrap_err();
        let one = |error: &gpuio_job::spec::JobFileError| (error.line, error.to_string());
        errors.iter().map(one).collect::<Vec<_>>()
    };
    let found = errors("write");
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 5, 7], "{found:?}");
    assert!(found[0].1.contains("'dedupe_percentage' (fio) is not supported"), "{found:?}");
    assert_eq!(errors("read").len(), 2, "nothing is written");
}

/// `verify` is a key of both: by its value a file stays one of fio's, or is one of gpuio's.
#[test]
fn checksums_of_fio_leave_a_file_fios() {
    let fios = |value: &str| {
        let text = format!("[a]\nrw=randwrite\nbs=4k\nsize=4m\nverify={value}\n");
        parse_job_file("a.fio", &text, &|_| None).unwrap().jobs[0].dialect.is_some()
    };
    for value in ["crc32c", "md5", "sha256", "xxhash"] {
        assert!(fios(value), "{value}");
    }
    for value in ["pass", "inline", "rewrite"] {
        assert!(!fios(value), "{value}");
    }
}
