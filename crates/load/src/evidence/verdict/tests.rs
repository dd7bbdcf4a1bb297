use gpuio_record::{Assessment, Route, Source};
use proptest::prelude::*;

use super::*;

const REQUESTED: Requested = Requested {
    kind: PathKind::User,
    direct: true,
    either: false,
    direct_actual: true,
    flow: Flow::Read,
    bytes: 1 << 20,
    shortfall: 0,
    holes: Holes { absent: 0, range: 0 },
    software_gpu: false,
};
const BUFFERED: Requested = Requested { direct: false, direct_actual: false, ..REQUESTED };
const HOST_LEGS: Observed = Observed::Legs { host: true, gpu: false };
const RING_LEGS: Observed = Observed::Legs { host: true, gpu: true };
const STILL: Observed = Observed::Cache(Growth::Still { resident: true });
const EMPTY: Observed = Observed::Cache(Growth::Still { resident: false });
const GREW: Observed = Observed::Cache(Growth::Grew { bytes: REQUESTED.bytes });
/// The page cache took in what storage delivered, a fiftieth of what was read.
const FIRST_PASS: Observed = Observed::Cache(Growth::Grew { bytes: REQUESTED.bytes / 50 });
const ALL: Observed = Observed::Storage(Share::All);
const PART: Observed = Observed::Storage(Share::Part);
const LITTLE: Observed = Observed::Storage(Share::Little);
const NONE: Observed = Observed::Nothing;

