//! The places against a plain list, over random uses that begin and end in any order.

use proptest::prelude::*;

use super::{Lru, Use};

/// A list of the units held, the least recently used first; `None` for one that is being read in.
#[derive(Default)]
struct Model {
    places: usize,
    /// Unit, whether it stands there whole, and its users.
    list: Vec<(u64, bool, u32)>,
    evictions: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Hit,
    Enter,
    Pass,
}

impl Model {
    fn begin(&mut self, unit: u64) -> Said {
        if let Some(at) = self.list.iter().position(|one| one.0 == unit) {
            if !self.list[at].1 {
                return Said::Pass;
            }
            let (unit, whole, users) = self.list.remove(at);
            self.list.push((unit, whole, users + 1));
            return Said::Hit;
        }
        if self.list.len() == self.places {
            let Some(at) = self.list.iter().position(|one| one.2 == 0) else { return Said::Pass };
            self.list.remove(at);
            self.evictions += 1;
        }
        self.list.push((unit, false, 1));
        Said::Enter
    }

    fn end(&mut self, unit: u64, whole: bool) {
        let at = self.list.iter().position(|one| one.0 == unit).unwrap();
        self.list[at].2 -= 1;
        self.list[at].1 |= whole;
        if !self.list[at].1 {
            self.list.remove(at);
        }
    }
}

proptest! {
    #[test]
    fn it_is_a_list_in_the_order_of_use(
        places in 1_u32..6,
        steps in proptest::collection::vec((0_u64..10, 0_usize..8, 0_u8..10), 1..400),
    ) {
        let mut lru = Lru::new(places);
        let mut model = Model { places: places as usize, ..Model::default() };
        // Uses that have begun: unit and place.
        let mut open: Vec<(u64, u32)> = Vec::new();
        for (unit, which, chance) in steps {
            if chance < 5 && !open.is_empty() {
                let (unit, place) = open.remove(which % open.len());
                let whole = chance > 0;
                lru.end(place, whole);
                model.end(unit, whole);
                continue;
            }
            let (found, place) = match lru.begin(unit) {
                Use::Hit(place) => {
                    let stood = open.iter().filter(|one| one.1 == place);
                    prop_assert!(stood.into_iter().all(|one| one.0 == unit));
                    (Said::Hit, Some(place))
                }
                Use::Enter(place) => {
                    prop_assert!(open.iter().all(|one| one.1 != place), "{place} is in use");
                    (Said::Enter, Some(place))
                }
                Use::Pass => (Said::Pass, None),
            };
            prop_assert_eq!(found, model.begin(unit));
            prop_assert!(place.is_none_or(|place| place < places));
            open.extend(place.map(|place| (unit, place)));
            prop_assert_eq!(lru.evictions(), model.evictions);
        }
    }
}

/// The textbook's sequence: three places.
#[test]
fn the_one_used_longest_ago_leaves() {
    let mut lru = Lru::new(3);
    let mut hits = Vec::new();
    for unit in [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5] {
        let (hit, place) = match lru.begin(unit) {
            Use::Hit(place) => (true, place),
            Use::Enter(place) => (false, place),
            Use::Pass => panic!("no place for {unit}"),
        };
        hits.push(hit);
        lru.end(place, true);
    }
    let wanted = [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(|hit| hit == 1);
    assert_eq!((hits.as_slice(), lru.evictions()), (&wanted[..], 7));
}
