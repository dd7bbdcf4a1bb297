//! A function's configuration space: `/sys/bus/pci/devices/ADDRESS/config`.
//!
//! Layout: PCI Local Bus Specification 3.0 (header, list of capabilities) and PCI Express Base
//! Specification (capability 0x10, section 7.5.3; extended capabilities, 7.6; ACS, 7.7.11). The
//! kernel gives the first 64 bytes to every user and the rest to those with `CAP_SYS_ADMIN`. It
//! asks the device for each word, about a microsecond each, so only words that are needed are read.

use gpuio_record::facts::{Acs, AcsControl, Fact, PciFacts, PciPort};

const NEEDS_ROOT: &str = "the kernel shows this part of configuration space to root only";
const CONVENTIONAL: &str = "no PCI Express capability";
const GONE: &str = "the device does not answer";

/// Capabilities that are followed at most: 48 fit into 192 bytes.
const MOST: usize = 48;
/// Extended ones: 4096 - 256 bytes hold 480 of 8 bytes.
const MOST_EXTENDED: usize = 480;

const PCI_EXPRESS: u8 = 0x10;
const EXTENDED: u64 = 0x100;
const ACS: u32 = 0x000d;

/// Reads what is needed by `read(offset, buffer)`, which fills the buffer or returns an error. Only
/// what stands in configuration space is set in the answer: `port`, `acs`, sizes of payloads and
/// read requests, `relaxed_ordering`.
pub fn parse_config(mut read: impl FnMut(u64, &mut [u8]) -> bool) -> PciFacts {
    let mut head = [0u8; 64];
    if !read(0, &mut head) {
        return PciFacts::unknown("the kernel shows no configuration space");
    }
    if head[..4] == [0xff; 4] {
        return PciFacts::unknown(GONE);
    }
    match express(&head, &mut read) {
        Ok(Some(at)) => at_express(at, &mut read).unwrap_or_else(PciFacts::unknown),
        Ok(None) => PciFacts {
            port: Fact::Known(PciPort::Conventional),
            acs: Fact::Known(Acs::default()),
            ..PciFacts::unknown(CONVENTIONAL)
        },
        Err(why) => PciFacts::unknown(why),
    }
}

type Read<'r> = dyn FnMut(u64, &mut [u8]) -> bool + 'r;

/// Where the PCI Express capability stands; `None` where there is none.
fn express(head: &[u8; 64], read: &mut Read<'_>) -> Result<Option<u64>, &'static str> {
    let has_list = head[6] & 0x10 != 0;
    // CardBus bridges (header 2) keep the pointer elsewhere and have no PCI Express.
    if !has_list || head[0x0e] & 0x7f > 1 {
        return Ok(None);
    }
    let mut at = head[0x34] & 0xfc;
    for _ in 0..MOST {
        if at < 0x40 {
            return Ok(None);
        }
        let mut two = [0u8; 2];
        if !read(u64::from(at), &mut two) {
            return Err(NEEDS_ROOT);
        }
        if two[0] == PCI_EXPRESS {
            return Ok(Some(u64::from(at)));
        }
        at = two[1] & 0xfc;
    }
    Err("its list of capabilities does not end")
}

fn at_express(at: u64, read: &mut Read<'_>) -> Result<PciFacts, &'static str> {
    // Flags at 2, device capabilities at 4, device control at 8.
    let mut words = [0u8; 12];
    if !read(at, &mut words) {
        return Err(NEEDS_ROOT);
    }
    let flags = u16::from_le_bytes([words[2], words[3]]);
    let control = u16::from_le_bytes([words[8], words[9]]);
    let payload = |code: u16| {
        // Codes 6 and 7 are reserved.
        let bytes = (code <= 5).then(|| 128u32 << code);
        Fact::or_unknown(bytes, "a code that PCI Express does not define")
    };
    Ok(PciFacts {
        port: port(flags),
        acs: acs(read).map_or_else(Fact::unknown, Fact::Known),
        max_payload_bytes: payload((control >> 5) & 7),
        max_payload_supported_bytes: payload(u16::from(words[4]) & 7),
        max_read_request_bytes: payload((control >> 12) & 7),
        relaxed_ordering: Fact::Known(control & 0x10 != 0),
        ..PciFacts::default()
    })
}

fn port(flags: u16) -> Fact<PciPort> {
    Fact::Known(match (flags >> 4) & 0xf {
        0 => PciPort::Endpoint,
        1 => PciPort::LegacyEndpoint,
        4 => PciPort::RootPort,
        5 => PciPort::SwitchUpstream,
        6 => PciPort::SwitchDownstream,
        7 => PciPort::BridgeToPci,
        8 => PciPort::BridgeFromPci,
        9 => PciPort::Integrated,
        10 => PciPort::EventCollector,
        _ => return Fact::unknown("a port type that PCI Express does not define"),
    })
}

fn acs(read: &mut Read<'_>) -> Result<Acs, &'static str> {
    let mut at = EXTENDED;
    for _ in 0..MOST_EXTENDED {
        let mut four = [0u8; 4];
        if !read(at, &mut four) {
            // Space of 256 bytes ends here: a virtual machine may not pass the rest on.
            return Err(if at == EXTENDED {
                "extended configuration space is not shown (virtual machine, or not root)"
            } else {
                "configuration space ends amid its list of capabilities"
            });
        }
        let header = u32::from_le_bytes(four);
        if header == u32::MAX {
            return Err(GONE);
        }
        if header & 0xffff == ACS {
            let mut control = [0u8; 2];
            if !read(at + 6, &mut control) {
                return Err("configuration space ends amid ACS");
            }
            let enabled = controls(u16::from_le_bytes(control));
            return Ok(Acs { present: true, enabled });
        }
        at = u64::from(header >> 20) & 0xffc;
        if at < EXTENDED {
            return Ok(Acs::default());
        }
    }
    Err("its list of extended capabilities does not end")
}

fn controls(register: u16) -> Vec<AcsControl> {
    let all = [
        AcsControl::SourceValidation,
        AcsControl::TranslationBlocking,
        AcsControl::RequestRedirect,
        AcsControl::CompletionRedirect,
        AcsControl::UpstreamForwarding,
        AcsControl::EgressControl,
        AcsControl::DirectTranslated,
    ];
    all.into_iter()
        .enumerate()
        .filter(|(bit, _)| register >> bit & 1 != 0)
        .map(|(_, c)| c)
        .collect()
}
