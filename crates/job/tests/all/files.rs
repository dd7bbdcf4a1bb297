//! Job files that are right.

use gpuio_job::spec::{
    Dialect, GpuDriver, GpuRequest, GpuWhich, Origin, Rw, Sources, Spec, parse_job_file,
    parse_job_file_with,
};
use gpuio_record::{Arrivals, BlockShare, Distribution, VerifyMode};

use crate::{env, fixture};

fn read(name: &str) -> Spec {
    parse_job_file(name, fixture(name), &env).unwrap()
}

fn parse(text: &str) -> Spec {
    parse_job_file("t.ini", text, &env).unwrap()
}

fn one(bytes: u64) -> Vec<BlockShare> {
    vec![BlockShare { min_bytes: bytes, max_bytes: bytes, step_bytes: 0, percent: 100 }]
}

#[test]
fn four_gpus_random_read() {
    let spec = read("four_gpus_random_read.gdsio");
    assert_eq!(spec.name.as_deref(), Some("nfs_random_read"));
    let names: Vec<_> = spec.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["job1", "job2", "job3", "job4"]);
    for (job, gpu) in spec.jobs.iter().zip([0, 2, 4, 6]) {
        assert_eq!(job.dialect, Some(Dialect::Gdsio));
        assert_eq!(job.xfer_type, Some(0));
        assert_eq!(job.paths, Some(vec!["gds".to_owned()]));
        assert_eq!(job.rw, Some(Rw::RandRead));
        assert_eq!(job.blocks, Some(one(4096)));
        assert_eq!(job.size, Some(500 << 20));
        assert_eq!(job.runtime_ns, Some(120_000_000_000));
        assert_eq!(job.time_based, Some(true), "gdsio fills its running time");
        assert_eq!(job.threads, Some(16));
        assert_eq!(job.numa, Some(0));
        let which = GpuWhich::List(vec![gpu]);
        let driver = None;
        assert_eq!(job.gpu, Some(GpuRequest { driver, which }));
        assert_eq!((job.direct, job.depth, job.seed), (None, None, None));
    }
    assert_eq!(spec.jobs[3].directory.as_deref(), Some("/mnt/store/d/gds_dir"));
    assert!(spec.jobs.iter().all(|job| job.notes.is_empty()));
}

#[test]
fn eight_gpus_large_read() {
    let spec = read("eight_gpus_large_read.gdsio");
    assert_eq!(spec.jobs.len(), 8);
    assert_eq!(spec.jobs[7].name, "job15");
    assert_eq!(spec.jobs[7].numa, Some(1));
    assert_eq!(spec.jobs[7].verify, Some(VerifyMode::Off));
    assert_eq!(spec.jobs[7].blocks, Some(one(1 << 20)));
}

#[test]
fn variables_come_from_the_environment() {
    let job = &read("shell_made.gdsio").jobs[0];
    assert_eq!(job.rw, Some(Rw::Write));
    assert_eq!(job.threads, Some(12));
    assert_eq!(job.directory.as_deref(), Some("/mnt/lustre/gds_benchmark/job0/data"));
    assert_eq!(job.nvlinks, Some(false));
    assert_eq!(job.blocks, Some(one(1 << 20)), "gdsio's MB is 2^20");
}

#[test]
fn fio_random_and_mixed() {
    let spec = read("random_read.fio");
    let [first, second] = &spec.jobs[..] else {
        panic!("two jobs, not {}", spec.jobs.len());
    };
    assert_eq!(first.dialect, Some(Dialect::Fio));
    assert_eq!(first.engine.as_deref(), Some("io_uring"));
    assert_eq!((first.depth, first.threads), (Some(32), Some(4)));
    assert_eq!(first.direct, Some(true));
    assert_eq!(first.coverage, Some(false));
    assert_eq!(first.stonewall, None);
    assert_eq!(first.ramp_ns, Some(5_000_000_000));
    assert_eq!(first.directory.as_deref(), Some("/data"));
    assert_eq!(second.stonewall, Some(true));
    assert_eq!(second.rw, Some(Rw::RandRw));
    assert_eq!(second.read_percent, Some(70));
    assert_eq!(second.distribution, Some(Distribution::Zipf { theta: 1.2 }));
    assert_eq!(second.arrivals, Some(Arrivals::Poisson));
    let shares: Vec<_> = second.blocks.iter().flatten().collect();
    assert_eq!(shares.iter().map(|b| b.percent).collect::<Vec<_>>(), [60, 40]);
    assert_eq!(shares[1].min_bytes, 65536);
    let notes = &second.notes;
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].starts_with("'thread' (random_read.fio:5:1) has no effect here: "));
}

