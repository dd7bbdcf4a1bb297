use gpuio_record::{Assessment, Route, Source};
use proptest::prelude::*;

use super::super::Share;
use super::*;

const ASK: Ask = Ask {
    way: Way::User,
    direct: true,
    direct_actual: true,
    flow: Flow::Read,
    bytes: 1 << 20,
    holes: Holes { absent: 0, range: 0 },
    software_gpu: false,
};
const BUFFERED: Ask = Ask { direct: false, direct_actual: false, ..ASK };
const HOST_LEGS: Saw = Saw::Legs { host: true, gpu: false };
const RING_LEGS: Saw = Saw::Legs { host: true, gpu: true };
const STILL: Saw = Saw::Cache(Growth::Still { resident: true });
const EMPTY: Saw = Saw::Cache(Growth::Still { resident: false });
const GREW: Saw = Saw::Cache(Growth::Grew { bytes: ASK.bytes });
/// The page cache took in what storage delivered, a fiftieth of what was read.
const FIRST_PASS: Saw = Saw::Cache(Growth::Grew { bytes: ASK.bytes / 50 });
const ALL: Saw = Saw::Storage(Share::All);
const PART: Saw = Saw::Storage(Share::Part);
const LITTLE: Saw = Saw::Storage(Share::Little);
const NONE: Saw = Saw::Nothing;

