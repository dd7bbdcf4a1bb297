//! PCI functions and their links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fact;

/// Speed and width of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Lanes {
    /// Transfers per second of one lane, in millions; `null` when the kernel does not report it.
    pub mega_transfers: Option<u64>,
    /// Lanes; `null` when the kernel does not report it.
    pub width: Option<u64>,
}

impl Lanes {
    /// A link as NVIDIA's driver reports it: by generation, and lanes.
    pub fn of_generation(generation: Option<u32>, lanes: Option<u32>) -> Lanes {
        Lanes {
            mega_transfers: generation.and_then(gpuio_base::units::pcie_mega_transfers),
            width: lanes.map(u64::from),
        }
    }

    /// A link as `lspci -vv` prints it: `… Speed 16GT/s (ok), Width x16 (downgraded)`; `unknown`
    /// for either is none. `None` where a part is missing or wrong.
    pub fn of_lspci(text: &str) -> Option<Lanes> {
        let part = |name| text.split_once(name)?.1.split([',', ' ']).next();
        let speed = match part("Speed ")?.split_once("GT/s") {
            Some((figure, _)) => Some(gpuio_base::units::parse_transfers(figure)?),
            None => None,
        };
        let width: u64 = part("Width ")?.strip_prefix('x')?.parse().ok()?;
        Some(Lanes {
            mega_transfers: speed.filter(|speed| *speed > 0),
            width: Some(width).filter(|width| *width > 0),
        })
    }

    /// Its own facts, and those of `other` where it has none.
    #[must_use]
    pub fn or(self, other: Lanes) -> Lanes {
        Lanes {
            mega_transfers: self.mega_transfers.or(other.mega_transfers),
            width: self.width.or(other.width),
        }
    }
}

/// Speed and width as far as they are known: `16 GT/s x8`, `x8`.
impl std::fmt::Display for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let speed = self.mega_transfers.map(gpuio_base::units::human_transfers);
        let width = self.width.map(|width| format!("x{width}"));
        f.write_str(&[speed, width].into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

/// One function of a PCI device, a bridge included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PciFacts {
    /// Address as sysfs spells it, lower case: `0000:3b:00.0`.
    pub address: String,
    /// Address of the bridge right above: a switch's port or the root port; `null` where the
    /// host bridge is right above. The VMD function of a drive behind Intel VMD stands above the
    /// root ports of its domain.
    pub parent: Option<String>,
    /// The host bridge by domain and root bus, `0000:d7`; `null` in captures that do not show
    /// the bus. Behind VMD, the machine's host bridge and not the one VMD makes up.
    pub host_bridge: Option<String>,
    /// Class code of 24 bits: base class, sub-class, programming interface (`0x010802` is NVMe).
    pub class: Option<u32>,
    /// Vendor's number.
    pub vendor: Option<u16>,
    /// Device's number.
    pub device: Option<u16>,
    /// Vendor of the board.
    pub subsystem_vendor: Option<u16>,
    /// Board.
    pub subsystem_device: Option<u16>,
    /// Names of vendor and device, where a capture has them; the kernel has numbers only.
    pub name: Option<String>,
    /// Driver bound to it; `null` when none is.
    pub driver: Option<String>,
    /// NUMA node; `null` when the firmware does not report it.
    pub node: Option<u32>,
    /// The bus right below a bridge.
    pub secondary_bus: Option<u8>,
    /// The highest bus below a bridge.
    pub subordinate_bus: Option<u8>,
    /// Its role in PCI Express.
    pub port: Fact<PciPort>,
    /// The link above as it is now. An idle link may run slower than it will under load.
    pub link_now: Lanes,
    /// The most that this end of the link can do; the other end may do less.
    pub link_most: Lanes,
    /// The rate of the link in one direction, in bytes per second, where a capture reports that
    /// product (`lstopo`) and not speed and width.
    pub link_bytes_per_second: Option<u64>,
    /// Access Control Services.
    pub acs: Fact<Acs>,
    /// IOMMU group; `null` without an IOMMU that is on.
    pub iommu_group: Option<u32>,
    /// Kind of that group's domain as the kernel prints it: `DMA`, `DMA-FQ`, `identity`,
    /// `blocked` (Linux 5.11).
    pub iommu_domain: Option<String>,
    /// Largest payload of a packet that it may send (`MaxPayload` of Device Control), in bytes.
    pub max_payload_bytes: Fact<u32>,
    /// Largest payload that it could handle (Device Capabilities), in bytes.
    pub max_payload_supported_bytes: Fact<u32>,
    /// Most that it may ask for in one read request (`MaxReadReq`), in bytes.
    pub max_read_request_bytes: Fact<u32>,
    /// Whether it may mark its packets as free to pass others.
    pub relaxed_ordering: Fact<bool>,
    /// Memory that it offers to its peers (`p2pmem/size`, Linux 4.20), in bytes; `null` when none.
    pub p2p_memory_bytes: Option<u64>,
}

impl PciFacts {
    /// A function of which nothing is known, for the reason `why`.
    pub fn unknown(why: &str) -> PciFacts {
        PciFacts {
            port: Fact::unknown(why),
            acs: Fact::unknown(why),
            max_payload_bytes: Fact::unknown(why),
            max_payload_supported_bytes: Fact::unknown(why),
            max_read_request_bytes: Fact::unknown(why),
            relaxed_ordering: Fact::unknown(why),
            ..PciFacts::default()
        }
    }
}

/// The role of a function in PCI Express (Device/Port Type of the PCI Express capability).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PciPort {
    /// A device at the end of a link.
    Endpoint,
    /// An older device at the end of a link.
    LegacyEndpoint,
    /// A port of the root complex.
    RootPort,
    /// A switch's port towards the root.
    SwitchUpstream,
    /// A switch's port away from the root.
    SwitchDownstream,
    /// A bridge to conventional PCI.
    BridgeToPci,
    /// A bridge from conventional PCI.
    BridgeFromPci,
    /// A device inside the root complex, which has no link.
    Integrated,
    /// An event collector of the root complex.
    EventCollector,
    /// Conventional PCI: no PCI Express capability.
    Conventional,
}

/// Access Control Services of a function (PCI Express Base Specification, section 6.12).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Acs {
    /// Whether the function has the capability.
    pub present: bool,
    /// The controls that are switched on, in the order of the register's bits; empty when none is.
    pub enabled: Vec<AcsControl>,
}

/// One control of [`Acs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcsControl {
    /// `SrcValid`.
    SourceValidation,
    /// `TransBlk`.
    TranslationBlocking,
    /// `ReqRedir`: requests between peers go up to the root complex.
    RequestRedirect,
    /// `CmpltRedir`: so do completions.
    CompletionRedirect,
    /// `UpstreamFwd`.
    UpstreamForwarding,
    /// `EgressCtrl`.
    EgressControl,
    /// `DirectTrans`: requests with translated addresses may go straight.
    DirectTranslated,
}
