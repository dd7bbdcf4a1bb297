use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use gpuio_record::Zone;

const K: u64 = 1024;
const TIB: u64 = 1 << 40;

fn one(bytes: u64) -> Vec<BlockShare> {
    vec![BlockShare { min_bytes: bytes, max_bytes: bytes, step_bytes: 0, percent: 100 }]
}

fn random(distribution: Distribution, coverage: bool) -> Order {
    Order::Random { distribution, coverage }
}

fn config(order: Order, block: u64, length: u64) -> SequenceConfig {
    SequenceConfig {
        order,
        follow: None,
        blocks: one(block),
        write_blocks: Vec::new(),
        align_bytes: block,
        skew_bytes: 0,
        unit_bytes: 1,
        read_percent: 100,
        regions: vec![RegionSpan { file: 0, offset: 0, length }],
        stripe: None,
        in_turn: false,
        short_regions: false,
        seed: 42,
        passes: None,
    }
}

fn sequence(config: &SequenceConfig) -> BlockSequence {
    BlockSequence::new(config).expect("the configuration is good")
}

fn all(config: &SequenceConfig) -> Vec<Block> {
    let mut sequence = sequence(config);
    std::iter::from_fn(move || sequence.next()).collect()
}

fn some(config: &SequenceConfig, count: usize) -> Vec<Block> {
    let mut sequence = sequence(config);
    std::iter::from_fn(move || sequence.next()).take(count).collect()
}

#[test]
fn sequential_goes_through_the_regions_and_ends() {
    let mut config = config(Order::Sequential, 4096, 10_000);
    config.regions.push(RegionSpan { file: 3, offset: 8192, length: 4096 });
    config.passes = Some(2);
    let pass = [(0, 0, 4096), (0, 4096, 4096), (0, 8192, 1808), (3, 8192, 4096)];
    let expected: Vec<_> = pass.iter().chain(&pass).copied().collect();
    let found: Vec<_> = all(&config).iter().map(|b| (b.file, b.offset, b.len)).collect();
    assert_eq!(found, expected);
    let mut sequence = sequence(&config);
    while sequence.next().is_some() {}
    assert_eq!(sequence.next(), None, "the end is final");
}

#[test]
fn a_tail_below_the_unit_is_left_out() {
    let mut config = config(Order::Sequential, 4096, 10_000);
    config.unit_bytes = 512;
    config.passes = Some(1);
    let lens: Vec<_> = all(&config).iter().map(|block| block.len).collect();
    assert_eq!(lens, [4096, 4096, 1536]);
}

#[test]
fn skew_moves_offsets_and_keeps_inside() {
    for order in [Order::Sequential, random(Distribution::Uniform, true)] {
        let mut config = config(order, 4096, 16 * K);
        config.skew_bytes = 100;
        config.passes = Some(1);
        let mut blocks = all(&config);
        blocks.sort_by_key(|block| block.offset);
        let found: Vec<_> = blocks.iter().map(|block| (block.offset, block.len)).collect();
        assert_eq!(found, [(100, 4096), (4196, 4096), (8292, 4096), (12388, 3996)]);
    }
}

#[test]
fn random_without_coverage_uses_the_whole_align_grid() {
    let mut config = config(random(Distribution::Uniform, false), 4096, 8192);
    config.align_bytes = 512;
    let offsets: HashSet<_> = some(&config, 1000).iter().map(|block| block.offset).collect();
    assert_eq!(offsets, (0..=8).map(|k| k * 512).collect());
}

#[test]
fn random_passes_end_after_as_many_bytes_as_the_regions_hold() {
    let mut config = config(random(Distribution::Uniform, false), 4096, 64 * K);
    config.passes = Some(3);
    assert_eq!(all(&config).len(), 48);
}

#[test]
fn coverage_order_changes_from_lap_to_lap() {
    let mut config = config(random(Distribution::Uniform, true), 4096, 256 * 4096);
    config.passes = Some(2);
    let blocks = all(&config);
    assert_eq!(blocks.len(), 512);
    let (first, second) = blocks.split_at(256);
    assert_ne!(first, second);
    let neighbours = first.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 4096);
    assert!(neighbours.count() < 10, "a random order has about one neighbour in 256");
}