fn saws(legs: Saw, process: Saw, block: Saw, cache: Saw) -> [(&'static str, Saw); 4] {
    [("own", legs), ("process_io", process), ("block", block), ("page_cache", cache)]
}

/// The words that stand beside the number.
fn words(ask: &Ask, legs: Saw, process: Saw, block: Saw, cache: Saw) -> String {
    let judged = judge(ask, &saws(legs, process, block, cache));
    together(vec![(ask.flow, judged)], false).0.words
}

#[test]
fn reads_with_o_direct_into_host_memory() {
    let of = |process, block, cache| words(&ASK, HOST_LEGS, process, block, cache);
    assert_eq!(of(ALL, ALL, EMPTY), "direct");
    assert_eq!(of(ALL, ALL, STILL), "direct", "what lay in the cache before stayed there");
    assert_eq!(of(ALL, NONE, EMPTY), "direct", "a device that others use too can't tell");
    assert_eq!(of(ALL, ALL, GREW), "unknown");
    assert_eq!(of(ALL, ALL, NONE), "unknown");
    assert_eq!(of(ALL, LITTLE, EMPTY), "unknown");
    assert_eq!(of(ALL, PART, EMPTY), "unknown");
    assert_eq!(of(LITTLE, LITTLE, STILL), "page cache");
    assert_eq!(of(LITTLE, NONE, STILL), "page cache", "tmpfs takes O_DIRECT and ignores it");
    assert_eq!(of(LITTLE, LITTLE, EMPTY), "unknown", "DAX moves bytes past both");
    assert_eq!(of(PART, PART, STILL), "mixed");
    assert_eq!(of(PART, PART, EMPTY), "unknown", "the rest was not in the cache either");
    assert_eq!(of(NONE, NONE, EMPTY), "unknown");
}

/// Bytes that no device holds are nobody's: neither storage's nor the page cache's.
#[test]
fn reads_of_holes_come_from_no_device() {
    let holes = |absent| Ask { holes: Holes { absent, range: 64 << 20 }, ..ASK };
    let sentence = |ask: &Ask, process, cache| {
        let judged = judge(ask, &saws(HOST_LEGS, process, process, cache));
        together(vec![(ask.flow, judged)], false)
    };
    let some = holes(12 << 20);
    let (verdict, as_requested, text) = sentence(&some, PART, EMPTY);
    assert_eq!((verdict.source, as_requested), (Source::Mixed, false));
    assert!(text.contains("12.0 MiB of 64.0 MiB are holes"), "{text}");
    assert!(!text.contains("page cache"), "{text}");
    assert_eq!(sentence(&some, LITTLE, EMPTY).0.source, Source::Unknown);
    assert_eq!(sentence(&some, LITTLE, STILL).0.source, Source::Mixed);
    assert_eq!(sentence(&some, ALL, EMPTY).0.words, "direct", "holes that were not met");
    for cache in [EMPTY, STILL, GREW, NONE] {
        let (verdict, as_requested, text) = sentence(&holes(64 << 20), LITTLE, cache);
        assert_eq!((verdict.words.as_str(), as_requested), ("holes, no device", false), "{text}");
        let through = Ask { direct: false, direct_actual: false, ..holes(63 << 20) };
        assert_eq!(sentence(&through, LITTLE, cache).0.source, Source::Holes);
    }
    let ring = Ask { way: Way::Ring, ..holes(64 << 20) };
    assert_eq!(words(&ring, RING_LEGS, LITTLE, LITTLE, EMPTY), "bounce (host), from holes");
    let write = Ask { flow: Flow::Write, ..holes(64 << 20) };
    assert_eq!(words(&write, HOST_LEGS, ALL, ALL, EMPTY), "direct", "writes fill them");
}

#[test]
fn buffered_reads_and_writes() {
    let of = |process, block, cache| words(&BUFFERED, HOST_LEGS, process, block, cache);
    assert_eq!(of(ALL, ALL, GREW), "page cache, from storage");
    assert_eq!(of(LITTLE, LITTLE, STILL), "page cache");
    assert_eq!(of(PART, PART, GREW), "mixed");
    assert_eq!(of(LITTLE, NONE, GREW), "unknown", "bytes came past the counter");
    assert_eq!(of(LITTLE, LITTLE, FIRST_PASS), "page cache", "read again and again");
    let write = Ask { flow: Flow::Write, ..BUFFERED };
    let of = |block, cache| words(&write, HOST_LEGS, NONE, block, cache);
    assert_eq!(of(LITTLE, GREW), "page cache");
    assert_eq!(of(ALL, GREW), "page cache, to storage");
    assert_eq!(of(LITTLE, EMPTY), "unknown");
    assert_eq!(of(NONE, GREW), "unknown");
}

#[test]
fn paths_with_a_ring_bounce_in_host_memory() {
    let ring = Ask { way: Way::Ring, ..ASK };
    let of = |process, cache| words(&ring, RING_LEGS, process, NONE, cache);
    assert_eq!(of(ALL, EMPTY), "bounce (host)");
    assert_eq!(of(LITTLE, STILL), "bounce (host), from page cache");
    assert_eq!(of(PART, STILL), "bounce (host), mixed");
    assert_eq!(of(NONE, STILL), "bounce (host), source unknown");
    let cached = Ask { way: Way::Ring, ..BUFFERED };
    assert_eq!(words(&cached, RING_LEGS, ALL, ALL, GREW), "bounce (host), through page cache");
    let write = Ask { flow: Flow::Write, ..cached };
    assert_eq!(words(&write, RING_LEGS, NONE, LITTLE, GREW), "bounce (host), to page cache");
    assert_eq!(words(&ring, HOST_LEGS, ALL, ALL, EMPTY), "unknown", "no GPU leg was seen");
}

#[test]
fn nothing_is_claimed_of_a_library() {
    let library = Ask { way: Way::of("gds"), ..ASK };
    for row in gpuio_io::path::PATHS {
        assert_eq!(Way::of(row.name) == Way::Library, !row.uses_engine(), "{}", row.name);
    }
    for nvidia_fs in [NONE, Saw::NvidiaFs(Share::All), Saw::NvidiaFs(Share::Little)] {
        let mut seen = saws(NONE, ALL, ALL, EMPTY).to_vec();
        seen.push(("nvidia_fs", nvidia_fs));
        let judged = judge(&library, &seen);
        assert_eq!((judged.route, judged.source), (Route::Unknown, Source::Unknown));
        assert!(!judged.as_requested);
    }
    let says = |saw| speaks(&library, saw);
    assert_eq!(says(Saw::NvidiaFs(Share::All)), Assessment::Supports);
    assert_eq!(says(Saw::NvidiaFs(Share::Little)), Assessment::Inconclusive, "peer-to-peer DMA");
}

const HOST: Saw = Saw::Library(Told::Host);
const BOTH: Saw = Saw::Library(Told::Both);
const PAST: Saw = Saw::Library(Told::Past { straight: false });
const STRAIGHT: Saw = Saw::Library(Told::Past { straight: true });

/// A library's job whose bytes all came from storage, with these further witnesses.
fn library(further: &[(&'static str, Saw)]) -> String {
    let ask = Ask { way: Way::Library, ..ASK };
    let mut seen = saws(HOST_LEGS, ALL, ALL, EMPTY).to_vec();
    seen.extend(further);
    together(vec![(ask.flow, judge(&ask, &seen))], false).2
}

#[test]
fn a_library_s_own_word_is_believed_where_nobody_denies_it() {
    let is = |further: &[(&'static str, Saw)], words: &str| {
        let sentence = library(further);
        assert_eq!(sentence.split(':').next(), Some(words), "{sentence}");
    };
    let all = Saw::NvidiaFs(Share::All);
    is(&[("cufile_stats", HOST), ("cufile_properties", HOST)], "bounce (host)");
    is(&[("cufile_properties", HOST)], "bounce (host)");
    is(&[("cufile_stats", BOTH)], "mixed");
    is(&[("cufile_stats", STRAIGHT)], "direct");
    is(&[("cufile_stats", STRAIGHT), ("nvidia_fs", all)], "direct");
    is(&[("cufile_stats", PAST), ("nvidia_fs", all)], "unknown");
    is(&[("cufile_stats", HOST), ("nvidia_fs", all)], "unknown");
    is(&[("cufile_stats", STRAIGHT), ("cufile_properties", HOST)], "unknown");
    is(&[("cufile_stats", BOTH), ("cufile_properties", HOST)], "unknown");
    is(&[("cufile_stats", HOST), ("gpu_pcie", Saw::Reached(false))], "unknown");
    is(&[("cufile_stats", HOST), ("gpu_pcie", Saw::Reached(true))], "bounce (host)");
    let sentence = library(&[("cufile_stats", HOST), ("nvidia_fs", all)]);
    assert!(sentence.contains("through host memory by cufile_stats"), "{sentence}");
    assert!(sentence.contains("past it by nvidia_fs"), "{sentence}");
}

#[test]
fn straight_past_host_memory_needs_storage_that_delivered() {
    let ask = Ask { way: Way::Library, ..ASK };
    let mut seen = saws(HOST_LEGS, LITTLE, LITTLE, STILL).to_vec();
    seen.push(("cufile_stats", STRAIGHT));
    assert_eq!(judge(&ask, &seen).route, Route::Unknown);
    seen[3] = ("cufile_stats", HOST);
    let judged = judge(&ask, &seen);
    assert_eq!(judged.route, Route::Unknown, "{judged:?}");
    seen.truncate(3);
    seen.extend([("page_cache", STILL), ("cufile_stats", HOST)]);
    let words = together(vec![(ask.flow, judge(&ask, &seen))], false).0.words;
    assert_eq!(words, "bounce (host), from page cache");
}

#[test]
fn a_path_through_another_gpu_names_it() {
    let relay = Ask { way: Way::of("routed"), ..ASK };
    let of = |legs, through: Option<Saw>| {
        let mut seen = saws(legs, ALL, ALL, EMPTY).to_vec();
        seen.extend(through.map(|saw| ("own", saw)));
        together(vec![(relay.flow, judge(&relay, &seen))], false)
    };
    let through = |share| Some(Saw::Relayed { gpu: 2, share });
    let (verdict, as_requested, sentence) = of(RING_LEGS, through(Share::All));
    assert_eq!((verdict.words.as_str(), as_requested), ("bounce (GPU 2)", true), "{sentence}");
    assert!(sentence.contains("a host buffer and GPU 2"), "{sentence}");
    assert_eq!(of(RING_LEGS, through(Share::Part)).0.words, "unknown");
    assert_eq!(of(RING_LEGS, None).0.words, "unknown");
    assert_eq!(of(HOST_LEGS, through(Share::All)).0.words, "unknown");
    assert_eq!(speaks(&relay, through(Share::All).unwrap()), Assessment::Supports);
    assert_eq!(speaks(&relay, through(Share::Little).unwrap()), Assessment::Contradicts);
    assert_eq!(speaks(&ASK, through(Share::All).unwrap()), Assessment::Inconclusive);
}

#[test]
fn a_link_that_carried_nothing_denies_a_gpu_leg() {
    let ring = Ask { way: Way::Ring, ..ASK };
    let mut seen = saws(RING_LEGS, ALL, ALL, EMPTY).to_vec();
    seen.push(("gpu_pcie", Saw::Reached(false)));
    let judged = judge(&ring, &seen);
    assert_eq!(judged.route, Route::Unknown);
    assert!(judged.because.contains("witnesses disagree"), "{}", judged.because);
    seen[4].1 = Saw::Reached(true);
    assert_eq!(judge(&ring, &seen).route, Route::BounceHost);
    assert_eq!(speaks(&ring, Saw::Reached(true)), Assessment::Supports);
    assert_eq!(speaks(&ASK, Saw::Reached(false)), Assessment::Inconclusive);
}

#[test]
fn directions_that_took_different_ways_are_mixed() {
    let judged = |flow, saw| {
        let ask = Ask { way: Way::Library, flow, ..ASK };
        let mut seen = saws(HOST_LEGS, ALL, ALL, EMPTY).to_vec();
        seen.push(("cufile_stats", saw));
        (flow, judge(&ask, &seen))
    };
    let (verdict, as_requested, sentence) =
        together(vec![judged(Flow::Read, STRAIGHT), judged(Flow::Write, HOST)], false);
    assert_eq!((verdict.words.as_str(), as_requested), ("mixed", false), "{sentence}");
    assert_eq!(verdict.route, Route::Mixed);
}

#[test]
fn bytes_without_a_file_leg_or_without_our_count_are_unknown() {
    let lost = Saw::Legs { host: false, gpu: false };
    assert_eq!(words(&ASK, lost, ALL, ALL, EMPTY), "unknown");
    assert_eq!(words(&ASK, NONE, ALL, ALL, EMPTY), "unknown");
    assert_eq!(words(&ASK, RING_LEGS, ALL, ALL, EMPTY), "unknown");
}

#[test]
fn both_directions_of_a_mixed_job() {
    let judged = |ask: &Ask, process, block, cache| {
        (ask.flow, judge(ask, &saws(HOST_LEGS, process, block, cache)))
    };
    let read = judged(&ASK, ALL, ALL, EMPTY);
    let write = judged(&Ask { flow: Flow::Write, ..ASK }, ALL, ALL, EMPTY);
    let (verdict, as_requested, sentence) = together(vec![read.clone(), write.clone()], true);
    assert_eq!((verdict.words.as_str(), as_requested), ("direct", true));
    assert!(sentence.contains("reads: ") && sentence.contains("; writes: "), "{sentence}");
    assert!(sentence.ends_with("(counters cover all jobs of the group)."), "{sentence}");
    let cached = judged(&Ask { flow: Flow::Write, ..ASK }, LITTLE, LITTLE, STILL);
    let (verdict, as_requested, _) = together(vec![read.clone(), cached], false);
    assert_eq!((verdict.words.as_str(), as_requested), ("mixed", false));
    let blind = judged(&Ask { flow: Flow::Write, ..ASK }, NONE, NONE, EMPTY);
    assert_eq!(together(vec![read, blind], false).0.words, "unknown");
    assert_eq!(together(Vec::new(), false).0.words, "unknown");
}

#[test]
fn witnesses_speak_for_and_against_what_was_requested() {
    let of = |ask: &Ask, saw| speaks(ask, saw);
    assert_eq!(
        [ALL, PART, LITTLE].map(|saw| of(&ASK, saw)),
        [Assessment::Supports, Assessment::Contradicts, Assessment::Contradicts]
    );
    assert_eq!(
        [ALL, PART, LITTLE].map(|saw| of(&BUFFERED, saw)),
        [Assessment::Inconclusive, Assessment::Supports, Assessment::Supports]
    );
    assert_eq!(
        [STILL, EMPTY, GREW].map(|saw| of(&ASK, saw)),
        [Assessment::Supports, Assessment::Supports, Assessment::Contradicts]
    );
    assert_eq!(
        [STILL, EMPTY, GREW].map(|saw| of(&BUFFERED, saw)),
        [Assessment::Supports, Assessment::Inconclusive, Assessment::Supports]
    );
    assert_eq!(of(&ASK, HOST_LEGS), Assessment::Supports);
    assert_eq!(of(&ASK, RING_LEGS), Assessment::Contradicts);
    assert_eq!(of(&ASK, NONE), Assessment::Inconclusive);
}

fn any_share() -> impl Strategy<Value = Saw> {
    prop_oneof![Just(NONE), Just(ALL), Just(PART), Just(LITTLE)]
}

fn any_told() -> impl Strategy<Value = Saw> {
    prop_oneof![Just(NONE), Just(HOST), Just(BOTH), Just(PAST), Just(STRAIGHT)]
}

/// What witnesses of the way to the GPU may say: two of the library, nvidia-fs, its own counters
/// of a path through another GPU, and the link.
fn any_way() -> impl Strategy<Value = Vec<(&'static str, Saw)>> {
    let module = prop_oneof![Just(NONE), Just(Saw::NvidiaFs(Share::All))];
    let relayed = any_share().prop_map(|saw| match saw {
        Saw::Storage(share) => Saw::Relayed { gpu: 4, share },
        _ => NONE,
    });
    let link = prop_oneof![Just(NONE), any::<bool>().prop_map(Saw::Reached)];
    (any_told(), any_told(), module, relayed, link).prop_map(|(stats, can, module, via, link)| {
        vec![
            ("cufile_stats", stats),
            ("cufile_properties", can),
            ("nvidia_fs", module),
            ("own", via),
            ("gpu_pcie", link),
        ]
    })
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let way = prop_oneof![Just(Way::User), Just(Way::Ring), Just(Way::Relay), Just(Way::Library)];
    (way, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(way, direct, direct_actual, read)| {
            let flow = if read { Flow::Read } else { Flow::Write };
            Ask { way, direct, direct_actual, flow, ..ASK }
        },
    )
}

/// Whether a route to or from GPU memory is one that these witnesses name and none denies.
fn supported(ask: &Ask, route: Route, legs: Saw, ways: &[(&str, Saw)]) -> bool {
    let said = |saw: Saw| ways.iter().any(|(_, other)| *other == saw);
    let past = said(PAST) || said(STRAIGHT) || said(Saw::NvidiaFs(Share::All));
    let library = ask.way == Way::Library && matches!(legs, Saw::Legs { host: true, .. });
    let missed = said(Saw::Reached(false)) && ask.way != Way::User;
    let named = match route {
        Route::Direct if ask.way == Way::User => legs == HOST_LEGS,
        Route::Direct => library && said(STRAIGHT) && !said(HOST) && !said(BOTH),
        Route::HostMemory => ask.way == Way::User && legs == HOST_LEGS,
        Route::BounceHost if ask.way == Way::Ring => legs == RING_LEGS,
        Route::BounceHost => library && said(HOST) && !past && !said(BOTH),
        Route::Mixed => library && said(BOTH) && !past && !said(HOST),
        Route::BounceGpu { gpu } => {
            let through = said(Saw::Relayed { gpu, share: Share::All });
            ask.way == Way::Relay && legs == RING_LEGS && through
        }
        Route::Unknown => return true,
    };
    named && !missed
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 4000,
        ..ProptestConfig::default()
    })]
    /// A verdict names nothing that no witness saw, and nothing that a witness denies.
    #[test]
    fn a_verdict_claims_no_more_than_witnesses_support(
        ask in any_ask(),
        host in any::<bool>(), gpu in any::<bool>(), counted in any::<bool>(),
        storage in proptest::collection::vec(any_share(), 3),
        cache in prop_oneof![Just(NONE), Just(STILL), Just(EMPTY), Just(GREW), Just(FIRST_PASS)],
        ways in any_way(),
    ) {
        let legs = if counted { Saw::Legs { host, gpu } } else { NONE };
        let names = ["process_io", "block", "nfs"];
        let mut seen: Vec<(&str, Saw)> = names.into_iter().zip(storage.clone()).collect();
        seen.extend([("own", legs), ("page_cache", cache)]);
        seen.extend(ways.clone());
        let judged = judge(&ask, &seen);
        let told: Vec<Saw> = storage.into_iter().filter(|saw| *saw != NONE).collect();
        let only = |saw: Saw| !told.is_empty() && told.iter().all(|other| *other == saw);
        match judged.source {
            Source::Storage => {
                prop_assert!(only(ALL) && ask.direct_actual && matches!(cache, STILL | EMPTY));
            }
            Source::StorageThroughPageCache => prop_assert!(only(ALL) && !ask.direct_actual),
            Source::PageCache => {
                prop_assert!(only(LITTLE) && cache != EMPTY);
                prop_assert!(ask.flow == Flow::Write || cache != GREW);
            }
            Source::Mixed => prop_assert!(only(PART) && cache != EMPTY),
            Source::Holes => prop_assert!(false, "there are none"),
            Source::Unknown => {}
        }
        prop_assert!(supported(&ask, judged.route, legs, &ways), "{judged:?}\n{seen:?}");
        match judged.route {
            Route::Direct => prop_assert_eq!(judged.source, Source::Storage),
            Route::HostMemory => prop_assert_ne!(judged.source, Source::Unknown),
            Route::Unknown => prop_assert_eq!(judged.source, Source::Unknown),
            _ => {}
        }
        if judged.as_requested {
            let against = seen.iter().any(|(_, saw)| speaks(&ask, *saw) == Assessment::Contradicts);
            prop_assert!(!against, "{seen:?}");
        }
        let (verdict, _, sentence) = together(vec![(ask.flow, judged)], false);
        prop_assert!(sentence.starts_with(&verdict.words) && sentence.ends_with('.'));
    }
}