fn all_observed(
    legs: Observed,
    process: Observed,
    block: Observed,
    cache: Observed,
) -> [(&'static str, Observed); 4] {
    [("own", legs), ("process_io", process), ("block", block), ("page_cache", cache)]
}

/// The words that are shown with the number.
fn words(
    requested: &Requested,
    legs: Observed,
    process: Observed,
    block: Observed,
    cache: Observed,
) -> String {
    let verdicts = of_direction(requested, &all_observed(legs, process, block, cache));
    together(vec![(requested.flow, verdicts)], false).0.words
}

#[test]
fn reads_with_o_direct_into_host_memory() {
    let of = |process, block, cache| words(&REQUESTED, HOST_LEGS, process, block, cache);
    assert_eq!(of(ALL, ALL, EMPTY), "direct");
    assert_eq!(of(ALL, ALL, STILL), "direct", "what lay in the cache before stayed there");
    assert_eq!(of(ALL, NONE, EMPTY), "direct", "a device that others use too is inconclusive");
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

/// A path that itself takes the page cache or `O_DIRECT` goes as requested by either.
#[test]
fn a_path_that_takes_either_goes_as_requested_by_both() {
    let ring = Requested { kind: PathKind::Ring, ..BUFFERED };
    let either = Requested { either: true, ..ring };
    let by_core = |one: Requested| Requested { direct_actual: true, ..one };
    let of = |requested: &Requested, storage, cache| {
        let all = all_observed(RING_LEGS, storage, storage, cache);
        of_direction(requested, &all).as_requested
    };
    assert!(!of(&by_core(ring), ALL, EMPTY));
    assert!(of(&by_core(either), ALL, EMPTY));
    for (storage, cache) in [(ALL, GREW), (PART, STILL), (LITTLE, STILL)] {
        assert!(of(&either, storage, cache) && of(&ring, storage, cache));
    }
    let direct = Requested { kind: PathKind::Ring, ..REQUESTED };
    let by_either = Requested { either: true, ..direct };
    assert!(of(&by_either, LITTLE, STILL) && !of(&direct, LITTLE, STILL));
    assert!(!of(&either, NONE, NONE), "what is unknown is not as requested");
}

/// Bytes that no device holds are nobody's: neither storage's nor the page cache's.
#[test]
fn reads_of_holes_come_from_no_device() {
    let holes = |absent| Requested { holes: Holes { absent, range: 64 << 20 }, ..REQUESTED };
    let sentence = |requested: &Requested, process, cache| {
        let verdicts = of_direction(requested, &all_observed(HOST_LEGS, process, process, cache));
        together(vec![(requested.flow, verdicts)], false)
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
        let through = Requested { direct: false, direct_actual: false, ..holes(63 << 20) };
        assert_eq!(sentence(&through, LITTLE, cache).0.source, Source::Holes);
    }
    let ring = Requested { kind: PathKind::Ring, ..holes(64 << 20) };
    assert_eq!(words(&ring, RING_LEGS, LITTLE, LITTLE, EMPTY), "bounce (host), from holes");
    let write = Requested { flow: Flow::Write, ..holes(64 << 20) };
    assert_eq!(words(&write, HOST_LEGS, ALL, ALL, EMPTY), "direct", "writes fill them");
}

/// Counters within a tenth stand for all bytes, and no text calls nine tenths all of them.
#[test]
fn a_tolerance_is_printed_and_holes_within_it_are_read() {
    let of = |requested: &Requested, cache| {
        let found = all_observed(HOST_LEGS, ALL, ALL, cache);
        together(vec![(requested.flow, of_direction(requested, &found))], false)
    };
    let short = Requested { shortfall: REQUESTED.bytes / 11, ..REQUESTED };
    let (verdict, as_requested, text) = of(&short, EMPTY);
    assert_eq!((verdict.words.as_str(), as_requested), ("direct", true));
    assert!(text.contains("delivered at least 90.9 % of the bytes by"), "{text}");
    for cache in [EMPTY, STILL, GREW, NONE] {
        assert!(!of(&short, cache).2.contains("all bytes"), "{:?}", of(&short, cache));
    }
    let holes = Holes { absent: 11 << 20, range: 128 << 20 };
    let (verdict, as_requested, text) = of(&Requested { holes, ..short }, EMPTY);
    assert_eq!((verdict.words.as_str(), as_requested), ("mixed", false), "{text}");
    assert!(
        text.contains("90.9 % of the bytes by process_io and block; 11.0 MiB of 128"),
        "{text}"
    );
    let one_byte = Requested { shortfall: 1, ..REQUESTED };
    assert!(of(&one_byte, EMPTY).2.contains("at least 99.9 %"));
    let counts = |name: &str| (name == "process_io").then_some((90, 100));
    assert_eq!(shortfall(&all_observed(HOST_LEGS, ALL, PART, EMPTY), counts), 10);
    assert_eq!(shortfall(&all_observed(HOST_LEGS, PART, ALL, EMPTY), counts), 0, "it is no all");
}

#[test]
fn a_buffered_write_is_at_storage_at_most_as_the_device_counts() {
    let write = Requested { flow: Flow::Write, ..BUFFERED };
    let of = |requested: &Requested, block| {
        let found = all_observed(HOST_LEGS, NONE, block, GREW);
        together(vec![(requested.flow, of_direction(requested, &found))], false).2
    };
    for (share, most) in [(PART, "at most part of the bytes"), (ALL, "all bytes")] {
        let text = of(&write, share);
        let who = format!("{most} by block, which counts other programs too");
        assert!(text.contains(&who), "{text}");
        assert!(!of(&BUFFERED, share).contains("other programs"));
    }
}

#[test]
fn buffered_reads_and_writes() {
    let of = |process, block, cache| words(&BUFFERED, HOST_LEGS, process, block, cache);
    assert_eq!(of(ALL, ALL, GREW), "page cache, from storage");
    assert_eq!(of(LITTLE, LITTLE, STILL), "page cache");
    assert_eq!(of(PART, PART, GREW), "mixed");
    assert_eq!(of(LITTLE, NONE, GREW), "unknown", "bytes came past the counter");
    assert_eq!(of(LITTLE, LITTLE, FIRST_PASS), "page cache", "read again and again");
    let write = Requested { flow: Flow::Write, ..BUFFERED };
    let of = |block, cache| words(&write, HOST_LEGS, NONE, block, cache);
    assert_eq!(of(LITTLE, GREW), "page cache");
    assert_eq!(of(ALL, GREW), "page cache, to storage");
    assert_eq!(of(LITTLE, EMPTY), "unknown");
    assert_eq!(of(NONE, GREW), "unknown");
}

#[test]
fn paths_with_a_ring_bounce_in_host_memory() {
    let ring = Requested { kind: PathKind::Ring, ..REQUESTED };
    let of = |process, cache| words(&ring, RING_LEGS, process, NONE, cache);
    assert_eq!(of(ALL, EMPTY), "bounce (host)");
    assert_eq!(of(LITTLE, STILL), "bounce (host), from page cache");
    assert_eq!(of(PART, STILL), "bounce (host), mixed");
    assert_eq!(of(NONE, STILL), "bounce (host), source unknown");
    let cached = Requested { kind: PathKind::Ring, ..BUFFERED };
    assert_eq!(words(&cached, RING_LEGS, ALL, ALL, GREW), "bounce (host), through page cache");
    let write = Requested { flow: Flow::Write, ..cached };
    assert_eq!(words(&write, RING_LEGS, NONE, LITTLE, GREW), "bounce (host), to page cache");
    assert_eq!(words(&ring, HOST_LEGS, ALL, ALL, EMPTY), "unknown", "no GPU leg was observed");
}

#[test]
fn nothing_is_claimed_of_a_library() {
    let library = Requested { kind: PathKind::of("gds"), ..REQUESTED };
    for row in gpuio_io::path::PATHS {
        assert_eq!(
            PathKind::of(row.info.name) == PathKind::Foreign,
            row.info.uses_cufile(),
            "{}",
            row.info.name
        );
    }
    for nvidia_fs in [NONE, Observed::NvidiaFs(Share::All), Observed::NvidiaFs(Share::Little)] {
        let mut found = all_observed(NONE, ALL, ALL, EMPTY).to_vec();
        found.push(("nvidia_fs", nvidia_fs));
        let verdicts = of_direction(&library, &found);
        assert_eq!((verdicts.route, verdicts.source), (Route::Unknown, Source::Unknown));
        assert!(!verdicts.as_requested);
    }
    let assessed = |observed| assess(&library, observed);
    assert_eq!(assessed(Observed::NvidiaFs(Share::All)), Assessment::Supports);
    assert_eq!(
        assessed(Observed::NvidiaFs(Share::Little)),
        Assessment::Inconclusive,
        "peer-to-peer DMA"
    );
}

const HOST: Observed = Observed::Library(LibraryRoute::Host);
const BOTH: Observed = Observed::Library(LibraryRoute::Both);
const PAST: Observed = Observed::Library(LibraryRoute::Past { straight: false });
const STRAIGHT: Observed = Observed::Library(LibraryRoute::Past { straight: true });

/// A library's job whose bytes all came from storage, with these further evidence sources.
fn library(further: &[(&'static str, Observed)]) -> String {
    let requested = Requested { kind: PathKind::Foreign, ..REQUESTED };
    let mut found = all_observed(HOST_LEGS, ALL, ALL, EMPTY).to_vec();
    found.extend(further);
    together(vec![(requested.flow, of_direction(&requested, &found))], false).2
}

#[test]
fn a_library_s_own_word_is_believed_where_nobody_denies_it() {
    let is = |further: &[(&'static str, Observed)], words: &str| {
        let sentence = library(further);
        assert_eq!(sentence.split(':').next(), Some(words), "{sentence}");
    };
    let all = Observed::NvidiaFs(Share::All);
    is(&[("cufile_stats", HOST), ("cufile_properties", HOST)], "bounce (host)");
    is(&[("cufile_properties", HOST)], "bounce (host)");
    is(&[("cufile_stats", BOTH)], "mixed");
    is(&[("cufile_stats", STRAIGHT)], "direct");
    is(&[("cufile_stats", STRAIGHT), ("nvidia_fs", all)], "direct");
    is(&[("cufile_stats", PAST), ("nvidia_fs", all)], "unknown");
    is(&[("cufile_stats", HOST), ("nvidia_fs", all)], "unknown");
    is(&[("cufile_stats", STRAIGHT), ("cufile_properties", HOST)], "unknown");
    is(&[("cufile_stats", BOTH), ("cufile_properties", HOST)], "unknown");
    is(&[("cufile_stats", HOST), ("gpu_pcie", Observed::Reached(false))], "unknown");
    is(&[("cufile_stats", HOST), ("gpu_pcie", Observed::Reached(true))], "bounce (host)");
    let sentence = library(&[("cufile_stats", HOST), ("nvidia_fs", all)]);
    assert!(sentence.contains("through host memory by cufile_stats"), "{sentence}");
    assert!(sentence.contains("past it by nvidia_fs"), "{sentence}");
}

#[test]
fn straight_past_host_memory_needs_storage_that_delivered() {
    let requested = Requested { kind: PathKind::Foreign, ..REQUESTED };
    let mut found = all_observed(HOST_LEGS, LITTLE, LITTLE, STILL).to_vec();
    found.push(("cufile_stats", STRAIGHT));
    assert_eq!(of_direction(&requested, &found).route, Route::Unknown);
    found[3] = ("cufile_stats", HOST);
    let verdicts = of_direction(&requested, &found);
    assert_eq!(verdicts.route, Route::Unknown, "{verdicts:?}");
    found.truncate(3);
    found.extend([("page_cache", STILL), ("cufile_stats", HOST)]);
    let words = together(vec![(requested.flow, of_direction(&requested, &found))], false).0.words;
    assert_eq!(words, "bounce (host), from page cache");
}

#[test]
fn a_path_through_another_gpu_names_it() {
    let relay = Requested { kind: PathKind::of("routed"), ..REQUESTED };
    let of = |legs, through: Option<Observed>| {
        let mut found = all_observed(legs, ALL, ALL, EMPTY).to_vec();
        found.extend(through.map(|observed| ("own", observed)));
        together(vec![(relay.flow, of_direction(&relay, &found))], false)
    };
    let through = |share| Some(Observed::Relayed { gpu: 2, share });
    let (verdict, as_requested, sentence) = of(RING_LEGS, through(Share::All));
    assert_eq!((verdict.words.as_str(), as_requested), ("bounce (GPU 2)", true), "{sentence}");
    assert!(sentence.contains("a host buffer, GPU 2 and GPU memory"), "{sentence}");
    assert_eq!(of(RING_LEGS, through(Share::Part)).0.words, "unknown");
    assert_eq!(of(RING_LEGS, None).0.words, "unknown");
    assert_eq!(of(HOST_LEGS, through(Share::All)).0.words, "unknown");
    assert_eq!(assess(&relay, through(Share::All).unwrap()), Assessment::Supports);
    assert_eq!(assess(&relay, through(Share::Little).unwrap()), Assessment::Contradicts);
    assert_eq!(assess(&REQUESTED, through(Share::All).unwrap()), Assessment::Inconclusive);
}

#[test]
fn a_gpu_that_reads_the_page_cache_itself_has_a_verdict_of_its_own() {
    let mapped = Requested { kind: PathKind::of("mapped"), ..BUFFERED };
    let of = |own, storage, link| {
        let mut found = all_observed(own, storage, NONE, STILL).to_vec();
        found.push(("gpu_pcie", link));
        together(vec![(mapped.flow, of_direction(&mapped, &found))], false)
    };
    let own = Observed::FromMapping(true);
    let (verdict, as_requested, sentence) = of(own, LITTLE, NONE);
    assert_eq!(verdict.words, "from page cache, no host copy");
    assert_eq!((verdict.route, verdict.source), (Route::Mapped, Source::PageCache));
    assert!(as_requested && sentence.contains("no gpuio buffer"), "{sentence}");
    // Pinned pages need no counter of storage, and others may read from there.
    for storage in [NONE, PART, ALL] {
        assert_eq!(of(own, storage, Observed::Reached(true)).0, verdict);
    }
    assert_eq!(of(own, LITTLE, Observed::Reached(false)).0.words, "unknown");
    assert_eq!(of(Observed::FromMapping(false), LITTLE, NONE).0.words, "unknown");
    assert_eq!(of(RING_LEGS, LITTLE, NONE).0.words, "unknown");
    assert_eq!(of(NONE, LITTLE, NONE).0.words, "unknown");
    let written = Requested { flow: Flow::Write, ..mapped };
    let found = all_observed(own, LITTLE, NONE, STILL);
    let (verdict, as_requested, sentence) =
        together(vec![(Flow::Write, of_direction(&written, &found))], false);
    assert_eq!((verdict.words.as_str(), as_requested), ("to page cache, no host copy", true));
    assert!(sentence.contains("straight into pinned"), "{sentence}");
    assert_eq!(assess(&mapped, own), Assessment::Supports);
    assert_eq!(assess(&mapped, Observed::FromMapping(false)), Assessment::Contradicts);
    assert_eq!(assess(&mapped, RING_LEGS), Assessment::Contradicts);
    assert_eq!(assess(&BUFFERED, own), Assessment::Contradicts);
}

#[test]
fn a_link_that_carried_nothing_denies_a_gpu_leg() {
    let ring = Requested { kind: PathKind::Ring, ..REQUESTED };
    let mut found = all_observed(RING_LEGS, ALL, ALL, EMPTY).to_vec();
    found.push(("gpu_pcie", Observed::Reached(false)));
    let verdicts = of_direction(&ring, &found);
    assert_eq!(verdicts.route, Route::Unknown);
    assert!(verdicts.because.contains("evidence disagrees"), "{}", verdicts.because);
    found[4].1 = Observed::Reached(true);
    assert_eq!(of_direction(&ring, &found).route, Route::BounceHost);
    assert_eq!(assess(&ring, Observed::Reached(true)), Assessment::Supports);
    assert_eq!(assess(&REQUESTED, Observed::Reached(false)), Assessment::Inconclusive);
}

#[test]
fn directions_that_took_different_paths_are_mixed() {
    let verdicts = |flow, observed| {
        let requested = Requested { kind: PathKind::Foreign, flow, ..REQUESTED };
        let mut found = all_observed(HOST_LEGS, ALL, ALL, EMPTY).to_vec();
        found.push(("cufile_stats", observed));
        (flow, of_direction(&requested, &found))
    };
    let (verdict, as_requested, sentence) =
        together(vec![verdicts(Flow::Read, STRAIGHT), verdicts(Flow::Write, HOST)], false);
    assert_eq!((verdict.words.as_str(), as_requested), ("mixed", false), "{sentence}");
    assert_eq!(verdict.route, Route::Mixed);
}

#[test]
fn bytes_without_a_file_leg_or_without_our_count_are_unknown() {
    let lost = Observed::Legs { host: false, gpu: false };
    assert_eq!(words(&REQUESTED, lost, ALL, ALL, EMPTY), "unknown");
    assert_eq!(words(&REQUESTED, NONE, ALL, ALL, EMPTY), "unknown");
    assert_eq!(words(&REQUESTED, RING_LEGS, ALL, ALL, EMPTY), "unknown");
}

#[test]
fn both_directions_of_a_mixed_job() {
    let verdicts = |requested: &Requested, process, block, cache| {
        (requested.flow, of_direction(requested, &all_observed(HOST_LEGS, process, block, cache)))
    };
    let read = verdicts(&REQUESTED, ALL, ALL, EMPTY);
    let write = verdicts(&Requested { flow: Flow::Write, ..REQUESTED }, ALL, ALL, EMPTY);
    let (verdict, as_requested, sentence) = together(vec![read.clone(), write.clone()], true);
    assert_eq!((verdict.words.as_str(), as_requested), ("direct", true));
    assert!(sentence.contains("reads: ") && sentence.contains("; writes: "), "{sentence}");
    assert!(sentence.ends_with("(counters cover all jobs of the group)."), "{sentence}");
    let cached = verdicts(&Requested { flow: Flow::Write, ..REQUESTED }, LITTLE, LITTLE, STILL);
    let (verdict, as_requested, _) = together(vec![read.clone(), cached], false);
    assert_eq!((verdict.words.as_str(), as_requested), ("mixed", false));
    let blind = verdicts(&Requested { flow: Flow::Write, ..REQUESTED }, NONE, NONE, EMPTY);
    assert_eq!(together(vec![read, blind], false).0.words, "unknown");
    assert_eq!(together(Vec::new(), false).0.words, "unknown");
}

#[test]
fn evidence_supports_or_contradicts_what_was_requested() {
    let of = |requested: &Requested, observed| assess(requested, observed);
    assert_eq!(
        [ALL, PART, LITTLE].map(|observed| of(&REQUESTED, observed)),
        [Assessment::Supports, Assessment::Contradicts, Assessment::Contradicts]
    );
    assert_eq!(
        [ALL, PART, LITTLE].map(|observed| of(&BUFFERED, observed)),
        [Assessment::Inconclusive, Assessment::Supports, Assessment::Supports]
    );
    assert_eq!(
        [STILL, EMPTY, GREW].map(|observed| of(&REQUESTED, observed)),
        [Assessment::Supports, Assessment::Supports, Assessment::Contradicts]
    );
    assert_eq!(
        [STILL, EMPTY, GREW].map(|observed| of(&BUFFERED, observed)),
        [Assessment::Supports, Assessment::Inconclusive, Assessment::Supports]
    );
    assert_eq!(of(&REQUESTED, HOST_LEGS), Assessment::Supports);
    assert_eq!(of(&REQUESTED, RING_LEGS), Assessment::Contradicts);
    assert_eq!(of(&REQUESTED, NONE), Assessment::Inconclusive);
}

fn any_share() -> impl Strategy<Value = Observed> {
    prop_oneof![Just(NONE), Just(ALL), Just(PART), Just(LITTLE)]
}

fn any_report() -> impl Strategy<Value = Observed> {
    prop_oneof![Just(NONE), Just(HOST), Just(BOTH), Just(PAST), Just(STRAIGHT)]
}

/// The possible reports of evidence sources of the route to the GPU: two of the library, nvidia-fs,
/// its own counters of a path through another GPU, and the link.
fn any_way() -> impl Strategy<Value = Vec<(&'static str, Observed)>> {
    let module = prop_oneof![Just(NONE), Just(Observed::NvidiaFs(Share::All))];
    let relayed = any_share().prop_map(|observed| match observed {
        Observed::Storage(share) => Observed::Relayed { gpu: 4, share },
        _ => NONE,
    });
    let link = prop_oneof![Just(NONE), any::<bool>().prop_map(Observed::Reached)];
    (any_report(), any_report(), module, relayed, link).prop_map(
        |(stats, can, module, via, link)| {
            vec![
                ("cufile_stats", stats),
                ("cufile_properties", can),
                ("nvidia_fs", module),
                ("own", via),
                ("gpu_pcie", link),
            ]
        },
    )
}

fn any_request() -> impl Strategy<Value = Requested> {
    let kind = prop_oneof![
        Just(PathKind::User),
        Just(PathKind::Ring),
        Just(PathKind::Relay),
        Just(PathKind::Mapped),
        Just(PathKind::Foreign)
    ];
    (kind, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(kind, direct, direct_actual, read)| {
            let flow = if read { Flow::Read } else { Flow::Write };
            Requested { kind, direct, direct_actual, flow, ..REQUESTED }
        },
    )
}

/// Whether a route to or from GPU memory is one that these evidence sources name and none denies.
fn supported(
    requested: &Requested,
    route: Route,
    legs: Observed,
    ways: &[(&str, Observed)],
) -> bool {
    let observation = |observed: Observed| ways.iter().any(|(_, other)| *other == observed);
    let past =
        observation(PAST) || observation(STRAIGHT) || observation(Observed::NvidiaFs(Share::All));
    let library =
        requested.kind == PathKind::Foreign && matches!(legs, Observed::Legs { host: true, .. });
    let missed = observation(Observed::Reached(false)) && requested.kind != PathKind::User;
    let named = match route {
        Route::Direct if requested.kind == PathKind::User => legs == HOST_LEGS,
        Route::Direct => {
            library && observation(STRAIGHT) && !observation(HOST) && !observation(BOTH)
        }
        Route::HostMemory => requested.kind == PathKind::User && legs == HOST_LEGS,
        Route::BounceHost if requested.kind == PathKind::Ring => legs == RING_LEGS,
        Route::BounceHost => library && observation(HOST) && !past && !observation(BOTH),
        Route::Mixed => library && observation(BOTH) && !past && !observation(HOST),
        Route::BounceGpu { gpu } => {
            let through = observation(Observed::Relayed { gpu, share: Share::All });
            requested.kind == PathKind::Relay && legs == RING_LEGS && through
        }
        Route::Mapped => requested.kind == PathKind::Mapped && legs == Observed::FromMapping(true),
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
    /// A verdict names nothing that no evidence source observed, and nothing that an evidence
    /// source denies.
    #[test]
    fn a_verdict_claims_no_more_than_the_evidence_supports(
        requested in any_request(),
        host in any::<bool>(), gpu in any::<bool>(), counted in any::<bool>(),
        storage in proptest::collection::vec(any_share(), 3),
        cache in prop_oneof![Just(NONE), Just(STILL), Just(EMPTY), Just(GREW), Just(FIRST_PASS)],
        ways in any_way(),
    ) {
        let legs = match (counted, requested.kind) {
            (false, _) => NONE,
            (true, PathKind::Mapped) => Observed::FromMapping(host),
            (true, _) => Observed::Legs { host, gpu },
        };
        let names = ["process_io", "block", "nfs"];
        let mut found: Vec<(&str, Observed)> = names.into_iter().zip(storage.clone()).collect();
        found.extend([("own", legs), ("page_cache", cache)]);
        found.extend(ways.clone());
        let verdicts = of_direction(&requested, &found);
        let known: Vec<Observed> = storage.into_iter().filter(|one| *one != NONE).collect();
        let only = |one: Observed| !known.is_empty() && known.iter().all(|other| *other == one);
        match verdicts.source {
            Source::Storage => {
                prop_assert!(only(ALL) && requested.direct_actual);
                prop_assert!(matches!(cache, STILL | EMPTY));
            }
            Source::StorageThroughPageCache => prop_assert!(only(ALL) && !requested.direct_actual),
            // Pinned pages are in memory, whatever others move.
            Source::PageCache if requested.kind == PathKind::Mapped => {
                prop_assert_eq!(verdicts.route, Route::Mapped);
            }
            Source::PageCache => {
                prop_assert!(only(LITTLE) && cache != EMPTY);
                prop_assert!(requested.flow == Flow::Write || cache != GREW);
            }
            Source::Mixed => prop_assert!(only(PART) && cache != EMPTY),
            Source::Holes => prop_assert!(false, "there are none"),
            Source::Unknown => {}
        }
        prop_assert!(supported(&requested, verdicts.route, legs, &ways), "{verdicts:?}\n{found:?}");
        match verdicts.route {
            Route::Direct => prop_assert_eq!(verdicts.source, Source::Storage),
            Route::HostMemory => prop_assert_ne!(verdicts.source, Source::Unknown),
            Route::Unknown => prop_assert_eq!(verdicts.source, Source::Unknown),
            _ => {}
        }
        if verdicts.as_requested {
            let assess = |one: &Observed| assess(&requested, *one);
            let against = found.iter().any(|(_, one)| assess(one) == Assessment::Contradicts);
            prop_assert!(!against, "{found:?}");
        }
        let (verdict, _, sentence) = together(vec![(requested.flow, verdicts)], false);
        prop_assert!(sentence.starts_with(&verdict.words) && sentence.ends_with('.'));
    }
}