#[test]
fn every_position_of_a_permutation_is_equally_likely_over_seeds() {
    // 4000 seeds, 20 positions: chi-square with 19 degrees of freedom, 43.8 at a chance of 0.1 %.
    let mut seen = [0f64; 20];
    for seed in 0..4000 {
        seen[usize::try_from(permutation::Permutation::new(20, seed, 1).at(7)).unwrap()] += 1.0;
    }
    let chi: f64 = seen.iter().map(|count| (count - 200.0).powi(2) / 200.0).sum();
    assert!(chi < 43.8, "chi-square {chi}, {seen:?}");
}

#[test]
fn uniform_is_uniform() {
    // 64 positions, 63 degrees of freedom: 103.4 at a chance of 0.1 %.
    let config = config(random(Distribution::Uniform, false), 4096, 64 * 4096);
    let mut seen = [0f64; 64];
    for block in some(&config, 64_000) {
        seen[usize::try_from(block.offset / 4096).unwrap()] += 1.0;
    }
    let chi: f64 = seen.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi < 103.4, "chi-square {chi}");
}

fn counts_by_heat(distribution: Distribution, positions: u64, draws: usize) -> Vec<(u64, usize)> {
    let config = config(random(distribution, false), 4096, positions * 4096);
    let mut seen = BTreeMap::new();
    for block in some(&config, draws) {
        *seen.entry(block.offset / 4096).or_insert(0) += 1;
    }
    let mut seen: Vec<_> = seen.into_iter().collect();
    seen.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    seen
}

#[test]
fn zipf_gives_each_rank_its_share() {
    for theta in [0.5, 0.99, 1.0, 1.2, 2.5] {
        let draws = 200_000;
        let seen = counts_by_heat(Distribution::Zipf { theta }, 1000, draws);
        let weights: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
        for rank in [1u32, 2, 3] {
            let expected = draws as f64 * f64::from(rank).powf(-theta) / weights;
            let found = seen[rank as usize - 1].1 as f64;
            let sigma = expected.sqrt();
            assert!((found - expected).abs() < 5.0 * sigma, "{theta} {rank}: {found} {expected}");
        }
    }
}

#[test]
fn hot_blocks_are_not_neighbours() {
    for distribution in [Distribution::Zipf { theta: 1.2 }, Distribution::Pareto { h: 0.2 }] {
        let seen = counts_by_heat(distribution, 100_000, 100_000);
        let hottest: Vec<u64> = seen.iter().take(8).map(|(position, _)| *position).collect();
        for (index, position) in hottest.iter().enumerate() {
            for other in &hottest[..index] {
                assert!(position.abs_diff(*other) > 1, "{hottest:?}");
            }
        }
        assert!(hottest.iter().any(|position| *position > 50_000), "{hottest:?}");
    }
}

#[test]
fn pareto_gives_the_hot_share_its_ios() {
    for h in [0.1, 0.2, 0.3] {
        let draws = 200_000;
        let seen = counts_by_heat(Distribution::Pareto { h }, 1000, draws);
        let mut hot = 0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "100 to 300")]
        let share = (1000.0 * h) as usize;
        for (_, count) in &seen[..share] {
            hot += count;
        }
        let part = hot as f64 / draws as f64;
        assert!((part - (1.0 - h)).abs() < 0.01, "h {h}: {part}");
    }
}

#[test]
fn normal_has_its_mean_and_deviation() {
    let positions = 100_000u64;
    let order = random(Distribution::Normal { deviation_percent: 10.0 }, false);
    let blocks = some(&config(order, 4096, positions * 4096), 100_000);
    let at: Vec<f64> = blocks.iter().map(|b| (b.offset / 4096) as f64 / positions as f64).collect();
    let mean = at.iter().sum::<f64>() / at.len() as f64;
    let variance = at.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / at.len() as f64;
    assert!((mean - 0.5).abs() < 0.002, "mean {mean}");
    assert!((variance.sqrt() - 0.1).abs() < 0.001, "deviation {}", variance.sqrt());
}

