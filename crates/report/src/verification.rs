//! The findings of verification, in words: in a cell, in a line, and as faults. All texts about it
//! come from here, so that no two of them say different things of one result.

use gpuio_base::units::format_bytes;
use gpuio_record::{IoFailure, VerifyOutcome, VerifySubject};

use crate::number::{NONE, bytes, count, many};

/// The verdicts on a verification, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Some bytes are wrong.
    Bad,
    /// Some were written with another length than they were read with.
    OtherLength,
    /// Some could not be read.
    Unreadable,
    /// It ended early.
    CutShort,
    /// There was nothing to check.
    Nothing,
    /// A part was checked, and is right.
    Sample,
    /// All of it is right.
    Whole,
}

/// The sum of one or several verifications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    bad_blocks: u64,
    /// Different ones, and whether there may be more.
    different: (u64, bool),
    bad_words: u64,
    /// Reads of blocks of another length, and the lengths of the first: written, and read.
    other_length: Option<(u64, u64, u64)>,
    failed: u64,
    cut_short: bool,
    /// Bytes that were checked, those of one verification each once.
    bytes: u64,
    /// Bytes that those are of.
    of_bytes: u64,
    sampled: bool,
    /// Whether data of reads was read again after the clock.
    again: bool,
    /// Bytes of timed reads beside that, of the same data.
    timed_bytes: u64,
}

impl<'a> FromIterator<&'a VerifyOutcome> for Checked {
    fn from_iter<T: IntoIterator<Item = &'a VerifyOutcome>>(all: T) -> Checked {
        all.into_iter().fold(Checked::default(), |sum, one| {
            let reads = [VerifySubject::Reads, VerifySubject::ReadsAndWrites];
            let again = reads.contains(&one.subject) && one.pass_bytes > 0;
            // That pass is over the data set, of which the timed reads are a part.
            let [own, twice] = if again { [0, one.timed_bytes] } else { [one.timed_bytes, 0] };
            Checked {
                // A mismatch is of a block.
                bad_blocks: sum.bad_blocks
                    + one.bad_blocks.max(u64::from(!one.mismatches.is_empty())),
                different: different(sum.different, one.different_bad()),
                bad_words: sum.bad_words + one.bad_words,
                other_length: match (sum.other_length, &one.written_as) {
                    (Some((blocks, written, read)), one) => {
                        Some((blocks + one.as_ref().map_or(0, |one| one.blocks), written, read))
                    }
                    (None, one) => {
                        one.as_ref().map(|one| (one.blocks, one.block_bytes, one.read_bytes))
                    }
                },
                failed: sum.failed + one.failed,
                cut_short: sum.cut_short || !one.complete,
                bytes: sum.bytes + own + one.pass_bytes,
                of_bytes: sum.of_bytes + own + one.sample_of_bytes.unwrap_or(one.pass_bytes),
                sampled: sum.sampled || one.sample_of_bytes.is_some(),
                again: sum.again || again,
                timed_bytes: sum.timed_bytes + twice,
            }
        })
    }
}

/// Different wrong blocks of two jobs, which may have met the same ones.
fn different(one: (u64, bool), other: (u64, bool)) -> (u64, bool) {
    match (one, other) {
        ((0, _), one) | (one, (0, _)) => one,
        ((a, _), (b, _)) => (a.max(b), true),
    }
}

impl Checked {
    fn verdict(&self) -> Verdict {
        match self {
            _ if self.bad_blocks > 0 => Verdict::Bad,
            _ if self.other_length.is_some() => Verdict::OtherLength,
            _ if self.failed > 0 => Verdict::Unreadable,
            _ if self.cut_short => Verdict::CutShort,
            _ if self.bytes == 0 => Verdict::Nothing,
            _ if self.sampled => Verdict::Sample,
            _ => Verdict::Whole,
        }
    }

    /// The faults, and what is known all the same; `None` exactly where every verification is fine
    /// ([`VerifyOutcome::is_fine`]).
    pub fn trouble(&self) -> Option<String> {
        let mut parts = self.faults();
        if parts.is_empty() {
            return None;
        }
        if self.bad_blocks == 0 {
            parts.push(match self.bytes {
                0 => "nothing was checked".to_owned(),
                checked => format!("none of the {} that were checked is wrong", bytes(checked)),
            });
        }
        Some(parts.join("; "))
    }

