//! The kernel's counts of a TCP connection: `TCP_INFO` of tcp(7), `struct tcp_info` of linux/tcp.h.
//! The kernel fills as much of it as it has; what an older one lacks stays 0.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// One connection, as seen by this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Segments sent again since the connection began (`tcpi_total_retrans`, Linux 2.6).
    pub retransmitted_segments: u64,
    /// Segments with data sent, those sent again included (`tcpi_data_segs_out`, Linux 4.6).
    pub data_segments: u64,
    /// Largest packet that the path takes, in bytes (`tcpi_pmtu`).
    pub path_mtu_bytes: u64,
}

/// Reads the counters of a connection. They stay readable after both ends have closed.
///
/// # Errors
/// The error of getsockopt(2).
pub fn tcp_info(stream: &TcpStream) -> io::Result<TcpInfo> {
    let mut raw = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).unwrap_or(0);
    let socket = stream.as_raw_fd();
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the descriptor is open while `stream` is borrowed; `raw` has `length` bytes and
    // lives on this stack, and the kernel writes at most that many and keeps no pointer.
    let failed = unsafe {
        libc::getsockopt(socket, level, option, raw.as_mut_ptr().cast(), &raw mut length)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is integers alone, of which every value is valid, and it was zeroed.
    let raw = unsafe { raw.assume_init() };
    Ok(TcpInfo {
        retransmitted_segments: raw.tcpi_total_retrans.into(),
        data_segments: raw.tcpi_data_segs_out.into(),
        path_mtu_bytes: raw.tcpi_pmtu.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn segments_are_counted_until_after_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert_eq!(tcp_info(&one).unwrap().data_segments, 0);
        one.write_all(b"once").unwrap();
        one.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        drop(other);
        one.read_to_string(&mut text).unwrap();
        let info = tcp_info(&one).unwrap();
        assert_eq!((info.data_segments, info.retransmitted_segments), (1, 0));
        // ip(7): the loopback interface takes packets of 64 KiB, unless it was changed.
        assert!(info.path_mtu_bytes >= 576, "{info:?}");
    }
}
