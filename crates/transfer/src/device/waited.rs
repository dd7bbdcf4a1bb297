//! Allocations whose earlier synchronous operations have ended, as this library has seen.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::size;

/// Places. Two allocations with one place take it from each other: that costs calls of the driver.
const PLACES: usize = size(1024, 2);

/// The numbers of allocations on which a wait of this library's has ended.
///
/// The driver's attribute can't say that: it may read as set while the thread that sets it still
/// waits, and another library may have set it. So an attribute never stands for a wait here. The
/// first use of each thread finds a number that was stored after a wait, or waits itself. Numbers
/// are of the driver (`CU_POINTER_ATTRIBUTE_BUFFER_ID`), and memory that is allocated later at the
/// same address has another one.
#[derive(Debug)]
pub(crate) struct WaitedAllocations(Box<[AtomicU64]>);

impl WaitedAllocations {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }

    /// Makes sure that the earlier operations on an allocation have ended, and that later ones end
    /// before they return. `is_set`: the attribute reads as set. `wait` sets it, waits, and returns
    /// whether the driver could; so does this.
    pub(crate) fn ensure<E>(
        &self,
        id: u64,
        is_set: bool,
        wait: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        #[expect(clippy::cast_possible_truncation, reason = "below the number of places")]
        let place = &self.0[(id % PLACES as u64) as usize];
        if is_set && id != 0 && place.load(Ordering::Acquire) == id {
            return Ok(true);
        }
        let waited = wait()?;
        if waited {
            place.store(id, Ordering::Release);
        }
        Ok(waited)
    }
}
