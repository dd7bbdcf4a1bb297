use proptest::prelude::*;

use super::read::{Place, read_most};
use super::write::{Frame, Source, header};
use super::*;

fn call(begin_ns: u64, offset: u64) -> Call {
    Call { offset, bytes: 4096, result: 4096, begin_ns, duration_ns: 50, ..Call::NONE }
}

/// Puts calls into a frame, each by itself.
fn put(frame: &mut Frame, source: (u32, &mut Source), calls: &[Call]) {
    let (number, source) = source;
    calls.iter().for_each(|call| frame.calls(number, source.encode(call).as_bytes()));
}

/// A trace as a writer leaves it, in two frames.
fn written() -> (Vec<u8>, Vec<Call>) {
    let mut bytes = header().to_vec();
    let mut frame = Frame::new();
    frame.program("python3", 17);
    let holes = Holes::All(vec![4096..8192, 16384..20480]);
    let path = Some("/data/a b".to_owned());
    frame.file(0, &TraceFile { path, size: 1 << 30, device: (259, 3), holes, ..<_>::default() });
    frame.file(1, &TraceFile { is_device: true, ..TraceFile::default() });
    let first = [call(100, 0), call(160, 4096)];
    let (mut one, mut two) = (Source::default(), Source::default());
    put(&mut frame, (0, &mut one), &first[..1]);
    put(&mut frame, (70_000, &mut two), &first[1..]);
    frame.take(&mut bytes);
    let second = [
        Call { within: Within::Batch(7), gpu: Some(3), ..call(90, 1 << 40) },
        Call { within: Within::Stream(2), op: Op::Write, file: 1, ..call(400, 0) },
        Call { result: -5, thread: 9, ..call(500, 8192) },
        Call { result: 10, ..call(600, 8192) },
    ];
    put(&mut frame, (0, &mut one), &second);
    frame.lost(3);
    frame.take(&mut bytes);
    (bytes, first.into_iter().chain(second).collect())
}

fn end(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut frame = Frame::new();
    frame.end();
    frame.take(&mut bytes);
    bytes
}

#[test]
fn what_was_written_is_read() {
    let (bytes, calls) = written();
    let open = read(&bytes).unwrap();
    assert_eq!((open.end, open.lost, open.calls.len()), (End::Open, 3, 6));
    let whole = read(&end(bytes)).unwrap();
    assert_eq!((whole.end, &whole.calls), (End::Whole, &calls));
    assert_eq!((whole.program.as_deref(), whole.began_unix_ns), (Some("python3"), 17));
    assert_eq!(whole.files[0].path.as_deref(), Some("/data/a b"));
    assert_eq!(whole.files[0].holes.known(), [4096..8192, 16384..20480]);
    assert_eq!((whole.files[0].device, whole.files[1].is_device), ((259, 3), true));
}

#[test]
fn a_sequential_call_takes_few_bytes() {
    let mut source = Source::default();
    let bytes = (0..1000).map(|n| source.encode(&call(n * 60_000, n * 4096)).as_bytes().len());
    assert!(bytes.sum::<usize>() <= 7 * 1000);
}

#[test]
fn a_cut_trace_has_what_came_before_and_says_where_it_is_cut() {
    let (bytes, calls) = written();
    let bytes = end(bytes);
    for length in 1..bytes.len() {
        match read(&bytes[..length]) {
            Ok(trace) => {
                assert!(calls.starts_with(&trace.calls));
                assert!(trace.end != End::Whole);
                if let End::Cut(at) = trace.end {
                    assert!((12..length as u64).contains(&at));
                }
            }
            Err(error) => assert!(length < 12, "{length}: {error}"),
        }
    }
}

#[test]
fn what_lies_before_damage_is_read_and_the_place_is_said() {
    let (bytes, calls) = written();
    let calls_before = |byte: u64| match read(&bytes[..usize::try_from(byte).unwrap()]) {
        Ok(trace) => trace.calls.len(),
        Err(error) => panic!("{error}"),
    };
    let bytes = end(bytes.clone());
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x11;
        match read(&bad) {
            Ok(trace) => {
                assert!(calls.starts_with(&trace.calls));
                match trace.end {
                    // A longer frame than there are bytes looks like a cut one.
                    End::Cut(byte) | End::Damaged(byte, _) => {
                        assert!(byte <= at as u64 && trace.calls.len() == calls_before(byte));
                    }
                    // Reserved bytes are free.
                    _ => assert!((10..12).contains(&at)),
                }
            }
            Err(TraceError { at: Place::Byte(byte), .. }) => assert!(byte <= 8 && at < 10),
            Err(error) => panic!("{error}"),
        }
    }
    let mut newer = bytes;
    newer[8] = 3;
    let error = read(&newer).unwrap_err().to_string();
    assert!(error.contains("byte 8") && error.contains("version 3"), "{error}");
    assert!(read(b"").is_err() && read(b"PNG").unwrap_err().to_string().contains("no trace"));
}

