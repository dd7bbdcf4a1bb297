use gpuio_base::catalog::Op;
use gpuio_base::trace::{Call, End, Format, Holes, OtherActions, Trace, TraceFile, Within};
use gpuio_record::{RecordedLatency, ReplayOrder};

use super::{Pause, ReplayFile, Script, Since, Step, missing};

/// A read of a page at page `at`, from `begin` to `end`.
fn call(thread: u32, at: u64, begin: u64, end: u64) -> Call {
    Call {
        offset: at * 4096,
        bytes: 4096,
        result: 4096,
        begin_ns: begin,
        duration_ns: end - begin,
        thread,
        ..Call::NONE
    }
}

fn trace(calls: Vec<Call>) -> Trace {
    Trace {
        format: Format::Gpuio(1),
        program: Some("test".to_owned()),
        began_unix_ns: 0,
        files: vec![TraceFile { size: 1 << 20, ..TraceFile::default() }],
        calls,
        lost: 0,
        senseless: 0,
        end: End::Whole,
        other: OtherActions::default(),
    }
}

fn script(calls: Vec<Call>, order: ReplayOrder) -> Script {
    Script::of(&trace(calls), order).unwrap()
}

fn afters(script: &Script) -> Vec<Vec<u64>> {
    script.lanes.iter().map(|lane| lane.steps.iter().map(|step| step.after).collect()).collect()
}

#[test]
fn a_call_waits_for_all_that_had_ended() {
    let calls = || {
        vec![
            call(0, 0, 100, 200),
            call(1, 1, 150, 400),
            call(0, 2, 250, 300),
            // Both threads' calls are over.
            call(0, 3, 450, 500),
        ]
    };
    let observed = script(calls(), ReplayOrder::Observed);
    assert_eq!(afters(&observed), [vec![0, 1, 3], vec![0]]);
    let places: Vec<u64> = observed.lanes[0].steps.iter().map(|step| step.place).collect();
    assert_eq!((places, observed.lanes[1].steps[0].place), (vec![0, 1, 3], 2));
    assert_eq!((observed.orders.clone(), observed.concurrent()), (vec![4], 1));
    let own = script(calls(), ReplayOrder::Threads);
    assert_eq!((afters(&own), own.orders), (vec![vec![0, 1, 2], vec![0]], vec![3, 1]));
    assert_eq!((observed.recorded_ns, observed.read_bytes, observed.calls), (400, 16384, 4));
    // From 100 to 400 some call was under way, and from 450 to 500.
    let recorded = observed.recorded_calls.unwrap();
    let latency = RecordedLatency { p50_ns: 50, p99_ns: None };
    assert_eq!((recorded.in_calls_ns, recorded.gpu_bytes), (350, 0));
    assert_eq!((recorded.read, recorded.write), (Some(latency), None));
    let on_gpu = Call { gpu: Some(0), op: Op::Write, ..call(0, 9, 100, 200) };
    let both = script([calls(), vec![on_gpu]].concat(), ReplayOrder::Observed);
    let recorded = both.recorded_calls.unwrap();
    assert_eq!((recorded.in_calls_ns, recorded.gpu_bytes), (350, 4096));
    assert_eq!(recorded.write.map(|write| write.p50_ns), Some(100));
    let pauses: Vec<Pause> = observed.lanes[0].steps.iter().map(|step| step.pause).collect();
    let end = |ns| Pause { since: Since::End, ns };
    assert_eq!(pauses, [Pause { since: Since::Start, ns: 0 }, end(50), end(150)]);
    assert_eq!(observed.lanes[1].steps[0].pause, Pause { since: Since::Start, ns: 50 });
}

#[test]
fn entries_of_a_batch_start_together_and_a_stream_goes_on_in_order() {
    let within = |within, one: Call| Call { within, ..one };
    let batch = Within::Batch(0);
    let stream = Within::Stream(7);
    let script = script(
        vec![
            within(batch, call(0, 0, 10, 90)),
            within(batch, call(0, 1, 10, 50)),
            within(batch, call(0, 2, 10, 70)),
            // Enqueued one behind the other, and moved one after another.
            within(stream, call(0, 3, 20, 60)),
            within(stream, call(0, 4, 25, 80)),
            call(0, 5, 75, 95),
        ],
        ReplayOrder::Observed,
    );
    let [threads, streams] = script.lanes.as_slice() else { panic!("{script:?}") };
    // 50, 60 and 70 were over when the last call was made.
    assert_eq!(threads.steps.iter().map(|step| step.after).collect::<Vec<_>>(), [0, 0, 0, 3]);
    assert_eq!((threads.concurrent, streams.concurrent), (3, 1));
    let [first, second] = streams.steps.as_slice() else { panic!("{script:?}") };
    assert_eq!((first.after, first.place, second.after), (0, 1, 2));
    assert_eq!(second.pause, Pause { since: Since::End, ns: 0 });
}

