//! The facts about a function that the names of `pci.ids` show where a text has no numbers
//! (`lspci -tv`).

/// NVIDIA's vendor number.
pub(crate) const NVIDIA: u16 = 0x10de;
/// Mellanox's.
pub(crate) const MELLANOX: u16 = 0x15b3;

/// Device numbers of NVIDIA's data-centre GPUs (pci.ids), which older copies of `pci.ids` print as
/// `Device 2330`: V100, T4, A100, A30, A40, A10, L40, L40S, L4, H100, H800, H20, H200, GH200, B200,
/// GB200, B300, GB300.
const GPUS: [u16; 42] = [
    0x1db1, 0x1db4, 0x1db5, 0x1db6, 0x1db8, 0x1eb8, 0x20b0, 0x20b2, 0x20b3, 0x20b5, 0x20b7, 0x20f1,
    0x20f3, 0x20f5, 0x2235, 0x2236, 0x26b5, 0x26b9, 0x26ba, 0x27b8, 0x2302, 0x2321, 0x2322, 0x2324,
    0x2329, 0x232c, 0x2330, 0x2331, 0x2335, 0x2336, 0x2339, 0x233a, 0x233b, 0x2342, 0x2345, 0x2348,
    0x2900, 0x2901, 0x2920, 0x2941, 0x3182, 0x31c2,
];

/// Whether a function is one of NVIDIA's GPUs by its numbers.
pub(crate) fn is_gpu(vendor: u16, device: u16) -> bool {
    vendor == NVIDIA && GPUS.contains(&device)
}

/// Class names as `lspci` spells them, and their codes with the usual programming interface.
pub(crate) const CLASSES: [(&str, u32); 28] = [
    ("SATA controller", 0x01_0601),
    ("Serial Attached SCSI controller", 0x01_0700),
    ("RAID bus controller", 0x01_0400),
    ("Non-Volatile memory controller", 0x01_0802),
    ("SCSI storage controller", 0x01_0000),
    ("Mass storage controller", 0x01_8000),
    ("IDE interface", 0x01_0100),
    ("Ethernet controller", 0x02_0000),
    ("Infiniband controller", 0x02_0700),
    ("InfiniBand controller", 0x02_0700),
    ("Fabric controller", 0x02_0800),
    ("Network controller", 0x02_8000),
    ("VGA compatible controller", 0x03_0000),
    ("3D controller", 0x03_0200),
    ("Display controller", 0x03_8000),
    ("Audio device", 0x04_0300),
    ("RAM memory", 0x05_0000),
    ("Memory controller", 0x05_8000),
    ("CXL", 0x05_0210),
    ("Host bridge", 0x06_0000),
    ("ISA bridge", 0x06_0100),
    ("PCI bridge", 0x06_0400),
    ("Bridge", 0x06_8000),
    ("System peripheral", 0x08_8000),
    ("USB controller", 0x0c_0330),
    ("SMBus", 0x0c_0500),
    ("Processing accelerators", 0x12_0000),
    ("Co-processor", 0x0b_4000),
];

/// The code of a class by its name.
pub(crate) fn class_named(name: &str) -> Option<u32> {
    CLASSES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}

/// The last `[10de:20b0]` of a name.
pub(crate) fn ids(name: &str) -> Option<(u16, u16)> {
    let (_, last) = name.trim_end().rsplit_once('[')?;
    let (vendor, device) = last.strip_suffix(']')?.split_once(':')?;
    let whole = vendor.len() == 4 && device.len() == 4;
    let hex = |text: &str| u16::from_str_radix(text, 16).ok();
    whole.then_some(())?;
    Some((hex(vendor)?, hex(device)?))
}

/// The vendor's number, of those that matter.
pub(crate) fn vendor(name: &str) -> Option<u16> {
    let known = [("NVIDIA Corporation", NVIDIA), ("nVidia Corporation", NVIDIA)];
    let mellanox = name.starts_with("Mellanox Technologies").then_some(MELLANOX);
    known.iter().find(|(start, _)| name.starts_with(start)).map(|(_, id)| *id).or(mellanox)
}