    /// The faults, each in a clause.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if self.bad_blocks > 0 {
            let (places, at_least) = self.different;
            let least = if at_least { "at least " } else { "" };
            let blocks = match places {
                1 => format!("{least}1 BAD BLOCK"),
                blocks => format!("{least}{} BAD BLOCKS", count(blocks)),
            };
            let read = match self.bad_blocks {
                reads if reads == places && !at_least => String::new(),
                reads if places == 1 => format!(", read {}", many(reads, "time")),
                reads => format!(", met in {}", many(reads, "read")),
            };
            // A checksum tells that a block is wrong and not which of its words.
            let words = match self.bad_words {
                0 => String::new(),
                words => format!(", {}", many(words, "wrong 8-byte word")),
            };
            parts.push(blocks + &read + &words);
        }
        if let Some((reads, written, read)) = self.other_length {
            let (written, read) = (format_bytes(written), format_bytes(read));
            parts.push(format!(
                "{} NOT CHECKED, written with bs={written} and read with bs={read}: use \
                 bs={written}",
                many(reads, "block was|blocks were")
            ));
        }
        if self.cut_short {
            parts.push("CUT SHORT before the end".to_owned());
        }
        if self.failed > 0 {
            parts.push(format!("{} of the verification itself failed", many(self.failed, "I/O")));
        }
        parts
    }

    /// Whether some bytes are wrong.
    pub(crate) fn is_bad(&self) -> bool {
        self.verdict() == Verdict::Bad
    }

    /// How much was verified, and how it went.
    pub fn sentence(&self) -> String {
        if let Some(trouble) = self.trouble() {
            let see = if self.bad_blocks + self.failed > 0 { ": see the details" } else { "" };
            return format!("{trouble}{see}.");
        }
        let timed = match self.timed_bytes {
            0 => String::new(),
            timed => format!("; of the timed reads themselves, {} were checked", bytes(timed)),
        };
        let again = match self.again {
            true => format!(", read again after the run{timed}"),
            false => String::new(),
        };
        match self.verdict() {
            Verdict::Nothing => "no byte: there was nothing to check.".to_owned(),
            Verdict::Sample => format!(
                "a random sample of {} of {}, every byte right (--verify=full checks all){again}.",
                bytes(self.bytes),
                bytes(self.of_bytes)
            ),
            _ => format!("all {}, every byte right{again}.", bytes(self.bytes)),
        }
    }
}

/// The faults of one verification; `None` exactly where it is fine.
pub fn trouble(outcome: &VerifyOutcome) -> Option<String> {
    [outcome].into_iter().collect::<Checked>().trouble()
}

/// The first place where a verification was wrong, or could not read.
pub fn first_place<'a>(all: impl IntoIterator<Item = &'a VerifyOutcome>) -> Option<String> {
    all.into_iter().find_map(|outcome| {
        let bad = outcome.mismatches.first().map(|bad| format!("{} at {}", bad.path, bad.offset));
        bad.or_else(|| outcome.failures.first().map(failure_place))
    })
}

/// A failed I/O, as the first of several.
pub fn failure_place(failure: &IoFailure) -> String {
    let IoFailure { path, offset, op, what, .. } = failure;
    format!("{path} at {offset}: {op}: {what}")
}

/// Whether something was checked, and all of it is right.
pub(crate) fn is_right(outcome: &VerifyOutcome) -> bool {
    trouble(outcome).is_none() && outcome.timed_blocks + outcome.pass_blocks > 0
}

/// The data that was verified.
pub(crate) fn subject(outcome: &VerifyOutcome) -> &'static str {
    match outcome.subject {
        // Old records do not tell these apart.
        VerifySubject::Unspecified => "",
        VerifySubject::Reads => "reads, ",
        VerifySubject::ReadsAndWrites => "reads, and writes read back, ",
        VerifySubject::TimedReads => "timed reads (writes were not read back), ",
        VerifySubject::TimedWrites => "timed writes, read back, ",
        VerifySubject::Rewritten => {
            "data rewritten after the measurement (timed writes were not verified), "
        }
    }
}