#[test]
fn threads_that_follow_one_another_share_a_lane() {
    let calls = (0..50).map(|n| call(n, u64::from(n), u64::from(n) * 100, u64::from(n) * 100 + 60));
    let script = script(calls.collect(), ReplayOrder::Threads);
    assert_eq!((script.lanes.len(), script.lanes[0].steps.len()), (1, 50));
    assert!(script.is_sequential());
}

#[test]
fn files_have_their_sizes_and_holes_and_what_moved_nothing_is_left_out() {
    let hole = |range| Holes::All(vec![range]);
    let file = |size, holes| TraceFile { size, holes, ..TraceFile::default() };
    let mut trace = trace(vec![
        Call { file: 2, ..call(0, 0, 0, 1) },
        // The last 10 bytes of the file: whole pages are read.
        Call { file: 2, result: 10, ..call(0, 1, 2, 3) },
        Call { file: 1, op: Op::Write, bytes: 100, result: 100, ..call(0, 3, 4, 5) },
        Call { file: 1, result: -5, ..call(0, 4, 6, 7) },
        Call { file: 1, result: 0, ..call(0, 4, 8, 9) },
    ]);
    trace.files = vec![
        file(1 << 30, Holes::Unknown),
        file(8192, hole(0..4096)),
        file(4106, hole(0..1 << 20)),
    ];
    let script = Script::of(&trace, ReplayOrder::Observed).unwrap();
    // The first is never used, and what is written has no holes.
    assert_eq!(
        script.files,
        [
            ReplayFile { bytes: 3 * 4096 + 100, holes: Vec::new(), is_written: true },
            ReplayFile {
                bytes: 8192,
                holes: std::iter::once(0..8192).collect(),
                is_written: false
            },
        ]
    );
    assert_eq!((script.left_out, script.calls, script.reads), (2, 3, 2));
    assert_eq!((script.written_bytes, script.alignment, script.hole_bytes()), (100, 4, 8192));
    let files: Vec<u32> = script.lanes[0].steps.iter().map(|step| step.file).collect();
    assert_eq!(files, [1, 1, 0]);
    let nothing = Trace { calls: vec![Call { result: 0, ..call(0, 0, 0, 1) }], ..trace };
    let error = Script::of(&nothing, ReplayOrder::Observed).unwrap_err().to_string();
    assert!(error.contains("1 that moved none"), "{error}");
}

#[test]
fn fio_traces_go_on_by_their_times() {
    let text = "fio version 3 iolog\n0 a add\n1 a read 0 4096\n5 a write 4096 4096\n9 a datasync\n";
    let trace = gpuio_base::trace::read(text.as_bytes()).unwrap();
    let script = Script::of(&trace, ReplayOrder::Observed).unwrap();
    let [lane] = script.lanes.as_slice() else { panic!("{script:?}") };
    let pauses: Vec<Pause> = lane.steps.iter().map(|step| step.pause).collect();
    assert_eq!(
        pauses,
        [Pause { since: Since::Start, ns: 0 }, Pause { since: Since::Begin, ns: 4000 }]
    );
    assert!(lane.steps.iter().all(|step: &Step| step.after == 0));
    assert_eq!((script.recorded_ns, lane.concurrent), (0, 1));
    assert!(missing(&trace).unwrap().contains("1 sync"));
}

#[test]
fn what_a_trace_lacks_is_said() {
    let read = trace(vec![call(0, 0, 1, 2)]);
    assert_eq!(missing(&read), None);
    let lacking = Trace { lost: 3, senseless: 2, end: End::Damaged(17, "bad"), ..read };
    let said = missing(&lacking).unwrap();
    let parts = ["damaged at byte 17 (bad)", "3 calls were not recorded", "2 calls of no known"];
    assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("fast"), "{said}");
}

/// It moved bytes up to the largest offset of a file: none of it is behind.
#[test]
fn a_call_at_the_largest_offset_keeps_to_it() {
    let end = i64::MAX.cast_unsigned();
    let offset = end - 10;
    let far = Call { offset, bytes: 4096, result: 3, ..call(0, 0, 3, 4) };
    let past = Call { result: 11, ..far };
    let script = script(vec![call(0, 0, 1, 2), far, past], ReplayOrder::Observed);
    assert_eq!((script.lanes[0].steps[1].bytes, script.files[0].bytes), (10, end));
    assert_eq!((script.calls, script.left_out), (2, 1));
}
