//! gdsio's command line.

use gpuio_job::spec::{
    Dialect, GdsioRequest, GdsioRun, GpuWhich, JobSpec, Origin, Rw, parse_gdsio,
};
use gpuio_record::{Fill, MemoryKind, VerifyMode};

use crate::wrapped;

fn parsed(line: &str) -> Result<GdsioRequest, String> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse_gdsio(&args, &|long| long == "gpu").map_err(|error| error.to_string())
}

fn job(line: &str) -> JobSpec {
    match parsed(line).unwrap().run {
        GdsioRun::Flags(mut spec) => spec.jobs.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_documented_random_read() {
    let job = job("-D /nvme23/gds_dir -d 10 -w 64 -s 1G -i 4K -x 0 -I 2 -k 0308 -T 120");
    assert_eq!(job.directory.as_deref(), Some("/nvme23/gds_dir"));
    assert_eq!(job.gpu.unwrap().which, GpuWhich::List(vec![10]));
    assert_eq!((job.threads, job.size), (Some(64), Some(1 << 30)));
    assert_eq!(job.blocks.unwrap()[0].min_bytes, 4096);
    assert_eq!(job.xfer_type, Some(0));
    assert_eq!(job.rw, Some(Rw::RandRead));
    assert_eq!(job.seed, Some(308), "leading zeros are decimal");
    assert_eq!(job.runtime_ns, Some(120_000_000_000));
    assert_eq!(job.time_based, Some(true));
    assert_eq!(job.dialect, Some(Dialect::Gdsio));
    assert_eq!((job.shared_files, job.direct, job.verify), (None, None, None));
    assert_eq!(job.requested["threads"].origin, Origin::Flag("-w"));
    assert_eq!(job.requested["time_based"].origin, Origin::Flag("-T"));
}

#[test]
fn every_flag_in_attached_form() {
    let job = job(
        "-f/mnt/a:b -d0 -n1 -m2 -w8 -s1g -o4K -i1M:4M:1M -pbV -x2 -B16 -I3 -T10 -k7 -URF -a8k \
         -M30 -Prdma://h:1/x -O1 -J",
    );
    assert_eq!(job.filenames, Some(vec!["/mnt/a:b".to_owned()]));
    assert_eq!(job.shared_files, Some(true));
    assert_eq!(job.memory, Some(MemoryKind::Pinned));
    assert_eq!((job.offset, job.numa), (Some(4096), Some(1)));
    let block = job.blocks.unwrap()[0];
    assert_eq!((block.min_bytes, block.max_bytes, block.step_bytes), (1 << 20, 4 << 20, 1 << 20));
    assert_eq!((job.nvlinks, job.skip_bufregister), (Some(true), Some(true)));
    assert_eq!(job.verify, Some(VerifyMode::Pass));
    assert_eq!(job.paths, Some(vec!["staged".to_owned()]));
    assert_eq!((job.batch, job.mix_percent), (Some(16), Some(30)));
    assert_eq!((job.unaligned, job.refill), (Some(true), Some(true)));
    assert_eq!(job.fill, Some(Fill::Random));
    assert_eq!((job.align, job.direct), (Some(8192), Some(false)));
    assert_eq!(job.rdma_url.as_deref(), Some("rdma://h:1/x"));
}

#[test]
fn a_configuration_file_and_per_job_statistics() {
    let request = parsed("-J rw-sample.gdsio --overwrite").unwrap();
    assert_eq!(request.run, GdsioRun::Config("rw-sample.gdsio".to_owned()));
    assert!(request.per_job);
    assert_eq!(request.leftovers, [("overwrite".to_owned(), None)]);
}

#[test]
fn long_options_are_left_over() {
    let request = parsed("--gpu software -f /d/f --cufile-lib=/x/lib.so -x 1 --overwrite").unwrap();
    let expected =
        [("gpu", Some("software")), ("cufile-lib", Some("/x/lib.so")), ("overwrite", None)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    assert_eq!(request.leftovers, expected);
}

#[test]
fn help_and_version() {
    assert_eq!(parsed("-x 0 -h").unwrap().run, GdsioRun::Help);
    assert_eq!(parsed("--help").unwrap().run, GdsioRun::Help);
    assert_eq!(parsed("--version").unwrap().run, GdsioRun::Version);
}

fn refused<const N: usize>(lines: [&str; N]) -> String {
    wrapped(lines.map(|line| format!("gdsio {line}: {}", parsed(line).unwrap_err())))
}

#[test]
fn wrong_values_are_reported_with_what_fits() {
    let refusals = refused([
        "-D /d -w 0",
        "-D /d -s 0",
        "-D /d -s 110%",
        "-D /d -I 4",
        "-D /d -m 5",
        "-D /d -O 2",
        "-D /d -x 9",
        "-D /d -i 1M:4M",
        "-D /d -d 0,1",
        "-D /d -k 12k",
        "-D /d -T 5x",
        "-D /d -M 101",
        "-D /d -s １G",
    ]);
    insta::assert_snapshot!(refusals, @"
    gdsio -D /d -w 0: -w: value '0' of 'num_threads': 0 has no effect; give 1 or more
    gdsio -D /d -s 0: -s: value '0' of 'size': the size is 0; give a size above 0, such as
        4k or 1G
    gdsio -D /d -s 110%: -s: value '110%' of 'size': expected a whole percentage from 0 to
        100
    gdsio -D /d -I 4: -I: value '4' of 'rw': expected 0 (read), 1 (write), 2 (randread) or 3
        (randwrite)
    gdsio -D /d -m 5: -m: value '5' of 'memory': expected 0 (device memory), 1 (virtual
        memory calls), 2 (pinned), 3 (malloc) or 4 (mmap)
    gdsio -D /d -O 2: -O: value '2' of 'direct': expected 0 (O_DIRECT) or 1 (page cache)
    gdsio -D /d -x 9: -x: value '9' of 'xfer_type': expected a transfer type from 0 to 7 (1
        is host memory, 2 staged to the GPU, 3 managed memory, 4 staged through the page
        cache); gpuio's own key is path=
    gdsio -D /d -i 1M:4M: -i: value '1M:4M' of 'bs', at its end: expected one size (4k), a
        range (4k-64k) or min:max:step (1M:4M:1M)
    gdsio -D /d -d 0,1: -d: value '0,1' of 'gpu_dev_id', at ',1': expected one GPU number,
        such as 0; for several GPUs write one job for each, or gpu=0,1
    gdsio -D /d -k 12k: -k: value '12k' of 'random_seed', at 'k': expected a whole number
        below 2^64, decimal or 0x…, without a suffix
    gdsio -D /d -T 5x: -T: value '5x' of 'runtime', at 'x': expected a duration in seconds,
        or with ns, us, ms, s, m (min), h or d: 10, 10s, 1.5s, 500ms, 2m, 1d
    gdsio -D /d -M 101: -M: value '101' of 'mix_percent': expected a whole percentage from 0
        to 100
    gdsio -D /d -s １G: -s: '１G' contains '１' (U+FF11), which only looks like '1'; type the
        ASCII sign
    ");
}

#[test]
fn wrong_command_lines_are_reported_with_what_to_do() {
    let refusals = refused([
        "",
        "-x 0 -I 0",
        "-f /d/f -D /d",
        "-D /d -w",
        "-D -w 4",
        "-D /d -z",
        "-D /d -V 1",
        "-D /d -d 0 -D /e -d 1",
        "rw.gdsio -x 0",
        "-x 0 rw.gdsio",
        "a.gdsio b.gdsio",
        "–D /d",
    ]);
    insta::assert_snapshot!(refusals, @"
    gdsio : no file to read or write; give -f FILE, -D DIRECTORY, or a configuration file as
        the only argument
    gdsio -x 0 -I 0: no file to read or write; give -f FILE, -D DIRECTORY, or a
        configuration file as the only argument
    gdsio -f /d/f -D /d: -f and -D exclude each other; give -f FILE for one file shared by
        all threads, or -D DIRECTORY for one file gdsio.N for each thread
    gdsio -D /d -w: -w needs a value: a number of threads, at least 1
    gdsio -D -w 4: -D needs a value: a directory name
    gdsio -D /d -z: unknown flag -z; gdsio's flags are -f -D -d -n -m -w -s -o -i -p -b -V
        -x -B -I -T -k -U -R -F -a -M -P -O -J; -h explains them
    gdsio -D /d -V 1: unexpected argument '1' after -V; flags begin with '-', those without
        value take none, and a configuration file is the only argument
    gdsio -D /d -d 0 -D /e -d 1: -D is given twice, but a command line is one job. For
        several jobs, write a configuration file with one section for each and give it as
        the only argument
    gdsio rw.gdsio -x 0: -x can't be combined with configuration file 'rw.gdsio'; put the
        setting into the file
    gdsio -x 0 rw.gdsio: unexpected argument 'rw.gdsio' after -x; flags begin with '-',
        those without value take none, and a configuration file is the only argument
    gdsio a.gdsio b.gdsio: unexpected argument 'b.gdsio'; flags begin with '-', those
        without value take none, and a configuration file is the only argument
    gdsio –D /d: '–D' begins with '–' (U+2013), which only looks like '-'; type the ASCII
        sign
    ");
}