#[test]
fn a_wide_normal_does_not_pile_up_at_the_ends() {
    let seen = counts_by_heat(Distribution::Normal { deviation_percent: 100.0 }, 10, 10_000);
    let ends = seen.iter().filter(|(position, _)| *position == 0 || *position == 9);
    assert!(ends.map(|(_, count)| *count).max() < Some(1100), "{seen:?}");
}

#[test]
fn reads_have_their_share_and_leave_the_offsets_alone() {
    let mut config = config(random(Distribution::Uniform, false), 4096, 1 << 20);
    let pure = some(&config, 10_000);
    config.read_percent = 70;
    let mixed = some(&config, 10_000);
    let reads = mixed.iter().filter(|block| block.op == Op::Read).count();
    // Five standard deviations are 229.
    assert!(reads.abs_diff(7000) < 229, "{reads}");
    assert!(pure.iter().all(|block| block.op == Op::Read));
    let offsets = |blocks: &[Block]| blocks.iter().map(|b| b.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&pure), offsets(&mixed));
    config.read_percent = 0;
    assert!(some(&config, 100).iter().all(|block| block.op == Op::Write));
}

#[test]
fn sizes_have_their_shares() {
    let mut config = config(random(Distribution::Uniform, false), 64 * K, 1 << 30);
    config.blocks = vec![
        BlockShare { min_bytes: 4096, max_bytes: 4096, step_bytes: 0, percent: 60 },
        BlockShare { min_bytes: 8192, max_bytes: 16384, step_bytes: 4096, percent: 30 },
        BlockShare { min_bytes: 65536, max_bytes: 65536, step_bytes: 0, percent: 10 },
    ];
    let mut seen = BTreeMap::new();
    for block in some(&config, 100_000) {
        *seen.entry(block.len).or_insert(0i64) += 1;
    }
    let wanted =
        [(4096, 60_000), (8192, 10_000), (12288, 10_000), (16384, 10_000), (65536, 10_000)];
    assert_eq!(seen.len(), wanted.len());
    for (len, count) in wanted {
        assert!((seen[&len] - count).abs() < 800, "{seen:?}");
    }
}

#[test]
fn many_tebibytes_do_not_overflow() {
    let orders = [
        Order::Sequential,
        random(Distribution::Uniform, false),
        random(Distribution::Uniform, true),
        random(Distribution::Zipf { theta: 0.9 }, false),
        random(Distribution::Pareto { h: 0.1 }, false),
        random(Distribution::Normal { deviation_percent: 30.0 }, false),
    ];
    for order in orders {
        let mut config = config(order, 512, 4_000_000 * TIB);
        config.regions[0].offset = 1_000_000 * TIB;
        config.regions.push(RegionSpan { file: 1, offset: 0, length: 3_000_000 * TIB });
        config.passes = Some(u64::MAX);
        let blocks = some(&config, 2000);
        assert_eq!(blocks.len(), 2000);
        for block in &blocks {
            let span = config.regions[block.file as usize];
            let end = block.offset + u64::from(block.len);
            assert!(block.offset >= span.offset && end <= span.offset + span.length);
        }
        if config.order != Order::Sequential {
            assert!(blocks.iter().any(|block| block.offset > 2_000_000 * TIB));
        }
    }
}