/// The data that was checked, and where.
pub(crate) fn checked(outcome: &VerifyOutcome) -> String {
    let mut parts = Vec::new();
    if outcome.timed_blocks > 0 {
        parts.push(format!(
            "{} ({})",
            many(outcome.timed_blocks, "timed block"),
            bytes(outcome.timed_bytes)
        ));
    }
    if outcome.pass_blocks > 0 {
        let sample = match outcome.sample_of_bytes {
            None => String::new(),
            Some(of) => format!(", a random sample of {} in a limited time,", bytes(of)),
        };
        parts.push(format!(
            "{} ({}){sample} afterwards",
            many(outcome.pass_blocks, "block"),
            bytes(outcome.pass_bytes)
        ));
    }
    if parts.is_empty() {
        return "no block was checked".to_owned();
    }
    let memory = outcome.checked_in.replace(", by ", " by ");
    let filled = match outcome.filled_bytes {
        0 => String::new(),
        filled => format!("; {} that no timed write reached were filled, unchecked", bytes(filled)),
    };
    let repeated = outcome.repeated_bytes.map_or_else(String::new, |repeated| {
        format!(
            "; {} more were written over the same bytes: one of these writes that was lost is not \
             seen",
            bytes(repeated)
        )
    });
    format!("{}, checked in {memory}{filled}{repeated}", parts.join(" and "))
}

/// Which data is right, and how much of it was checked, where and when. `others`: `all right`.
pub(crate) fn right_words(outcome: &VerifyOutcome, others: &str) -> String {
    format!("{}{others}: {}", subject(outcome), checked(outcome))
}

/// Verification in a word or two: `ok`; `rewritten, ok` if other data than the timed writes was
/// verified; `reads ok` if only reads were; `sample ok` if a part was; `nothing`; `3 bad`, `2
/// failed`, `cut short`, or `-` if off.
pub(crate) fn word<'o>(outcomes: impl IntoIterator<Item = &'o VerifyOutcome>) -> String {
    let outcomes: Vec<&VerifyOutcome> = outcomes.into_iter().collect();
    let Some(subject) = outcomes.first().map(|one| one.subject) else { return NONE.to_owned() };
    let subject = Some(subject).filter(|one| outcomes.iter().all(|other| other.subject == *one));
    let checked: Checked = outcomes.into_iter().collect();
    let ok = match (checked.verdict(), subject) {
        (Verdict::Bad, _) => {
            let (places, at_least) = checked.different;
            return format!("{}{places} bad", if at_least { "≥" } else { "" });
        }
        (Verdict::OtherLength, _) => "other bs",
        (Verdict::Unreadable, _) => return format!("{} failed", checked.failed),
        (Verdict::CutShort, _) => "cut short",
        (Verdict::Nothing, _) => "nothing",
        (_, Some(VerifySubject::Rewritten)) => "rewritten, ok",
        (_, Some(VerifySubject::TimedReads)) => "reads ok",
        (Verdict::Sample, _) => "sample ok",
        (Verdict::Whole, _) => "ok",
    };
    ok.to_owned()
}

#[cfg(test)]
mod tests {
    use gpuio_record::WrittenAs;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The same, without a number of wrong words.
    fn without_words(outcome: &VerifyOutcome) -> VerifyOutcome {
        VerifyOutcome { bad_words: 0, ..outcome.clone() }
    }

    fn whole() -> VerifyOutcome {
        VerifyOutcome {
            timed_blocks: 1,
            timed_bytes: MIB,
            pass_blocks: 3,
            pass_bytes: 3 * MIB,
            complete: true,
            ..VerifyOutcome::default()
        }
    }

    fn checked_in_words(rows: &[(&VerifyOutcome, &str, &str)]) {
        for (outcome, cell, sentence) in rows {
            assert_eq!(word([*outcome]), *cell);
            assert_eq!([*outcome].into_iter().collect::<Checked>().sentence(), *sentence);
            assert_eq!(trouble(outcome).is_none(), outcome.is_fine(), "{cell}");
        }
    }

