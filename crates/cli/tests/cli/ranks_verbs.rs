//! The other verbs on several ranks, and what the formats say of ranks.

use crate::ranks::{installed, record, run};

/// The value of a field of gdsio's line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let after = line.split(&format!("{name}: ")).nth(1).unwrap_or_else(|| panic!("{line}"));
    after.split(' ').next().unwrap()
}

#[test]
fn gdsio_prints_one_line_over_all_clients() {
    for mpi in installed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let file = "[global]\nxfer_type=1\nrw=write\nbs=64k\nsize=1M\ndo_verify=1\n[a]\n\
                    num_threads=2\ndirectory=d\n";
        std::fs::write(dir.path().join("rw.gdsio"), file).unwrap();
        let words = ["gdsio", "rw.gdsio", "--output", "r.json", "--quiet"];
        let ran = run(mpi, dir.path(), &words).exits(0);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines.len(), 3, "{}", ran.out);
        assert_eq!(lines[1], "Verifying data");
        for (line, way) in [(lines[0], "WRITE"), (lines[2], "READ")] {
            assert_eq!(field(line, "IoType"), way);
            assert_eq!(field(line, "Threads"), "8");
            assert_eq!(field(line, "DataSetSize"), "8192/8192(KiB)");
            assert_eq!(field(line, "ops"), "128");
        }
        assert_eq!(ran.err.matches("# ranks: 4 on host ").count(), 1, "{}", ran.err);
        for n in 0..8 {
            assert!(dir.path().join(format!("d/gdsio.{n}")).is_file(), "file {n}");
        }
        assert_eq!(record(dir.path(), "r.json")["ranks"]["ranks"], 4);
    }
}

#[test]
fn gdsio_has_the_placement_and_the_refusals_of_bench() {
    for mpi in installed() {
        let dir = tempfile::tempdir().unwrap();
        let gdsio = |more: &[&str]| {
            let words = ["gdsio", "-w", "2", "-s", "1M", "-i", "64K", "-x", "1", "-I", "1"];
            run(mpi, dir.path(), &[&words[..], more].concat())
        };
        let ran = gdsio(&["-f", "one"]).exits(2);
        assert!(ran.err.contains("would both use the same bytes of one, and write"), "{}", ran.err);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
        let ran = gdsio(&["-f", "one{rank}", "--dry-run"]).exits(0);
        for n in 0..4 {
            assert!(ran.out.contains(&format!(" one{n} ")), "{}", ran.out);
        }
        let ran = gdsio(&["-f", "one{rank}", "--per-rank"]).exits(2);
        assert!(ran.err.contains("gdsio's line is of all ranks"), "{}", ran.err);
        gdsio(&["-f", "one{rank}"]).exits(0);
        assert!(dir.path().join("one3").is_file());
    }
}