#[test]
fn errors_name_the_numbers() {
    let good = config(Order::Sequential, 4096, 8192);
    let uniform = || random(Distribution::Uniform, false);
    let with = |change: &dyn Fn(&mut SequenceConfig)| {
        let mut config = good.clone();
        change(&mut config);
        BlockSequence::new(&config).expect_err("this configuration is bad").to_string()
    };
    let cases: [(String, &[&str]); 12] = [
        (with(&|c| c.regions[0].length = 0), &["region 0", "offset 0", "no bytes"]),
        (with(&|c| c.regions[0].length = 4000), &["4096 bytes", "its 4000 bytes 4000"]),
        (with(&|c| c.skew_bytes = 9000), &["skew of 9000", "8192 bytes 0"]),
        (with(&|c| c.regions.clear()), &["no region"]),
        (with(&|c| c.regions[0].offset = i64::MAX.cast_unsigned()), &["9223372036854775807"]),
        (with(&|c| c.blocks[0].percent = 90), &["90 per cent"]),
        (with(&|c| c.blocks[0].max_bytes = 8192), &["4096 to 8192", "step"]),
        (with(&|c| c.blocks = one(1 << 32)), &["4294967296", "4 GiB"]),
        (with(&|c| c.unit_bytes = 8192), &["4096", "multiple of 8192", "--buffered"]),
        (with(&|c| c.read_percent = 101), &["101"]),
        (with(&|c| c.order = random(Distribution::Zipf { theta: 0.0 }, false)), &["theta = 0"]),
        (
            with(&|c| {
                c.order = uniform();
                c.align_bytes = 0;
            }),
            &["alignment", "0"],
        ),
    ];
    for (message, wanted) in cases {
        for part in wanted {
            assert!(message.contains(part), "{part:?} is missing from {message:?}");
        }
    }
    let covered = with(&|c| c.order = random(Distribution::Pareto { h: 0.2 }, true));
    assert!(covered.contains("pareto does not"), "{covered}");
}