/// Closing may show that a write failed; what is appended behind it leaves a hole.
#[test]
fn zeros_are_a_cut_at_the_end_and_damage_before_it() {
    let (bytes, calls) = written();
    let at = bytes.len() as u64;
    for zeros in [1, 7, 8, 9, 5000] {
        let holed = [bytes.as_slice(), &vec![0; zeros]].concat();
        let trace = read(&holed).unwrap();
        assert_eq!((trace.end, &trace.calls), (End::Cut(at), &calls));
    }
    let trace = read(&end([bytes.as_slice(), &[0; 100]].concat())).unwrap();
    assert_eq!(trace.calls, calls);
    assert!(matches!(trace.end, End::Damaged(byte, _) if byte == at), "{:?}", trace.end);
    let twice = read(&end(end(bytes))).unwrap();
    assert!(matches!(twice.end, End::Damaged(_, why) if why.contains("end")), "{:?}", twice.end);
    assert_eq!(twice.calls, calls);
}

#[test]
fn what_makes_no_sense_does_not_cost_the_calls_beside_it() {
    let read_with = |fill: &dyn Fn(&mut Frame, &mut Source)| {
        let (mut bytes, mut frame) = (header().to_vec(), Frame::new());
        let mut source = Source::default();
        frame.file(0, &TraceFile::default());
        put(&mut frame, (0, &mut source), &[call(1, 0)]);
        fill(&mut frame, &mut source);
        put(&mut frame, (0, &mut source), &[call(2, 0)]);
        frame.take(&mut bytes);
        read(&bytes).unwrap()
    };
    let unordered = read_with(&|frame, _| frame.file(2, &TraceFile::default()));
    assert_eq!(unordered.calls, [call(1, 0)]);
    assert!(matches!(unordered.end, End::Damaged(_, why) if why.contains("in order")));
    let other = Call { file: 1, ..call(0, 0) };
    let late = Call { duration_ns: u64::MAX, ..call(5, 0) };
    for senseless in [other, late] {
        let trace = read_with(&|frame, source| put(frame, (0, source), &[senseless]));
        assert_eq!((trace.senseless, trace.calls), (1, vec![call(1, 0), call(2, 0)]));
    }
}

#[test]
fn what_a_call_moved() {
    assert_eq!(call(0, 8192).moved(), Some(8192..12288));
    assert_eq!(Call { result: 5000, ..call(0, 0) }.moved(), Some(0..4096), "at most all");
    let end = i64::MAX as u64;
    assert_eq!(Call { result: 10, ..call(0, end - 10) }.moved(), Some(end - 10..end));
    for none in [
        Call { result: 11, ..call(0, end - 10) },
        Call { result: 1, ..call(0, u64::MAX) },
        Call { result: 0, ..call(0, 0) },
        Call { result: -5, bytes: u64::MAX, ..call(0, i64::MIN.cast_unsigned()) },
    ] {
        assert_eq!(none.moved(), None, "{none:?}");
    }
}

#[test]
fn more_calls_than_fit_into_memory_are_refused() {
    let (bytes, _) = written();
    assert_eq!(read_most(&bytes, 6).unwrap().calls.len(), 6);
    let error = read_most(&bytes, 5).unwrap_err().to_string();
    assert!(error.contains("more than 5 calls"), "{error}");
    let fio = b"fio version 2 iolog\na add\na read 0 1\na read 1 1\n";
    assert_eq!(read_most(fio, 2).unwrap().calls.len(), 2);
    assert!(read_most(fio, 1).unwrap_err().to_string().starts_with("line 4, column 1: "));
}

