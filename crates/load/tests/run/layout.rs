//! Files are there in full before a load that might leave holes begins.

use std::fs::File;

use gpuio_host::extents::extents;
use gpuio_record::DirectMode;

use crate::lab::Lab;

/// Bytes of the file that were never written, and its length.
fn absent_and_length(lab: &Lab, name: &str) -> (u64, u64) {
    let file = File::open(lab.file(name)).unwrap();
    let length = file.metadata().unwrap().len();
    (extents(&file, 0, u64::MAX).absent_bytes(), length)
}

/// Loads that touch a part of their files only: the rest is there all the same, to the last byte.
#[test]
fn every_byte_is_written_before_a_load_that_might_leave_holes() {
    let loads = [
        "rw=randwrite\nio_size=64k",
        "rw=randwrite\nruntime=20ms",
        "rw=write\nio_size=64k",
        "rw=write\nruntime=1ms",
        "rw=randrw\nio_size=64k",
    ];
    for load in loads {
        for direct in ["", "direct=0"] {
            for size in ["1m", "1000003"] {
                let lab = Lab::new();
                let text = format!(
                    "[a]\ndirectory=${{DIR}}\n{load}\nbs=16k\nsize={size}\n{direct}\n\
                     keep=1\nthreads=2\n"
                );
                let ran = lab.run(&text);
                let bytes = if size == "1m" { 1 << 20 } else { 1_000_003 };
                for name in ["gpuio.0", "gpuio.1"] {
                    let found = absent_and_length(&lab, name);
                    assert_eq!(found, (0, bytes), "{load} {direct} {name}");
                }
                assert_eq!(ran.setup.laid_out_bytes, 2 * bytes, "{load}");
                assert!(ran.setup.data_set_ns > 0);
            }
        }
    }
}

/// A load that writes its files from start to end needs nothing before it, unless its blocks end
/// before the file does.
#[test]
fn a_whole_pass_in_order_makes_its_files_itself() {
    for (lines, laid_out) in [
        ("size=1m", 0),
        ("size=1m\nloops=3\ndepth=4\nengine=pool", 0),
        ("size=1000003", 0),
        ("size=1000003\n#auto", 1_000_003),
        ("size=1m\noffset=64k", (1 << 20) + (64 << 10)),
        ("size=1m\nloops=1\nruntime=600", 1 << 20),
        ("size=1m\nengine=mmap", 1 << 20),
    ] {
        let direct = if lines.contains("auto") { "" } else { "direct=0\n" };
        let lab = Lab::new();
        let text = format!(
            "[a]\ndirectory=${{DIR}}\nrw=write\nbs=16k\nloops=1\n{direct}keep=1\n{lines}\n"
        );
        let text = if lines.contains("loops") { text.replacen("loops=1\n", "", 1) } else { text };
        let mut plan = lab.plan(&text);
        let ran = lab.carry_out(&mut plan).unwrap();
        // Where O_DIRECT can't be had, no block ends before the file does.
        let short = lines.contains("auto") && plan.jobs[0].direct == DirectMode::Buffered;
        let laid_out = if short { 0 } else { laid_out };
        assert_eq!(ran.setup.laid_out_bytes, laid_out, "{lines}");
        let (absent, length) = absent_and_length(&lab, "gpuio.0");
        assert_eq!(absent, 0, "{lines}");
        let size = if lines.contains("1000003") { 1_000_003 } else { 1 << 20 };
        let start = if lines.contains("offset") { 64 << 10 } else { 0 };
        assert_eq!(length, start + size, "{lines}");
        // The next load finds all of it.
        let next = lab.run("[a]\ndirectory=${DIR}\nrw=write\nbs=16k\nsize=900k\nruntime=1ms\n");
        assert_eq!(next.setup.laid_out_bytes, 0, "{lines}");
    }
}