/// The class of a function that only its name shows: GPUs, network cards and NVMe drives.
///
/// `pci.ids` names controllers, mostly by what they are; a name that fits nothing has no class.
pub(crate) fn class(name: &str) -> Option<u32> {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if vendor(name) == Some(NVIDIA) {
        let no_gpu = ["NVSwitch", "Audio", "USB", "UCSI", "UART", "Serial", "Bridge", "bridge"];
        // Names of chips: GA100 [A100 SXM4 40GB], GP104GL, TU102, AD102, GB202.
        let word = |nth| name.split_whitespace().nth(nth);
        let number = word(3).filter(|_| word(2) == Some("Device"));
        let number = number.and_then(|word| u16::from_str_radix(word, 16).ok());
        let chip = match number {
            Some(number) => GPUS.contains(&number),
            None => word(2).is_some_and(is_gpu_chip),
        };
        return (chip && !has(&no_gpu)).then_some(0x03_0200);
    }
    if has(&["NVMe", "Non-Volatile memory", "NVM Express"]) || is_drive(name) {
        // Drives, and not the bridges and volumes of their names.
        return (!has(&["Bridge", "bridge", "RAID", "Volume Management"])).then_some(0x01_0802);
    }
    if name.starts_with("Mellanox Technologies") {
        let no_card = ["Bridge", "bridge", "Management", "PCIe", "Spectrum", "Quantum", "Switch"];
        let card = has(&["ConnectX", "BlueField", "MT25", "MT26", "MT27", "MT28", "MT29", "MT4"]);
        return (card && !has(&no_card)).then_some(0x02_0000);
    }
    let card = [
        "Ethernet",
        "Gigabit Network Connection",
        "Network Connection",
        "10-Gigabit",
        "NetXtreme",
        "Elastic Network Adapter",
        "Elastic Fabric Adapter",
        "Omni-Path HFI",
        "Virtio network device",
        "Virtio 1.0 network device",
        "gVNIC",
    ];
    (has(&card) && !has(&["Switch", "switch", "Bridge", "Virtual Function Bridge"]))
        .then_some(0x02_0000)
}

/// `GA100`, `GH100`, `GV100GL`, `TU102GL`, `AD102GL`, `GK210GL`, `GB202`.
fn is_gpu_chip(word: &str) -> bool {
    let letters = word.chars().take_while(char::is_ascii_uppercase).count();
    let digits = word.chars().skip(letters).take_while(char::is_ascii_digit).count();
    let family = ["G", "T", "A", "N", "C", "M"].iter().any(|start| word.starts_with(start));
    let old = word.starts_with('G') && word.len() == 3;
    family && (letters == 2 && (digits == 3 || digits == 2) || old)
}

/// Names of drives without a word for the interface.
fn is_drive(name: &str) -> bool {
    let makers = [
        "Samsung Electronics",
        "KIOXIA",
        "Toshiba Corporation",
        "Micron",
        "Sandisk",
        "SanDisk",
        "Western Digital",
        "Seagate",
        "Solidigm",
        "SK hynix",
        "Phison",
        "Kingston",
        "Intel Corporation",
        "Memblaze",
        "DapuStor",
        "Lite-On",
        "Shannon Systems",
    ];
    let of_maker = makers.iter().any(|maker| name.starts_with(maker));
    let drive = ["SSD", "Optane", "Solid State Drive"].iter().any(|word| name.contains(word));
    of_maker && drive && !name.contains("SATA")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_what_matters() {
        let gpu = Some(0x03_0200);
        let card = Some(0x02_0000);
        let drive = Some(0x01_0802);
        for (name, class_) in [
            ("NVIDIA Corporation GA100 [A100 SXM4 40GB]", gpu),
            ("NVIDIA Corporation GV100GL [Tesla V100 SXM3 32GB]", gpu),
            ("NVIDIA Corporation Device 1ac2", None),
            ("NVIDIA Corporation Device 2330 (rev a1)", gpu),
            ("NVIDIA Corporation Device 22a3 (rev a1)", None),
            ("NVIDIA Corporation GA100 [A100 NVSwitch]", None),
            ("NVIDIA Corporation GA102 High Definition Audio Controller", None),
            ("NVIDIA Corporation TU104 USB 3.1 Host Controller", None),
            ("Mellanox Technologies MT28908 Family [ConnectX-6]", card),
            ("Mellanox Technologies MT43244 BlueField-3 integrated network controller", card),
            ("Mellanox Technologies MT42822 BlueField-2 SoC Management Interface", None),
            ("Mellanox Technologies MT43244 Family [BlueField-3 SoC PCIe Bridge]", None),
            ("Intel Corporation I350 Gigabit Network Connection", card),
            ("Intel Corporation Ethernet Controller X710 for 10GbE SFP+", card),
            ("Amazon.com, Inc. Elastic Fabric Adapter (EFA)", card),
            ("Samsung Electronics Co Ltd NVMe SSD Controller PM173X", drive),
            ("KIOXIA Corporation NVMe SSD Controller Cx6", drive),
            ("Intel Corporation Optane SSD 900P Series", drive),
            ("Intel Corporation Volume Management Device NVMe RAID Controller", None),
            ("Broadcom / LSI PEX880xx PCIe Gen 4 Switch", None),
            ("Intel Corporation Sky Lake-E CHA Registers", None),
            ("Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge", None),
        ] {
            assert_eq!(class(name), class_, "{name}");
        }
    }

    #[test]
    fn numbers_stand_at_the_end() {
        assert_eq!(ids("NVIDIA Corporation GA100 [10de:20b0]"), Some((0x10de, 0x20b0)));
        assert_eq!(ids("NVIDIA Corporation GA100 [A100]"), None);
    }
}
