//! Where the tensors of a file go in memory: in groups, each an allocation of its own.

use super::Header;

/// Runs begin in memory where a GPU's widest loads can begin, bytes.
const ALIGNED: u64 = 256;

/// Neighbours in the file that stay neighbours in memory: one read fills it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub group: u64,
    /// Its first byte in the group, a multiple of 256.
    pub at: u64,
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The tensor's number in the header.
    pub tensor: u64,
    pub group: u64,
    /// Its first byte in the group.
    pub at: u64,
}

/// Groups of tensors, and what fills them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrangement {
    /// Bytes of each group.
    pub groups: Vec<u64>,
    /// In the file's order.
    pub runs: Vec<Run>,
    /// One for each tensor, in the file's order.
    pub places: Vec<Place>,
}

/// Arranges all tensors. A group has at most `most` bytes and its gaps, or one tensor with more:
/// who keeps a tensor keeps no more. Tensors of a run keep their distances, as long as their
/// elements are aligned. The format's writers put tensors of larger elements first, so most groups
/// are one run.
pub fn arrange(header: &Header, most: u64) -> Arrangement {
    let mut order: Vec<usize> = (0..header.tensors.len()).collect();
    order.sort_by_key(|nth| (header.tensors[*nth].offset, header.tensors[*nth].length));
    let mut made = Arrangement::default();
    for nth in order {
        let tensor = &header.tensors[nth];
        let element = (tensor.dtype.bits() / 8).max(1);
        let last = made.runs.last().copied();
        let fits = last.filter(|run| run.at + run.length + tensor.length <= most);
        let run = match fits {
            Some(run) if (tensor.offset - run.offset).is_multiple_of(element) => run,
            // The group goes on behind a gap, or a new one begins.
            Some(Run { group, at, length, .. }) => {
                let at = (at + length).next_multiple_of(ALIGNED);
                made.begin(Run { group, at, offset: tensor.offset, length: 0 })
            }
            None => {
                let group = made.groups.len() as u64;
                made.groups.push(0);
                made.begin(Run { group, at: 0, offset: tensor.offset, length: 0 })
            }
        };
        let at = run.at + tensor.offset - run.offset;
        made.places.push(Place { tensor: nth as u64, group: run.group, at });
        if let (Some(run), Some(bytes)) = (made.runs.last_mut(), made.groups.last_mut()) {
            run.length = tensor.offset + tensor.length - run.offset;
            *bytes = run.at + run.length;
        }
    }
    made
}

impl Arrangement {
    fn begin(&mut self, run: Run) -> Run {
        self.runs.push(run);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dtype, Tensor};
    use super::*;

    fn header(all: &[(Dtype, u64)]) -> Header {
        let mut offset = 100;
        let tensors = all.iter().enumerate().map(|(nth, (dtype, length))| {
            offset += length;
            let shape = vec![length * 8 / dtype.bits()];
            let (name, offset) = (nth.to_string(), offset - length);
            Tensor { name, dtype: *dtype, shape, offset, length: *length }
        });
        Header { tensors: tensors.collect(), metadata: Vec::new() }
    }

    #[test]
    fn neighbours_share_a_group_of_at_most_so_many_bytes() {
        let of = |all: &[u64]| {
            let all: Vec<_> = all.iter().map(|length| (Dtype::U8, *length)).collect();
            arrange(&header(&all), 1000)
        };
        assert_eq!(of(&[]), Arrangement::default());
        let made = of(&[400, 600, 0, 1, 5000, 7]);
        assert_eq!(made.groups, [1000, 1, 5000, 7]);
        let run = |group, offset, length| Run { group, at: 0, offset, length };
        let runs = [run(0, 100, 1000), run(1, 1100, 1), run(2, 1101, 5000), run(3, 6101, 7)];
        assert_eq!(made.runs, runs);
        let at: Vec<_> = made.places.iter().map(|place| (place.group, place.at)).collect();
        assert_eq!(at, [(0, 0), (0, 400), (0, 1000), (1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn elements_are_aligned_and_the_order_is_the_files() {
        let mut header = header(&[(Dtype::U8, 3), (Dtype::F32, 8), (Dtype::F16, 4)]);
        header.tensors.reverse();
        let made = arrange(&header, 1000);
        assert_eq!(made.groups, [268]);
        let places = [(2, 0), (1, 256), (0, 264)];
        assert_eq!(made.places, places.map(|(tensor, at)| Place { tensor, group: 0, at }));
        assert_eq!(made.runs[1], Run { group: 0, at: 256, offset: 103, length: 12 });
    }
}
