//! Verification reports the bytes checked, where, and whether to its end.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use gpuio_record::{EndedHow, VerifySubject};

use crate::lab::{Lab, Stop};

#[test]
fn inline_verification_checks_every_read() {
    for path in ["path=host", "path=staged\ngpu=software", "path=cached\ngpu=software"] {
        let job = Lab::with_gpu()
            .job(&format!("{path}\nrw=randread\nbs=64k\nsize=2m\nio_size=4m\nverify=inline"));
        let verify = job.verify.unwrap();
        assert_eq!((verify.timed_blocks, verify.timed_bytes), (job.read.ios, job.read.bytes));
        assert_eq!((verify.bad_blocks, verify.failed, verify.complete), (0, 0, true), "{path}");
    }
}

#[test]
fn a_pass_checks_every_byte_once_whatever_was_timed() {
    let cases = [
        ("rw=read", 1),
        ("rw=randread\nthreads=3", 3),
        ("rw=write\nthreads=2", 2),
        ("rw=randrw\npath=staged\ngpu=software\nthreads=2", 2),
        ("rw=randwrite\npath=cached\ngpu=software", 1),
    ];
    for (lines, threads) in cases {
        let job =
            Lab::with_gpu().job(&format!("{lines}\nbs=16k\nsize=1m\nio_size=256k\nverify=pass"));
        let verify = job.verify.unwrap();
        let all = verify.pass_bytes + verify.filled_bytes;
        assert_eq!(all, threads << 20, "{lines}");
        let reached = if job.write.ios > 0 { verify.filled_bytes } else { 0 };
        assert_eq!(reached, verify.filled_bytes, "{lines}: what is read is not filled");
        if job.read.ios == 0 {
            // Each thread wrote a quarter of its file, no block of it twice.
            assert_eq!(verify.pass_bytes, job.write.bytes, "{lines}");
        }
        assert_eq!((verify.bad_blocks, verify.failed, verify.complete), (0, 0, true), "{lines}");
        assert_eq!(verify.timed_blocks > 0, job.write.ios == 0, "{lines}: only reads stay");
    }
}

/// Each outcome says what it is about.
#[test]
fn an_outcome_names_its_subject() {
    for (lines, subject) in [
        ("rw=read\nverify=pass", VerifySubject::Reads),
        ("rw=read\nverify=inline", VerifySubject::Reads),
        ("rw=randrw\nverify=inline", VerifySubject::TimedReads),
        ("rw=randrw\nverify=pass", VerifySubject::TimedWrites),
        ("rw=write\nverify=pass", VerifySubject::TimedWrites),
        ("rw=write\nverify=rewrite", VerifySubject::Rewritten),
    ] {
        let job = Lab::new().job(&format!("{lines}\nbs=16k\nsize=256k\nio_size=256k"));
        let verify = job.verify.unwrap();
        assert_eq!((verify.subject, verify.is_fine()), (subject, true), "{lines}");
    }
}

/// Writes of several threads that meet in one file, by chance, in blocks of several sizes.
#[test]
fn writes_that_overlap_are_read_back() {
    for direct in ["", "direct=0\n"] {
        let lab = Lab::new();
        let text = format!(
            "[global]\nfilename=${{DIR}}/f\nshared_files=0\n{direct}rw=randwrite\nnorandommap=1\n\
             bsrange=4k-32k\nsize=256k\nio_size=512k\nthreads=3\nverify=pass\nkeep=1\n[a]\n[b]\n"
        );
        let ran = lab.run(&text);
        for job in &ran.jobs {
            let verify = job.verify.as_ref().unwrap();
            assert!(verify.is_fine() && verify.pass_bytes > 0, "{direct}: {verify:?}");
            assert_eq!(verify.pass_bytes + verify.filled_bytes, 256 << 10, "{direct}");
        }
        // Whatever was reached, the file can be verified whole from now on.
        let mut again =
            lab.plan("[a]\nfilename=${DIR}/f\nrw=read\nbs=4k\nsize=256k\nloops=1\nverify\n");
        let read = lab.carry_out(&mut again).unwrap();
        assert_eq!(again.jobs[0].targets[0].guard, gpuio_record::GuardNote::Ours, "{direct}");
        assert!(read.jobs[0].verify.as_ref().unwrap().is_fine());
    }
}

#[test]
fn threads_on_one_file_share_the_pass_out() {
    for lines in ["shared_files=1", "shared_files=0"] {
        let lab = Lab::new();
        let text = format!(
            "[a]\nfilename=${{DIR}}/f\n{lines}\nthreads=3\nrw=write\nbs=4k\nsize=100k\n\
             io_size=100k\nverify=pass\n"
        );
        let verify = lab.run(&text).jobs.remove(0).verify.unwrap();
        let bytes = if lines == "shared_files=1" { 300 << 10 } else { 100 << 10 };
        assert_eq!(verify.pass_bytes, bytes, "{lines}");
        assert_eq!((verify.bad_blocks, verify.complete), (0, true), "{lines}");
    }
}