#[test]
fn fio_traces_of_both_versions() {
    let two = "fio version 2 iolog\na add\na open\na read 0 4096\nb add\na wait 150 0\n\
               b write 4096 8192\na wait 100 0\na read 8192 4096\na datasync 0 0\na close\n";
    let trace = read(two.as_bytes()).unwrap();
    let seen: Vec<_> = trace.calls.iter().map(|call| (call.op, call.file, call.begin_ns)).collect();
    assert_eq!(seen, [(Op::Read, 0, 0), (Op::Write, 1, 150_000), (Op::Read, 0, 250_000)]);
    assert_eq!((trace.files[0].size, trace.files[1].size), (12288, 12288));
    assert_eq!(trace.other, OtherActions { syncs: 1, trims: 0 });
    let three = "fio version 3 iolog\n2 a add\n870 a open\n878 a write 0 16384\n\n888 a trim 0 1\n";
    let trace = read(three.as_bytes()).unwrap();
    assert_eq!((trace.format, trace.calls.len()), (Format::Fio(3), 1));
    assert_eq!((trace.calls[0].begin_ns, trace.other.trims), (878_000, 1));
}

#[test]
fn errors_of_fio_traces_have_line_and_column() {
    let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert!(error("fio version 9 iolog\n").starts_with("line 1, column 1: "));
    assert!(error("fio version 2 iolog\na read 0\n").starts_with("line 2, column 9: read without"));
    assert!(error("fio version 2 iolog\n\nä  read x 1\n").starts_with("line 3, column 9: 'x'"));
    assert!(error("fio version 2 iolog\na jump 0 1\n").contains("column 3: 'jump' is no action"));
    assert!(error("fio version 3 iolog\na b read 0 1\n").contains("column 1: 'a' is no whole"));
    assert!(error("fio version 3 iolog\n-7 a read 0 1\n").contains("column 1: '-7' is no whole"));
    assert!(error("fio version 2 iolog\na wait -5\n").contains("column 8: '-5' is no whole"));
    assert!(error("fio version 2 iolog\na wait\n").contains("column 7: wait without"));
    assert!(error("fio version 2 iolog\na read 9223372036854775807 1\n").contains("column 8: "));
    assert!(error("fio version 2 iolog\na b read 0 1\n").starts_with("line 2, column 12: '1'"));
    let bytes = [b"fio version 2 iolog\na".as_slice(), &[0xff]].concat();
    assert!(read(&bytes).unwrap_err().to_string().starts_with("line 2, column 2: "));
}

/// Any arguments and any result: programs pass what they like, and libraries answer it.
fn any_call() -> impl Strategy<Value = Call> {
    let within = prop_oneof![
        Just(Within::Thread),
        any::<u32>().prop_map(Within::Batch),
        any::<u32>().prop_map(Within::Stream)
    ];
    let number = || {
        prop_oneof![
            any::<u64>(),
            (0..65_u32).prop_map(|bits| u64::MAX.checked_shr(bits).unwrap_or(0))
        ]
    };
    let place = (number(), number());
    let times = (0..1_u64 << 62, 0..1_u64 << 62);
    let gpu = proptest::option::of(any::<u32>());
    (any::<bool>(), 0..3_u32, place, times, any::<u32>(), within, gpu, any::<i64>()).prop_map(
        |(write, file, (offset, bytes), (begin_ns, duration_ns), thread, within, gpu, result)| {
            let op = if write { Op::Write } else { Op::Read };
            Call { op, file, offset, bytes, result, begin_ns, duration_ns, thread, within, gpu }
        },
    )
}

proptest! {
    #[test]
    fn any_calls_come_back(calls in proptest::collection::vec(any_call(), 0..50)) {
        let (mut bytes, mut frame) = (header().to_vec(), Frame::new());
        let mut sources = [Source::default(); 2];
        (0..3).for_each(|number| frame.file(number, &TraceFile::default()));
        for (nth, call) in calls.iter().enumerate() {
            let (number, source) = if nth / 3 % 2 == 0 { (0, 0) } else { (9, 1) };
            put(&mut frame, (number, &mut sources[source]), std::slice::from_ref(call));
            if nth % 7 == 0 {
                frame.take(&mut bytes);
            }
        }
        frame.take(&mut bytes);
        prop_assert_eq!(read(&bytes).unwrap().calls, calls);
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        // Behind sound frame heads, so that records are reached.
        let mut bytes = header().to_vec();
        bytes.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&write::checksum(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        if let Err(TraceError { at: Place::Byte(byte), .. }) = read(&bytes) {
            prop_assert!(byte <= bytes.len() as u64);
        }
        let _ = read(&body);
        let _ = read(&[b"fio version 2 iolog\n".as_slice(), &body].concat());
    }
}
