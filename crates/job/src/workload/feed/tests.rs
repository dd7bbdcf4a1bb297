//! Who reads which range when, counted over all readers.

use std::collections::BTreeMap;

use gpuio_record::{Column, FeedCompute, SampleSize};

use super::*;

fn plan() -> FeedPlan {
    FeedPlan {
        full_files: 10,
        scale: 1.0,
        files: 10,
        samples_per_file: 1,
        sample: SampleSize { mean_bytes: 100_000, deviation_bytes: 0 },
        ratio: 1.0,
        writes: false,
        columns: Vec::new(),
        sample_group: 1,
        batch_samples: 3,
        order: SampleOrder::Shuffle,
        epochs: 2,
        accelerators: 1,
        readers: 2,
        prefetch: 2,
        compute: FeedCompute::Sleep,
        compute_ns: 1_000_000,
        least_utilisation_percent: None,
        slo: None,
        tier: None,
        changed: Vec::new(),
    }
}

/// A range with its step and unit, and whether it ends its unit and its batch.
type Read = (Block, u64, u64, bool, bool);

fn of_reader(plan: &FeedPlan, accelerator: u32, reader: u32, block: u32) -> Vec<Read> {
    let mut sequence = Reader::new(plan, (accelerator, reader), block, 7);
    let mut all = Vec::new();
    loop {
        match sequence.next(u64::MAX) {
            Next::Range { block, step, unit, ends_unit, ends_batch } => {
                all.push((block, step, unit, ends_unit, ends_batch));
            }
            Next::Nothing { .. } => {}
            Next::Ahead { step } => panic!("step {step} is not below the limit"),
            Next::End => return all,
        }
    }
}

/// All reads of all readers, with the accelerator.
fn all(plan: &FeedPlan, block: u32) -> Vec<(u32, Read)> {
    let readers = (0..plan.accelerators).flat_map(|a| (0..plan.readers).map(move |r| (a, r)));
    readers
        .flat_map(|(a, r)| of_reader(plan, a, r, block).into_iter().map(move |r| (a, r)))
        .collect()
}

/// Each unit ends once in each epoch, its ranges cover what is to be read of it, and the batches
/// have the samples that they should have.
fn is_exact(plan: &FeedPlan, block: u32) {
    let shape = Shape::new(plan);
    let reads = all(plan, block);
    let mut ends = BTreeMap::new();
    let mut bytes = BTreeMap::new();
    for (_, (read, step, unit, ends_unit, _)) in &reads {
        let epoch = shape.epoch_of(*step);
        *ends.entry((epoch, *unit)).or_insert(0) += u32::from(*ends_unit);
        *bytes.entry((epoch, *unit)).or_insert(0) += u64::from(read.len);
        assert!(read.len <= block && read.len > 0);
        assert!(read.offset + u64::from(read.len) <= shape.file_bytes(u64::from(read.file)));
        assert_eq!(u64::from(read.file), unit / shape.units_per_file);
    }
    let wanted = shape.units() * plan.epochs;
    assert_eq!(ends.len() as u64, wanted, "{plan:?}");
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    assert!(bytes.iter().all(|((_, unit), bytes)| *bytes == shape.read_bytes(*unit)), "{bytes:?}");
    let all: u64 = bytes.values().sum();
    assert_eq!(all, shape.epoch_bytes() * plan.epochs);
    let batches: u64 = (0..shape.batches()).map(|batch| shape.samples_in(batch)).sum();
    assert_eq!(batches, shape.samples());
    let mut whole = BTreeMap::new();
    for (accelerator, (_, step, _, _, ends_batch)) in &reads {
        assert!(shape.batch_of(*accelerator, *step).is_some());
        *whole.entry((*accelerator, *step)).or_insert(0) += u32::from(*ends_batch);
    }
    assert!(whole.values().all(|count| *count == 1), "{whole:?}");
}

#[test]
fn every_sample_is_read_once_an_epoch_however_it_is_shared_out() {
    for accelerators in [1, 2, 3, 8] {
        for readers in [1, 2, 5] {
            for order in [SampleOrder::Shuffle, SampleOrder::ShuffleFiles, SampleOrder::InOrder] {
                let plan = FeedPlan { accelerators, readers, order, ..plan() };
                is_exact(&plan, 30_000);
                is_exact(&FeedPlan { samples_per_file: 7, ..plan.clone() }, 1 << 20);
                is_exact(&FeedPlan { samples_per_file: 8, sample_group: 4, ..plan }, 1 << 20);
            }
        }
    }
}

/// A row group of 4 rows of 16 bytes, of which 3 columns are read, in batches of 3 rows: one batch
/// of three reads nothing of its own.
#[test]
fn columns_are_read_group_by_group_and_a_batch_may_have_come_with_the_one_before() {
    let column = |bytes, read| Column { bytes, read };
    let plan = FeedPlan {
        files: 2,
        samples_per_file: 8,
        sample: SampleSize { mean_bytes: 16, deviation_bytes: 0 },
        columns: vec![column(2, true), column(8, false), column(4, true), column(2, true)],
        sample_group: 4,
        order: SampleOrder::InOrder,
        epochs: 1,
        readers: 1,
        ..plan()
    };
    is_exact(&plan, 1 << 20);
    let read: Vec<_> = all(&plan, 1 << 20)
        .into_iter()
        .map(|(_, (block, step, ..))| (block.file, block.offset, block.len, step))
        .collect();
    assert_eq!(read[..3], [(0, 0, 8, 0), (0, 40, 16, 0), (0, 56, 8, 0)]);
    assert_eq!(read[3..6], [(0, 64, 8, 1), (0, 104, 16, 1), (0, 120, 8, 1)]);
    let shape = Shape::new(&plan);
    assert_eq!((shape.file_bytes(1), shape.batches(), shape.alignment()), (128, 6, 8));
    let positions: Vec<_> = (0..6).map(|batch| shape.positions(batch)).collect();
    assert_eq!(positions, [0..1, 1..2, 2..3, 3..3, 3..4, 4..4]);
    let mut sequence = Reader::new(&plan, (0, 0), 1 << 20, 1);
    let mut nothing = Vec::new();
    loop {
        match sequence.next(u64::MAX) {
            Next::Nothing { step } => nothing.push(step),
            Next::End => break,
            _ => {}
        }
    }
    assert_eq!(nothing, [3, 5]);
}