#[test]
fn failed_reads_of_the_pass_are_reported() {
    // Every tenth I/O fails, those of the pass too.
    let job = Lab::new()
        .job("rw=read\nbs=4k\nsize=4m\nio_size=64k\nverify=pass\ninject=eio=10%\nengine=psync");
    let verify = job.verify.unwrap();
    assert!((50..200).contains(&verify.failed), "{verify:?}");
    assert_eq!(verify.pass_blocks + verify.failed, 1024);
    assert_eq!(verify.bad_blocks, 0, "what did not arrive is not compared");
}

#[test]
fn an_interrupt_cuts_the_load_and_the_pass_short() {
    for mode in ["pass", "inline"] {
        let lab = Lab::stopping(Stop::Started { after_ms: 200 });
        let text = format!(
            "[a]\ndirectory=${{DIR}}\nsize=4m\nbs=4k\nverify={mode}\nruntime=600\n[b]\nstonewall\n"
        );
        let began = std::time::Instant::now();
        let ran = lab.run(&text);
        assert!(began.elapsed().as_secs() < 300, "it did not run on");
        assert_eq!(ran.ended, EndedHow::Interrupted);
        assert_eq!(ran.jobs.len(), 1, "the second group did not start");
        let job = &ran.jobs[0];
        assert_eq!(job.ended, EndedHow::Interrupted);
        assert!(job.read.ios > 0, "partial results stand");
        assert!(!job.verify.as_ref().unwrap().complete, "{mode}");
    }
}

#[test]
fn an_interrupt_ends_the_pass_alone() {
    let lab = Lab::stopping(Stop::Verifying);
    let ran = lab.run(
        "[a]\ndirectory=${DIR}\nsize=16m\nbs=4k\nio_size=64k\nverify=pass\ninject=delay=1ms\n\
         engine=psync\n",
    );
    assert_eq!(ran.ended, EndedHow::Interrupted);
    let job = &ran.jobs[0];
    assert_eq!(job.ended, EndedHow::Complete, "the load itself was over");
    let verify = job.verify.as_ref().unwrap();
    assert!(!verify.complete);
    assert!(verify.pass_blocks < 4096, "{verify:?}");
}

/// Bytes of a file, as a compressor leaves them.
fn deflated(bytes: &[u8]) -> usize {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().len()
}

/// Compressible data, laid out or written, is verified to the last byte, and differs from data of
/// the same files that can't be compressed.
#[test]
fn compressible_data_is_compressible_and_verified() {
    for path in ["path=host", "path=staged\ngpu=software", "path=cached\ngpu=software"] {
        for load in [
            "rw=read\nverify=inline",
            "rw=randwrite\nverify=pass",
            "rw=randrw\nrefill=1\nverify=inline",
            "rw=write\nverify=rewrite",
            "rw=write\nfill=random",
        ] {
            let lab = Lab::with_gpu();
            // Blocks are longer than what a compressor remembers.
            let sizes = "bs=64k\nsize=2m\nio_size=2m\nkeep=1\nfile_prefix=c";
            let lines = format!("{path}\n{load}\n{sizes}");
            // The same file without repeats lies there before.
            lab.job(&format!("rw=read\n{sizes}"));
            let before = std::fs::read(lab.file("c.0")).unwrap();
            assert!(deflated(&before) >= before.len() * 99 / 100);
            if load.contains("rw=read\n") {
                // A verification writes nothing over it.
                std::fs::remove_file(lab.file("c.0")).unwrap();
            }
            let compressible = "buffer_compress_percentage=75\nbuffer_compress_chunk=4k";
            let job = lab.job(&format!("{lines}\n{compressible}"));
            let verify = job.verify;
            assert!(verify.is_none_or(|verify| verify.is_fine()), "{lines}");
            let bytes = std::fs::read(lab.file("c.0")).unwrap();
            let percent = deflated(&bytes) * 100 / bytes.len();
            assert!((24..=28).contains(&percent), "{lines}: {percent} %");
        }
    }
}

#[test]
fn a_changed_word_among_those_that_repeat_is_found() {
    let lab = Lab::with_gpu();
    let lines = "bs=16k\nsize=1m\nio_size=1m\nkeep=1\nfile_prefix=c\n\
                 buffer_compress_percentage=75\nbuffer_compress_chunk=4k";
    lab.job(&format!("rw=read\n{lines}"));
    let path = lab.file("c.0");
    let mut bytes = std::fs::read(&path).unwrap();
    // The last quarter of a chunk, exchanged with that of the next one.
    let (one, next) = bytes[64 << 10..].split_at_mut(4096);
    one[3072..].swap_with_slice(&mut next[3072..4096]);
    std::fs::write(&path, &bytes).unwrap();
    let ran = lab.run(
        "[a]\nfilename=${DIR}/c.0\npath=staged\ngpu=software\nrw=read\nbs=16k\nsize=1m\n\
         io_size=1m\nverify=pass\nbuffer_compress_percentage=75\nbuffer_compress_chunk=4k\n",
    );
    let verify = ran.jobs[0].verify.clone().unwrap();
    // A timed read that was still there at the end is checked too.
    assert!((1..=2).contains(&verify.bad_blocks), "{verify:?}");
    assert_eq!(verify.bad_words, 256 * verify.bad_blocks, "{verify:?}");
    assert!(verify.mismatches.iter().all(|bad| bad.offset == (64 << 10) + 3072), "{verify:?}");
}
