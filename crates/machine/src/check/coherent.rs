//! Coherent links of GPUs, over which bytes in host memory come and go instead of PCI Express.

use crate::topo::Coherent;
use gpuio_base::units::human_decimal_rate;
use gpuio_record::facts::{GpuFacts, Machine};

/// The link of a GPU, which is called by its number, else by its address.
pub(crate) fn of(machine: &Machine, gpu: &GpuFacts) -> Option<Coherent> {
    let name = match (gpu.index.known(), &gpu.pci) {
        (Some(number), _) => format!("GPU{number}"),
        (None, Some(pci)) => format!("GPU {pci}"),
        (None, None) => "GPU".to_owned(),
    };
    crate::topo::coherent(machine, gpu, &name)
}

/// The links of all GPUs that have one.
pub fn coherent_links(machine: &Machine) -> Vec<Coherent> {
    machine.gpus.iter().filter_map(|gpu| of(machine, gpu)).collect()
}

/// The link in words: where it leads, and that host memory is reached over it.
pub(crate) fn words(link: &Coherent) -> String {
    let to = link.node.map_or("its processor".to_owned(), |node| format!("NUMA node {node}"));
    let rate = link.bytes_per_second.map_or("rate unknown".to_owned(), |rate| {
        format!("{} in each direction{}", human_decimal_rate(rate as f64), link.shared())
    });
    format!("{} to {to}, {rate}: host memory is reached over it, not over PCIe", link.link)
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::Fact;

    use super::*;

    #[test]
    fn a_grace_hopper_reaches_memory_over_its_own_link() {
        let gpu = GpuFacts {
            index: Fact::Known(0),
            name: Fact::Known("NVIDIA GH200 480GB".to_owned()),
            node: Some(0),
            ..GpuFacts::default()
        };
        let mut machine = Machine { gpus: vec![gpu], ..Machine::default() };
        let links = coherent_links(&machine);
        assert_eq!(links[0].gpu, "GPU0");
        assert_eq!(
            words(&links[0]),
            "NVLink-C2C to NUMA node 0, 450 GB/s in each direction: host memory is reached over \
             it, not over PCIe"
        );
        machine.gpus[0].name = Fact::Known("NVIDIA GB200".to_owned());
        let both = words(&coherent_links(&machine)[0]);
        assert!(both.contains("450 GB/s in each direction for 2 GPUs together: "), "{both}");
        machine.gpus[0].c2c = Fact::Known(false);
        assert_eq!(coherent_links(&machine), []);
    }
}