#[test]
fn a_reader_waits_for_its_turn_and_then_goes_on_where_it_was() {
    let plan = plan();
    let free = of_reader(&plan, 0, 1, 1 << 20);
    let mut sequence = Reader::new(&plan, (0, 1), 1 << 20, 7);
    assert_eq!(sequence.next(1), Next::Ahead { step: 1 });
    let mut limit = 1;
    let mut held = Vec::new();
    loop {
        match sequence.next(limit) {
            Next::Ahead { step } => limit = step + 1,
            Next::End => break,
            Next::Nothing { .. } => {}
            Next::Range { block, step, unit, ends_unit, ends_batch } => {
                held.push((block, step, unit, ends_unit, ends_batch));
            }
        }
    }
    assert_eq!(held, free);
}

#[test]
fn epochs_and_seeds_have_orders_of_their_own() {
    let plan = FeedPlan { files: 200, readers: 1, batch_samples: 1, ..plan() };
    let units = |seed: u64| {
        let mut sequence = Reader::new(&plan, (0, 0), 1 << 20, seed);
        let mut all = Vec::new();
        while let Next::Range { unit, .. } = sequence.next(u64::MAX) {
            all.push(unit);
        }
        all
    };
    let one = units(1);
    assert_eq!(one, units(1));
    assert_ne!(one, units(2));
    assert_ne!(one[..200], one[200..]);
    let in_place = (0..200).filter(|at| one[*at] == *at as u64).count();
    assert!(in_place < 10, "{in_place} of 200 lie where they lay");
}

/// All readers together read each unit as often as the draws have it, hot ones are the same in all
/// epochs, and how the work is shared out changes nothing.
#[test]
fn draws_are_those_of_their_places_whoever_reads() {
    let zipf = |readers, accelerators| FeedPlan {
        files: 50,
        samples_per_file: 2,
        order: SampleOrder::Zipf { theta: 1.2 },
        epochs: 3,
        readers,
        accelerators,
        ..plan()
    };
    let counted = |plan: &FeedPlan| {
        let shape = Shape::new(plan);
        let mut counts = vec![vec![0_u32; 100]; 3];
        for (_, (_, step, unit, ends_unit, _)) in all(plan, 1 << 20) {
            let epoch = usize::try_from(shape.epoch_of(step)).unwrap();
            counts[epoch][usize::try_from(unit).unwrap()] += u32::from(ends_unit);
        }
        counts
    };
    let one = counted(&zipf(1, 1));
    assert_eq!(one, counted(&zipf(3, 2)));
    let draws = Draws::of(&zipf(1, 1), 7).unwrap();
    assert_eq!(one, (0..3).map(|epoch| draws.counts(epoch)).collect::<Vec<_>>());
    assert_ne!(one[0], one[1], "another draw in each epoch");
    let hottest = |epoch: &Vec<u32>| (0..100).max_by_key(|unit| epoch[*unit]).unwrap();
    assert!(one.iter().all(|epoch| hottest(epoch) == hottest(&one[0])), "{one:?}");
    // The first of 100 ranks has 1 / sum of k^-1.2 of all draws: 28 of 100.
    let most = one.iter().map(|epoch| epoch[hottest(epoch)]).sum::<u32>();
    assert!((60..110).contains(&most), "{most} of 300");
    assert!(Draws::of(&plan(), 7).is_none());
}

/// Mean and deviation of 4096 sizes lie within three standard errors of what was asked for.
#[test]
fn sizes_follow_their_distribution_and_the_file_alone() {
    let sample = SampleSize { mean_bytes: 146_600_628, deviation_bytes: 68_341_808 };
    let shape = Shape::new(&FeedPlan { files: 4096, sample, ..plan() });
    let sizes: Vec<f64> = (0..4096).map(|file| shape.file_bytes(file) as f64).collect();
    let mean = sizes.iter().sum::<f64>() / 4096.0;
    let spread = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / 4096.0;
    let off = (mean / 146_600_628.0 - 1.0).abs();
    assert!(off < 0.022, "{mean}");
    // Sizes below the least are cut off: a little less than the whole deviation.
    assert!((60e6..70e6).contains(&spread.sqrt()), "{}", spread.sqrt());
    assert!(sizes.iter().all(|size| *size >= 146_600_628.0 / 16.0));
    assert!((0..4096).all(|file| shape.file_bytes(file).is_multiple_of(ALIGNMENT)));
    let other = Shape::new(&FeedPlan { files: 7, sample, epochs: 9, readers: 3, ..plan() });
    assert!((0..7).all(|file| other.file_bytes(file) == shape.file_bytes(file)));
}

#[test]
fn accelerators_differ_by_one_step_at_most() {
    let plan = FeedPlan { accelerators: 3, ..plan() };
    let shape = Shape::new(&plan);
    // 10 samples are 4 batches: two steps, and the second has one accelerator.
    assert_eq!((shape.batches(), shape.steps(), shape.all_steps()), (4, 2, 4));
    assert_eq!(shape.batch_of(0, 3), Some(3));
    assert_eq!(shape.batch_of(1, 3), None);
}
