//! Which units stand in a fixed number of places of memory, and which leaves for the next: the one
//! whose last use began first (least recently used).
//!
//! Only numbers: the memory itself is its owner's. A place is *in use* while a unit is read into it
//! or copied out of it, and leaves to no other then. A use that begins is one of [`Use`], and each
//! that names a place ends by [`Lru::end`]. It must not hold a lock, or counts of bytes.

use std::collections::{BTreeMap, HashMap};

#[cfg(test)]
mod tests;

/// The result of the begin of a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The unit stands in this place.
    Hit(u32),
    /// It is to be read into this place, where nothing stands any more.
    Enter(u32),
    /// It is to be read elsewhere: another use is just reading it in, or all places are in use.
    Pass,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    unit: u64,
    /// Uses that have begun and not ended.
    users: u32,
    /// Whether all of the unit stands in it.
    is_whole: bool,
    /// When its last use began, in uses.
    used_at: u64,
}

#[derive(Debug)]
pub struct Lru {
    places: Vec<Place>,
    of_unit: HashMap<u64, u32>,
    /// Places where nothing stands.
    free: Vec<u32>,
    /// Places where a unit stands that is not in use, by the time of its last use.
    idle: BTreeMap<u64, u32>,
    uses: u64,
    evictions: u64,
}

impl Lru {
    /// So many places, in which nothing stands.
    pub fn new(places: u32) -> Lru {
        Lru {
            places: vec![Place::default(); places as usize],
            of_unit: HashMap::with_capacity(places as usize),
            free: (0..places).rev().collect(),
            idle: BTreeMap::new(),
            uses: 0,
            evictions: 0,
        }
    }

    /// Units that left for others.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    pub fn begin(&mut self, unit: u64) -> Use {
        self.uses += 1;
        if let Some(&number) = self.of_unit.get(&unit) {
            let place = &mut self.places[number as usize];
            if !place.is_whole {
                return Use::Pass;
            }
            self.idle.remove(&place.used_at);
            (place.users, place.used_at) = (place.users + 1, self.uses);
            return Use::Hit(number);
        }
        let Some(number) = self.free.pop().or_else(|| self.evict()) else { return Use::Pass };
        self.places[number as usize] =
            Place { unit, users: 1, is_whole: false, used_at: self.uses };
        self.of_unit.insert(unit, number);
        Use::Enter(number)
    }

    fn evict(&mut self) -> Option<u32> {
        let (_, number) = self.idle.pop_first()?;
        self.of_unit.remove(&self.places[number as usize].unit);
        self.evictions += 1;
        Some(number)
    }

    /// A use of this place ends; `is_whole` says whether all of the unit was moved. A unit that was
    /// not read in whole does not stand there.
    pub fn end(&mut self, number: u32, is_whole: bool) {
        let place = &mut self.places[number as usize];
        place.users -= 1;
        place.is_whole |= is_whole;
        if !place.is_whole {
            // No other use can have begun.
            self.of_unit.remove(&place.unit);
            self.free.push(number);
        } else if place.users == 0 {
            self.idle.insert(place.used_at, number);
        }
    }
}