    /// Each state without a wrong block, with its word, its sentence, and whether anything is said
    /// to be wrong.
    #[test]
    fn every_state_in_words() {
        let whole = whole();
        let again = VerifyOutcome { subject: VerifySubject::Reads, ..whole.clone() };
        let sample = VerifyOutcome { sample_of_bytes: Some(7 * MIB), ..whole.clone() };
        let cut = VerifyOutcome { complete: false, ..whole.clone() };
        let early = VerifyOutcome::default();
        let nothing = VerifyOutcome { complete: true, ..VerifyOutcome::default() };
        let unread = VerifyOutcome { failed: 2, ..whole.clone() };
        let other = WrittenAs {
            blocks: 9,
            block_bytes: 4096,
            read_bytes: 8192,
            path: "/x".to_owned(),
            offset: 0,
        };
        let other = VerifyOutcome { written_as: Some(other), ..nothing.clone() };
        let rows = [
            (&whole, "ok", "all 4.00 MiB, every byte right."),
            (
                &again,
                "ok",
                "all 3.00 MiB, every byte right, read again after the run; of the timed reads \
                 themselves, 1.00 MiB were checked.",
            ),
            (
                &sample,
                "sample ok",
                "a random sample of 4.00 MiB of 8.00 MiB, every byte right (--verify=full checks \
                 all).",
            ),
            (
                &cut,
                "cut short",
                "CUT SHORT before the end; none of the 4.00 MiB that were checked is wrong.",
            ),
            (&early, "cut short", "CUT SHORT before the end; nothing was checked."),
            (&nothing, "nothing", "no byte: there was nothing to check."),
            (
                &unread,
                "2 failed",
                "2 I/Os of the verification itself failed; none of the 4.00 MiB that were \
                 checked is wrong: see the details.",
            ),
            (
                &other,
                "other bs",
                "9 blocks were NOT CHECKED, written with bs=4K and read with bs=8K: use bs=4K; \
                 nothing was checked.",
            ),
        ];
        checked_in_words(&rows);
        assert_eq!(word(None), "-");
        // The worst of several is reported, and the data checked in all.
        let sum: Checked = [&whole, &cut, &sample].into_iter().collect();
        let expected = "CUT SHORT before the end; none of the 12.0 MiB that were checked is wrong";
        assert_eq!(sum.trouble().as_deref(), Some(expected));
    }
    /// The same of wrong blocks.
    #[test]
    fn wrong_blocks_in_words() {
        let whole = whole();
        let bad = VerifyOutcome { bad_blocks: 1, bad_words: 4, ..whole.clone() };
        let often = VerifyOutcome { bad_blocks: 7, bad_places: Some(1), ..without_words(&bad) };
        let many =
            VerifyOutcome { bad_places_at_least: true, bad_places: Some(5), ..often.clone() };
        let old = VerifyOutcome { bad_places: None, ..often.clone() };
        let by_checksum =
            VerifyOutcome { bad_blocks: 2, bad_places: Some(2), ..without_words(&whole) };
        let one_word = VerifyOutcome { bad_words: 1, ..bad.clone() };
        let all = VerifyOutcome { complete: false, failed: 2, ..bad.clone() };
        checked_in_words(&[
            (&bad, "1 bad", "1 BAD BLOCK, 4 wrong 8-byte words: see the details."),
            (&by_checksum, "2 bad", "2 BAD BLOCKS: see the details."),
            (&often, "1 bad", "1 BAD BLOCK, read 7 times: see the details."),
            (&many, "≥5 bad", "at least 5 BAD BLOCKS, met in 7 reads: see the details."),
            (&old, "≥1 bad", "at least 1 BAD BLOCK, read 7 times: see the details."),
            (&one_word, "1 bad", "1 BAD BLOCK, 1 wrong 8-byte word: see the details."),
            (
                &all,
                "1 bad",
                "1 BAD BLOCK, 4 wrong 8-byte words; CUT SHORT before the end; 2 I/Os of the \
                 verification itself failed: see the details.",
            ),
        ]);
        // Two jobs may have met the same block.
        let two: Checked = [&often, &bad].into_iter().collect();
        assert_eq!(two.faults(), ["at least 1 BAD BLOCK, read 8 times, 4 wrong 8-byte words"]);
    }
}
