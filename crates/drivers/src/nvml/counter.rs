//! Counters as NVML gives them: some in 32 bits, which begin again at 0 after 4 GiB.

use nvml_wrapper::enums::device::SampleValue;

/// How wide a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits: it begins again after 4 GiB, which a PCIe 5 link carries in 68 ms.
    Bits32,
    Bits64,
}

/// A counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    pub value: u64,
    pub width: Width,
}

impl Counter {
    /// The count from here to a `later` reading, if fewer than one whole turn of the counter lies
    /// between them. `None` if a counter of 64 bits went back: it was reset.
    pub fn until(self, later: Counter) -> Option<u64> {
        match (self.width, later.width) {
            (Width::Bits32, Width::Bits32) => {
                Some(later.value.wrapping_sub(self.value) & u64::from(u32::MAX))
            }
            (Width::Bits64, Width::Bits64) => later.value.checked_sub(self.value),
            _ => None,
        }
    }
}

/// A counter in a value of NVML's, whose type determines the width.
pub(crate) fn of(value: &SampleValue) -> Option<Counter> {
    match *value {
        SampleValue::U32(value) => Some(Counter { value: u64::from(value), width: Width::Bits32 }),
        SampleValue::U64(value) => Some(Counter { value, width: Width::Bits64 }),
        SampleValue::I64(value) => {
            u64::try_from(value).ok().map(|value| Counter { value, width: Width::Bits64 })
        }
        SampleValue::F64(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_32_bits_turns_over_and_one_of_64_does_not() {
        let narrow = |value| Counter { value, width: Width::Bits32 };
        let wide = |value| Counter { value, width: Width::Bits64 };
        assert_eq!(narrow(10).until(narrow(30)), Some(20));
        assert_eq!(narrow(u64::from(u32::MAX)).until(narrow(4)), Some(5));
        assert_eq!(wide(10).until(wide(u64::MAX)), Some(u64::MAX - 10));
        assert_eq!(wide(30).until(wide(10)), None);
        assert_eq!(narrow(10).until(wide(30)), None, "the driver changed its mind");
    }

    #[test]
    fn the_type_of_a_value_has_its_width() {
        let narrow = Counter { value: 7, width: Width::Bits32 };
        assert_eq!(of(&SampleValue::U32(7)), Some(narrow));
        assert_eq!(of(&SampleValue::U64(7)).map(|counter| counter.width), Some(Width::Bits64));
        assert_eq!(of(&SampleValue::I64(-1)), None);
        assert_eq!(of(&SampleValue::F64(7.0)), None);
    }
}