#[test]
fn the_first_blocks_of_each_kind_are_pinned() {
    let kinds = [
        ("sequential", Order::Sequential),
        ("uniform", random(Distribution::Uniform, false)),
        ("coverage", random(Distribution::Uniform, true)),
        ("zipf 1.1", random(Distribution::Zipf { theta: 1.1 }, false)),
        ("pareto 0.2", random(Distribution::Pareto { h: 0.2 }, false)),
        ("normal 15", random(Distribution::Normal { deviation_percent: 15.0 }, false)),
    ];
    let mut text = String::new();
    for (name, order) in kinds {
        let mut config = config(order, 64 * K, 1 << 30);
        config.read_percent = 50;
        config.blocks = vec![
            BlockShare { min_bytes: 4096, max_bytes: 4096, step_bytes: 0, percent: 50 },
            BlockShare { min_bytes: 8192, max_bytes: 65536, step_bytes: 8192, percent: 50 },
        ];
        config.align_bytes = 4096;
        config.regions.push(RegionSpan { file: 1, offset: 1 << 20, length: 1 << 29 });
        writeln!(text, "{name}").unwrap();
        for block in some(&config, 16) {
            let Block { op, file, offset, len } = block;
            writeln!(text, "  {op:?} {file} {offset} {len}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Sequential),
        Just(random(Distribution::Uniform, false)),
        Just(random(Distribution::Uniform, true)),
        (0.01f64..4.0).prop_map(|theta| random(Distribution::Zipf { theta }, false)),
        (0.01f64..0.99).prop_map(|h| random(Distribution::Pareto { h }, false)),
        (0.1f64..100.0).prop_map(|deviation_percent| {
            random(Distribution::Normal { deviation_percent }, false)
        }),
    ]
}

prop_compose! {
    fn any_config()(
        order in any_order(),
        unit in prop_oneof![Just(1u64), Just(512), Just(4096)],
        min_units in 1u64..20,
        steps in 0u64..5,
        step_units in 1u64..9,
        align_units in 1u64..50,
        skew in 0u64..5000,
        spans in prop::collection::vec((0u64..1000, 0u64..2_000_000), 1..6),
        read_percent in 0u8..=100,
        seed: u64,
    ) -> SequenceConfig {
        let (min, max) = (min_units * unit, (min_units + steps * step_units) * unit);
        let regions = spans.iter().zip(0u32..).map(|((at, extra), file)| RegionSpan {
            file,
            offset: at * unit,
            // Room for the skew, and for the units that the skew cuts off.
            length: max + skew + unit + extra,
        });
        SequenceConfig {
            order,
            follow: None,
            write_blocks: Vec::new(),
            blocks: vec![
                BlockShare { min_bytes: min, max_bytes: min, step_bytes: 0, percent: 40 },
                BlockShare {
                    min_bytes: min,
                    max_bytes: max,
                    step_bytes: if steps == 0 { 0 } else { step_units * unit },
                    percent: 60,
                },
            ],
            align_bytes: align_units * unit,
            skew_bytes: skew,
            unit_bytes: unit,
            read_percent,
            regions: regions.collect(),
            stripe: None,
        in_turn: false,
            short_regions: false,
            seed,
            passes: Some(1),
        }
    }
}

#[test]
fn striped_blocks_lie_apart() {
    // The third of four threads that take turns, after 7 bytes of another owner.
    let turn = |nth: u64| 7 + 2 * 100 + nth * 400;
    let mut config = config(Order::Sequential, 100, 300);
    config.regions = vec![
        RegionSpan { file: 0, offset: turn(0), length: 300 },
        RegionSpan { file: 1, offset: turn(0), length: 300 },
    ];
    config.stripe = Some(Stripe { block_bytes: 100, stride_bytes: 400 });
    config.passes = Some(1);
    let all = |config: &SequenceConfig| -> Vec<(u32, u64, u32)> {
        let mut sequence = sequence(config);
        std::iter::from_fn(|| sequence.next()).map(|b| (b.file, b.offset, b.len)).collect()
    };
    let in_order: Vec<_> =
        (0..2).flat_map(|file| (0..3).map(move |nth| (file, turn(nth), 100))).collect();
    assert_eq!(all(&config), in_order);
    config.order = random(Distribution::Uniform, true);
    let mut covered = all(&config);
    assert_ne!(covered, in_order);
    covered.sort_unstable();
    assert_eq!(covered, in_order, "each once");
    let refused = |change: &dyn Fn(&mut SequenceConfig)| {
        let mut config = config.clone();
        change(&mut config);
        BlockSequence::new(&config).unwrap_err().to_string()
    };
    let wrongs: [&dyn Fn(&mut SequenceConfig); 4] = [
        &|c| c.blocks = one(50),
        &|c| c.regions[1].length = 250,
        &|c| c.regions[1].offset = 8,
        &|c| c.align_bytes = 50,
    ];
    for wrong in wrongs {
        assert!(refused(wrong).contains("must all have 100 bytes"));
    }
}

/// Cut blocks are counted with what was drawn and what came of it, where there are several sizes.
#[test]
fn sizes_that_were_drawn_stand_beside_those_that_came() {
    let share = |bytes, percent| BlockShare { percent, ..one(bytes)[0] };
    let mut config = config(random(Distribution::Uniform, true), 4096, 1 << 20);
    config.blocks = vec![share(4096, 50), share(64 * K, 50)];
    config.passes = Some(1);
    let drawn = |config: &SequenceConfig| {
        let mut sequence = sequence(config);
        let mut blocks = Vec::new();
        while let Some(block) = sequence.next() {
            blocks.push(u64::from(block.len));
            // Without an end, some are enough.
            if blocks.len() == 500 {
                break;
            }
        }
        (sequence.drawn(), blocks)
    };
    let (found, blocks) = drawn(&config);
    let found = found.unwrap();
    let odd = blocks.iter().filter(|len| ![4096, 64 * K].contains(len)).count() as u64;
    assert_eq!((found.ios, found.bytes), (blocks.len() as u64, 1 << 20));
    assert!(odd > 0 && found.cut_ios >= odd && found.drawn_bytes > found.bytes, "{found:?}");
    // Where blocks may be accessed twice, none is cut.
    config.order = random(Distribution::Uniform, false);
    config.passes = None;
    let found = drawn(&config).0.unwrap();
    assert_eq!((found.ios, found.cut_ios, found.drawn_bytes), (500, 0, found.bytes));
    // The last block of a region in order.
    config.order = Order::Sequential;
    config.passes = Some(1);
    let found = drawn(&config).0.unwrap();
    assert!(found.cut_ios <= 1 && found.bytes == 1 << 20, "{found:?}");
    config.blocks = one(4096);
    assert_eq!(drawn(&config).0, None, "one size is what it is");
}

proptest! {
    #[test]
    fn blocks_are_inside_aligned_and_of_an_allowed_length(config in any_config()) {
        let random = matches!(config.order, Order::Random { .. });
        for block in some(&config, 300) {
            let span = config.regions[block.file as usize];
            let len = u64::from(block.len);
            prop_assert!(block.len > 0);
            prop_assert!(block.offset >= span.offset);
            prop_assert!(block.offset + len <= span.offset + span.length);
            let position = block.offset - config.skew_bytes;
            prop_assert_eq!(position % config.unit_bytes, 0);
            prop_assert_eq!(len % config.unit_bytes, 0);
            let whole = config.blocks.iter().any(|share| {
                let over = len.checked_sub(share.min_bytes);
                len <= share.max_bytes
                    && over.is_some_and(|over| over == 0 || over % share.step_bytes.max(1) == 0)
            });
            let usable = (span.length - config.skew_bytes) / config.unit_bytes * config.unit_bytes;
            let at_end = position + len == span.offset + usable;
            let covers = matches!(config.order, Order::Random { coverage: true, .. });
            // A block before one that was there already is cut at a position.
            let least = config.blocks.iter().map(|share| share.min_bytes).min().unwrap();
            let cut = covers && len % least.max(config.align_bytes) == 0;
            prop_assert!(whole || at_end || cut, "{block:?}");
            if random && !covers {
                prop_assert_eq!((position - span.offset) % config.align_bytes, 0);
                prop_assert!(whole);
            }
        }
    }

    #[test]
    fn one_sequential_lap_touches_each_byte_once(mut config in any_config()) {
        config.order = Order::Sequential;
        let blocks = all(&config);
        let mut at: BTreeMap<u32, u64> = BTreeMap::new();
        for block in &blocks {
            let start = config.regions[block.file as usize].offset + config.skew_bytes;
            let next = at.entry(block.file).or_insert(start);
            prop_assert_eq!(block.offset, *next);
            *next += u64::from(block.len);
        }
        for (file, end) in at {
            let span = config.regions[file as usize];
            prop_assert!(span.offset + span.length - end < config.unit_bytes);
        }
    }

    #[test]
    fn coverage_visits_each_position_once_per_pass(
        seed: u64,
        lengths in prop::collection::vec(4096u64..300_000, 1..5),
        passes in 1u64..4,
    ) {
        let mut config = config(random(Distribution::Uniform, true), 4096, 4096);
        config.seed = seed;
        config.passes = Some(passes);
        config.regions = lengths
            .iter()
            .zip(0u32..)
            .map(|(length, file)| RegionSpan { file, offset: 12288, length: *length })
            .collect();
        let blocks = all(&config);
        let units: u64 = lengths.iter().map(|length| length.div_ceil(4096)).sum();
        prop_assert_eq!(blocks.len() as u64, units * passes);
        for pass in blocks.chunks(usize::try_from(units).unwrap()) {
            let seen: HashSet<_> = pass.iter().map(|block| (block.file, block.offset)).collect();
            prop_assert_eq!(seen.len() as u64, units);
            let bytes: u64 = pass.iter().map(|block| u64::from(block.len)).sum();
            prop_assert_eq!(bytes, lengths.iter().sum::<u64>());
        }
    }

    #[test]
    fn blocks_of_several_sizes_cover_each_byte_once_per_pass(
        seed: u64,
        lengths in prop::collection::vec(16u64..200, 1..5),
        sizes in prop::collection::vec(1u64..8, 3..4),
        step in prop::sample::select(vec![512u64, 4096, 5000]),
        odd in 0u64..9,
        writes: bool,
        passes in 1u64..4,
    ) {
        let mut config = config(random(Distribution::Uniform, true), step, step);
        let share = |least: u64, most: u64, percent| {
            let (min_bytes, max_bytes) = (least * step, most * step);
            BlockShare { min_bytes, max_bytes, step_bytes: step, percent }
        };
        config.blocks = vec![share(1, sizes[0], 70), share(sizes[1], sizes[1], 30)];
        // No multiple of the smallest.
        config.blocks[1].max_bytes += odd * 100;
        if writes {
            config.write_blocks = vec![share(sizes[2], sizes[2] + 1, 100)];
            config.read_percent = 50;
        }
        (config.seed, config.passes) = (seed, Some(passes));
        let of = |(units, file)| RegionSpan { file, offset: 8192, length: units * step + 17 };
        config.regions = lengths.iter().copied().zip(0u32..).map(of).collect();
        let total: u64 = config.regions.iter().map(|region| region.length).sum();
        let mut blocks = all(&config).into_iter();
        for _ in 0..passes {
            let mut seen: BTreeMap<(u32, u64), u64> = BTreeMap::new();
            let mut left = total;
            while left > 0 {
                let block = blocks.next().unwrap();
                prop_assert_eq!((block.offset - 8192) % step, 0);
                prop_assert!(seen.insert((block.file, block.offset), block.len.into()).is_none());
                left -= u64::from(block.len);
            }
            let mut end = BTreeMap::new();
            for ((file, offset), length) in seen {
                prop_assert_eq!(*end.get(&file).unwrap_or(&8192), offset);
                end.insert(file, offset + length);
            }
        }
        prop_assert!(blocks.next().is_none());
    }

    #[test]
    fn permutations_are_permutations(count in 1u64..3000, seed: u64, pass: u64) {
        let order = permutation::Permutation::new(count, seed, pass);
        let seen: HashSet<_> = (0..count).map(|index| order.at(index)).collect();
        prop_assert_eq!(seen.len() as u64, count);
        prop_assert!(seen.iter().all(|position| *position < count));
    }

    #[test]
    fn one_seed_gives_one_sequence(config in any_config(), other: u64) {
        prop_assert_eq!(some(&config, 100), some(&config, 100));
        let mut changed = config.clone();
        changed.seed = other;
        let long = config.order != Order::Sequential && some(&config, 100).len() > 30;
        if long && other != config.seed && grid_is_large(&config) {
            prop_assert_ne!(some(&config, 100), some(&changed, 100));
        }
    }
}

/// Whether 30 equal draws from two seeds would be a wonder.
fn grid_is_large(config: &SequenceConfig) -> bool {
    let total: u64 = config.regions.iter().map(|span| span.length / config.align_bytes).sum();
    total > 100
}

#[test]
fn regions_take_turns_until_all_are_done() {
    let region = |file: u32, length: u64| RegionSpan { file, offset: 0, length };
    let config = SequenceConfig {
        regions: vec![region(0, 8192), region(1, 4096), region(2, 8192)],
        in_turn: true,
        passes: Some(2),
        ..config(Order::Sequential, 4096, 8192)
    };
    let blocks: Vec<_> = all(&config).iter().map(|block| (block.file, block.offset)).collect();
    let pass = [(0, 0), (1, 0), (2, 0), (0, 4096), (2, 4096)];
    assert_eq!(blocks, [pass, pass].concat());
}

/// Blocks of 4 KiB in a file of 16, by their numbers, as fio 3.33 makes them (`write_iolog`).
fn numbers(follow: Follow, order: Order, read_percent: u8, passes: Option<u64>) -> Vec<(Op, u64)> {
    let config = SequenceConfig {
        follow: Some(follow),
        read_percent,
        passes,
        ..config(order, 4096, 16 * 4096)
    };
    let blocks = some(&config, 16);
    blocks.iter().map(|block| (block.op, block.offset / 4096)).collect()
}

#[test]
fn a_gap_in_order_is_that_of_fio() {
    let gap = |bytes| {
        let all = numbers(Follow::Gap { bytes }, Order::Sequential, 100, Some(1));
        all.iter().map(|(_, number)| *number).collect::<Vec<_>>()
    };
    assert_eq!(gap(4096), [0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(gap(-8192), [0, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(gap(8192), [0, 3, 6, 9, 12, 15], "the last ends where the file does");
    let again = numbers(Follow::Gap { bytes: 8192 }, Order::Sequential, 100, Some(2));
    assert_eq!(again.len(), 12);
    assert_eq!(numbers(Follow::Gap { bytes: 8192 }, Order::Sequential, 100, None).len(), 16);
}

#[test]
fn reads_and_writes_of_a_mix_with_gaps_have_a_position_each() {
    let all = numbers(Follow::Gap { bytes: 4096 }, Order::Sequential, 50, None);
    for op in [Op::Read, Op::Write] {
        let of = all.iter().filter(|(side, _)| *side == op).map(|(_, number)| *number);
        let expected = (0..).map(|nth: u64| nth * 2 % 16);
        assert!(of.clone().count() > 2 && of.zip(expected).all(|(a, b)| a == b), "{all:?}");
    }
}

#[test]
fn gaps_are_within_one_file() {
    let region = |file| RegionSpan { file, offset: 0, length: 8192 };
    let config = SequenceConfig {
        follow: Some(Follow::Gap { bytes: 4096 }),
        regions: vec![region(0), region(1)],
        ..config(Order::Sequential, 4096, 8192)
    };
    assert_eq!(BlockSequence::new(&config).unwrap_err(), SequenceError::SeveralRegions);
}

#[test]
fn runs_go_on_from_the_offset_that_was_drawn() {
    let order = || random(Distribution::Uniform, false);
    for (same, step) in [(false, 1), (true, 0)] {
        let all = numbers(Follow::Run { ios: 4, same }, order(), 100, None);
        for run in all.as_chunks::<4>().0 {
            // At the end of the file the next one is drawn.
            let goes_on = |two: &[(Op, u64)]| two[1].1 == two[0].1 + step || two[0].1 == 15;
            assert!(run.windows(2).all(goes_on), "{all:?}");
        }
    }
}

#[test]
fn a_share_by_chance_leaves_the_others_in_order() {
    let order = || random(Distribution::Uniform, false);
    let none = Follow::Share { reads: 0, writes: 0 };
    let all = numbers(none, order(), 100, None);
    assert_eq!(all.iter().map(|(_, n)| *n).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    let writes = Follow::Share { reads: 100, writes: 0 };
    let all = numbers(writes, order(), 50, None);
    let of_writes = all.iter().filter(|(op, _)| *op == Op::Write).map(|(_, number)| *number);
    assert!(of_writes.clone().count() > 2);
    assert!(of_writes.zip(0..).all(|(number, nth)| number == nth), "{all:?}");
    let config = SequenceConfig {
        follow: Some(Follow::Share { reads: 50, writes: 50 }),
        ..config(order(), 4096, 4096 << 16)
    };
    let blocks = some(&config, 10_000);
    let follows = blocks.windows(2).filter(|two| two[1].offset == two[0].offset + 4096).count();
    assert!((4500..5500).contains(&follows), "{follows}");
}

#[test]
fn zones_have_their_shares() {
    let zone = |ios_percent, length| Zone { ios_percent, length };
    let zones = vec![zone(50, 5), zone(30, 15), zone(20, 80)];
    let bytes: u64 = 4096 * 10_000;
    let in_bytes = zones.iter().map(|it| zone(it.ios_percent, it.length * bytes / 100)).collect();
    for distribution in [Distribution::Zoned { zones }, Distribution::ZonedAbs { zones: in_bytes }]
    {
        let blocks = some(&config(random(distribution, false), 4096, bytes), 10_000);
        let mut counts = [0; 3];
        for block in blocks {
            match block.offset * 100 / bytes {
                0..5 => counts[0] += 1,
                5..20 => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        let near = |count: i32, wanted: i32| (count - wanted).abs() < 250;
        assert!(
            near(counts[0], 5000) && near(counts[1], 3000) && near(counts[2], 2000),
            "{counts:?}"
        );
    }
}

#[test]
fn writes_may_have_sizes_of_their_own() {
    let config = SequenceConfig {
        write_blocks: one(8192),
        read_percent: 50,
        ..config(random(Distribution::Uniform, false), 4096, 1 << 20)
    };
    let blocks = some(&config, 100);
    let size = |block: &Block| if block.op == Op::Read { 4096 } else { 8192 };
    assert!(blocks.iter().all(|block| block.len == size(block)));
    assert!(blocks.iter().any(|block| block.op == Op::Write));
}
