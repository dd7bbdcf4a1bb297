//! Max–min fair filling, by its properties.

use gpuio_machine::flow::{Flow, Limit, Network, Use, fill};
use proptest::collection::vec;
use proptest::prelude::*;

/// Flows by the parts that they use, with the seconds per byte there.
fn build(parts: usize, flows: &[Vec<(usize, u32)>], own: &[Option<u32>]) -> (Network, Vec<Flow>) {
    let mut network = Network::default();
    let ids: Vec<_> = (0..parts).map(|n| network.part(&n.to_string(), &n.to_string())).collect();
    let flow = |(uses, own): (&Vec<(usize, u32)>, &Option<u32>)| Flow {
        uses: uses
            .iter()
            .map(|(part, busy)| Use {
                part: ids[part % parts],
                busy_s_per_byte: f64::from(*busy) * 1e-9,
                figure: String::new(),
            })
            .collect(),
        own_limit: own.map(|most| (f64::from(most), "own".to_owned())),
    };
    (network, flows.iter().zip(own).map(flow).collect())
}

fn busy(flows: &[Flow], rates: &[f64], flow: &Flow, index: usize) -> f64 {
    let part = flow.uses[index].part;
    let of = |(flow, rate): (&Flow, &f64)| {
        let uses = flow.uses.iter().filter(|one| one.part == part);
        uses.map(|one| one.busy_s_per_byte * rate).sum::<f64>()
    };
    flows.iter().zip(rates).map(of).sum()
}

proptest! {
    #[test]
    fn no_part_is_overrun_and_every_flow_ends_at_something(
        flows in vec(vec((0_usize..6, 1_u32..1000), 1..5), 1..7),
        own in vec(prop::option::of(1_000_u32..1_000_000_000), 7),
    ) {
        let (network, flows) = build(6, &flows, &own);
        let filled = fill(&network, &flows);
        let rates: Vec<f64> = filled.iter().map(|one| one.bytes_per_s).collect();
        for (flow, one) in flows.iter().zip(&filled) {
            for index in 0..flow.uses.len() {
                prop_assert!(busy(&flows, &rates, flow, index) <= 1.0 + 1e-6);
            }
            match &one.limit {
                Limit::Parts(parts) => {
                    for index in parts {
                        prop_assert!(busy(&flows, &rates, flow, *index) >= 1.0 - 1e-6);
                        // Max–min: nobody who shares the bottleneck has more, unless at the
                        // same level.
                        let part = flow.uses[*index].part;
                        for (other, rate) in flows.iter().zip(&rates) {
                            let shares = other.uses.iter().any(|one| one.part == part);
                            prop_assert!(!shares || *rate <= one.bytes_per_s * (1.0 + 1e-6));
                        }
                    }
                }
                Limit::Own => {
                    let most = flow.own_limit.as_ref().unwrap().0;
                    prop_assert!((one.bytes_per_s / most - 1.0).abs() < 1e-6);
                }
                Limit::Nothing => prop_assert!(false, "every flow uses a part"),
            }
        }
    }
}

#[test]
fn what_one_leaves_goes_to_the_others() {
    // Two flows share a part of 1 GB/s; one of them has a narrower part of 200 MB/s alone.
    let (network, flows) = build(2, &[vec![(0, 1)], vec![(0, 1), (1, 5)]], &[None, None]);
    let filled = fill(&network, &flows);
    assert!((filled[0].bytes_per_s - 800e6).abs() < 1.0);
    assert!((filled[1].bytes_per_s - 200e6).abs() < 1.0);
    assert_eq!(filled[1].limit, Limit::Parts(vec![1]));
}

#[test]
fn a_flow_without_parts_has_no_limit() {
    let filled = fill(&Network::default(), &[Flow::default()]);
    assert_eq!((filled[0].bytes_per_s, &filled[0].limit), (f64::INFINITY, &Limit::Nothing));
}
