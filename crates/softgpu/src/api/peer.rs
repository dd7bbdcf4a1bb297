//! Access between devices, and copies from one to another.

use std::ffi::{c_int, c_uint, c_void};

use crate::call::{call, later, put};
use crate::code::INVALID_VALUE;
use crate::memory;
use crate::stream::Work;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceCanAccessPeer(
    can: *mut c_int,
    device: c_int,
    peer: c_int,
) -> c_int {
    call("cuDeviceCanAccessPeer", |machine| {
        let (device, peer) = (machine.device(device)?.index, machine.device(peer)?.index);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(can, c_int::from(machine.peers.possible(device, peer))) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxEnablePeerAccess(peer: *mut c_void, flags: c_uint) -> c_int {
    call("cuCtxEnablePeerAccess", |machine| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        machine.peers.grant(machine.current()?.index, machine.owner(peer)?.index)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemcpyPeerAsync(
    dst: u64,
    dst_context: *mut c_void,
    src: u64,
    src_context: *mut c_void,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    let call = "cuMemcpyPeerAsync";
    later(call, |machine, fault| {
        machine.current()?;
        let stream = machine.stream(stream)?;
        let (to, from) = (machine.owner(dst_context)?.index, machine.owner(src_context)?.index);
        if memory::owner(dst) != Some(to) || memory::owner(src) != Some(from) {
            return Err(INVALID_VALUE);
        }
        if len == 0 {
            return Ok(());
        }
        let to = machine.memory.on_device(dst, len as u64)?;
        let from = machine.memory.on_device(src, len as u64)?;
        let spoil = machine.config.spoils(call);
        let work = Work::Copy { to, from, len, spoil };
        stream.put(fault.map_or(work, Work::Fail))
    })
}
