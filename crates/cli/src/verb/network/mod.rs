//! `gpuio network`: bytes between the memories of two machines over TCP, which is what a file
//! system over a network can reach at most.
//!
//! Purpose: the ceiling of network mounts, measured without storage and GPUs. It must not hold
//! files of any kind on the serving side, RDMA, or conclusions about storage. How data flow: the
//! client asks for one direction at a time over its first connection (`wire`); both ends then use
//! the same two functions (`transfer`), one to send and one to receive. The receiver counts,
//! samples and says when it is over. The client puts the counts of both ends together as a
//! [`result::Measured`], and text, JSON and a file for `--spec` are functions of it.
//!
//! Threads: one for each connection, which moves bytes and adds to a counter; the main thread reads
//! the counters, talks to the other end, and answers further clients that the server is busy. The
//! other end is not trusted to do its part: every wait for it has an end, after a signal within
//! [`wire::HURRIED`].

mod client;
mod result;
mod server;
mod transfer;
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use gpuio_base::document::Format;

use crate::args::Network;
use crate::failure::Failure;
use crate::formats::{self, Wanted};
use crate::output::Delivery;
use crate::serve;

/// How long a server stays by default.
const STAYS: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Network) -> Result<ExitCode, Failure> {
    if let Some(text) = &args.serve {
        let stays = Network::time("--timeout", args.timeout.as_deref(), STAYS, SECOND)?;
        let most = (args.count.unwrap_or(1), args.served_streams());
        return server::run(serve::address(text)?, most, stays);
    }
    let path = args.save.output.as_deref();
    let name = formats::of_file(args.format.as_deref(), path, &[("ini", "spec")])?;
    let format = formats::find(name, formats::NETWORK)?;
    let delivery = Delivery::open(&args.save)?;
    let measured = client::measure(args)?;
    delivery.put(&match format {
        Wanted::Document(Format { name: "json", .. }) => gpuio_base::document::json_of(&measured),
        Wanted::Document(format) => formats::print(format, "network", &measured.document()),
        Wanted::Own(_) => match measured.spec() {
            Ok(text) => text,
            Err(error) => {
                // The figures are not lost.
                let text = gpuio_base::document::FORMATS.first();
                let text = text.map(|text| formats::print(text, "network", &measured.document()));
                crate::output::put(&text.unwrap_or_default())?;
                return Err(error);
            }
        },
    })?;
    Ok(ExitCode::SUCCESS)
}