#[test]
fn a_global_section_reaches_the_jobs_after_it_only() {
    let spec = read("block_device.fio");
    let [seq, rand] = &spec.jobs[..] else {
        panic!("two jobs, not {}", spec.jobs.len());
    };
    assert_eq!((seq.numa, rand.numa), (None, Some(1)));
    assert_eq!(
        seq.filenames.as_deref(),
        Some(&["/dev/nvme0n1".to_owned(), "/dev/nvme1n1".to_owned()][..])
    );
    assert_eq!(seq.shared_files, None, "only gdsio shares a named file");
    assert_eq!(seq.direct, Some(true), "buffered=0");
    let block = seq.blocks.as_ref().unwrap()[0];
    assert_eq!(
        (block.min_bytes, block.max_bytes, block.step_bytes),
        (128 << 10, 1 << 20, 128 << 10)
    );
    assert_eq!(seq.cpus, Some(vec![0, 1, 2, 3, 8]));
    assert_eq!(rand.seed, Some(42));
    assert_eq!(rand.start_delay_ns, Some(500_000_000));
    assert_eq!(rand.align, Some(4096));
    assert_eq!((rand.loops, rand.io_size), (Some(2), None));
}

#[test]
fn an_origin_points_at_the_key() {
    let spec = parse("[global]\nbs=4k\n[a]\n  iodepth = 3\n");
    let place = |line, column| Origin::File { file: "t.ini".into(), line, column };
    assert_eq!(spec.jobs[0].origin("blocks"), Some(&place(2, 1)));
    assert_eq!(spec.jobs[0].origin("depth"), Some(&place(4, 3)));
    assert_eq!(spec.jobs[0].origin("rw"), None);
    assert_eq!(spec.jobs[0].requested["depth"].to_string(), "iodepth=3 (t.ini:4:3)");
}

#[test]
fn line_ends_marks_and_comments() {
    let text = "\u{feff}[a]\r\n\tbs = 8k ; why\r\n# rw=write\r\n;rw=write\r\n\
                filename=/data/run#3;x\r\nrw=read #c";
    let job = &parse(text).jobs[0];
    assert_eq!(job.blocks, Some(one(8192)));
    assert_eq!(job.rw, Some(Rw::Read));
    assert_eq!(job.filenames, Some(vec!["/data/run#3;x".to_owned()]));
}

#[test]
fn sections_of_one_name_are_two_jobs_and_may_be_empty() {
    let spec = parse("[a]\n[a]\nname=b\n[global]\nname=r\n");
    let names: Vec<_> = spec.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(spec.name.as_deref(), Some("r"));
}

#[test]
fn a_dollar_is_kept_where_it_names_nothing() {
    let job = &parse("[a]\ndirectory=/x/$${MOUNT}/$y/${MOUNT}\n").jobs[0];
    assert_eq!(job.directory.as_deref(), Some("/x/${MOUNT}/$y//mnt/lustre"));
}

#[test]
fn a_named_file_is_shared_under_gdsio_keys() {
    let job = &parse("[a]\nxfer_type=1\nfilename=/d/f\n").jobs[0];
    assert_eq!(job.shared_files, Some(true));
    assert_eq!(job.origin("shared_files"), job.origin("filenames"));
    let job =
        &parse("[a]\nxfer_type=1\nfilename=/d/f\nshared=0\nruntime=1\ntime_based=0\n").jobs[0];
    assert_eq!((job.shared_files, job.time_based), (Some(false), Some(false)));
}

#[test]
fn driver_and_devices_are_requested_separately() {
    let job = &parse("[global]\ngpu=software\n[a]\ngpu_dev_id=2\n").jobs[0];
    let expected = GpuRequest { driver: Some(GpuDriver::Software), which: GpuWhich::List(vec![2]) };
    assert_eq!(job.gpu, Some(expected));
}

/// The lines of an included file stand where it is included.
#[test]
fn a_file_may_include_others() {
    let files = |name: &str| match name {
        "common.fio" => Ok(b"bs=64k\ninclude deep.fio\n".to_vec()),
        "deep.fio" => Ok(b"iodepth=8\n".to_vec()),
        "loop.fio" => Ok(b"include loop.fio\n".to_vec()),
        "bad.fio" => Ok(b"\niodeph=8\n".to_vec()),
        _ => Err("there is none".to_owned()),
    };
    let read = |text: &str| {
        let sources = Sources { env: &env, file: &files };
        parse_job_file_with("t.fio", text, sources, None)
    };
    let spec = read("[global]\ninclude common.fio\n[a]\nrw=write\n").unwrap();
    assert_eq!((spec.jobs[0].blocks.clone(), spec.jobs[0].depth), (Some(one(64 << 10)), Some(8)));
    let said = |text: &str| read(text).unwrap_err()[0].to_string();
    assert_eq!(
        said("[a]\ninclude bad.fio\n"),
        "bad.fio:2:1: unknown key 'iodeph'; nearest: iodepth"
    );
    assert_eq!(said("[a]\ninclude x\n"), "t.fio:2:1: 'x' can't be included: there is none");
    assert!(said("[a]\ninclude loop.fio\n").contains("8 files include one another"));
}

/// A file that is named as one of fio's is read as one, unless it has a key of gpuio's own.
#[test]
fn a_name_says_whose_a_file_is() {
    let dialect =
        |name: &str, text: &str| parse_job_file(name, text, &env).unwrap().jobs[0].dialect;
    assert_eq!(dialect("a.fio", "[a]\nrw=read\n"), Some(Dialect::Fio));
    assert_eq!(dialect("a.fio", "[a]\nrw=read\ndepth=2\n"), None);
    assert_eq!(dialect("a.ini", "[a]\nrw=read\n"), None);
}
