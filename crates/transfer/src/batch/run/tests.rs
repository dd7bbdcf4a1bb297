use std::os::fd::AsFd;

use super::*;
use crate::file::File;
use crate::memory::MemoryLocation;
use crate::settings::UncachedReads;

fn entry(file: &File, location: MemoryLocation, len: usize, offset: u64) -> Entry {
    Entry { op: Op::Read, file: file.clone(), location, address: 0, len, offset, cookie: offset }
}

#[test]
fn runs_fit_into_their_slot_in_order_and_leave_nothing_out() {
    let own = tempfile::tempfile().unwrap();
    let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
    let location = MemoryLocation::gpu(0);
    for slot in [128 << 10, 1 << 20] {
        let mut waiting: VecDeque<Entry> = (0..100)
            .map(|at: usize| entry(&file, location, 1 + (at * 997) % (50 << 10), at as u64 * 1001))
            .collect();
        waiting.insert(50, entry(&file, location, 1 << 20, 7));
        waiting.insert(70, entry(&file, MemoryLocation::host(), 100, 7));
        let order: Vec<u64> = waiting.iter().map(|entry| entry.cookie).collect();
        let (mut seen, mut singles) = (Vec::new(), 0);
        while let Some(taken) = take(&mut waiting, slot, MOST_ENTRIES as usize) {
            match taken {
                Taken::One(entry) => {
                    singles += 1;
                    seen.push(entry.cookie);
                }
                Taken::Run(run) => {
                    assert_eq!(run.entries.len(), run.slot_offsets.len());
                    let mut end = LIST;
                    for (entry, slot_offset) in run.entries.iter().zip(&run.slot_offsets) {
                        let skip = file.0.skip(entry.offset);
                        assert!(
                            slot_offset - skip >= end && (slot_offset - skip).is_multiple_of(ALIGN)
                        );
                        end = (slot_offset + entry.len).next_multiple_of(ALIGN);
                        seen.push(entry.cookie);
                    }
                    assert!(end <= slot && run.entries.len() <= MOST_ENTRIES as usize);
                }
            }
        }
        assert_eq!((seen, singles), (order, 2));
    }
}
