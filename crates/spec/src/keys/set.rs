//! One setter for each meaning, shared by keys of several dialects.

use super::{Key, Setter, Status};
use gpuio_record::{Arrivals, Fill, VerifyMode};

use crate::job::GpuWhich;
use crate::keys::Dialect;
use crate::value;

/// `field = parse(value)`, with a value required.
macro_rules! field {
    ($field:ident, $parse:path) => {
        Setter {
            fields: &[stringify!($field)],
            bare: None,
            adds: false,
            apply: |job, value| {
                job.$field = Some($parse(value)?);
                Ok(())
            },
        }
    };
}

/// `field = convert(value is on)`; without a value it is on.
macro_rules! switch {
    ($field:ident) => {
        switch!($field, |on| on)
    };
    ($field:ident, |$on:ident| $convert:expr) => {
        Setter {
            fields: &[stringify!($field)],
            bare: Some("1"),
            adds: false,
            apply: |job, value| {
                let $on = value::on_or_off(value)?;
                job.$field = Some($convert);
                Ok(())
            },
        }
    };
}

/// `field = value`, as it stands.
macro_rules! text {
    ($field:ident) => {
        Setter {
            fields: &[stringify!($field)],
            bare: None,
            adds: false,
            apply: |job, value| {
                job.$field = Some(value.to_owned());
                Ok(())
            },
        }
    };
}

pub(super) const PATH: Setter = Setter { adds: true, ..field!(paths, value::words) };
pub(super) const FILENAME: Setter = Setter { adds: true, ..field!(filenames, value::file_names) };
pub(super) const NAME: Setter = Setter {
    fields: &["name"],
    bare: None,
    adds: false,
    apply: |job, value| {
        value.clone_into(&mut job.name);
        Ok(())
    },
};
pub(super) const ENGINE: Setter = field!(engine, value::engine);
pub(super) const IOENGINE: Setter = field!(engine, value::fio_engine);
pub(super) const RW: Setter = field!(rw, value::rw);
pub(super) const BS: Setter = field!(blocks, value::blocks);
pub(super) const BSRANGE: Setter = field!(blocks, value::block_range);
pub(super) const BSSPLIT: Setter = field!(blocks, value::block_split);
pub(super) const SIZE: Setter = field!(size, value::size);
pub(super) const IO_SIZE: Setter = field!(io_size, value::size);
pub(super) const OFFSET: Setter = field!(offset, value::bytes);
pub(super) const THREADS: Setter = field!(threads, value::at_least_one_u32);
pub(super) const DEPTH: Setter = field!(depth, value::at_least_one_u32);
pub(super) const RUNTIME: Setter = field!(runtime_ns, value::duration);
pub(super) const TIME_BASED: Setter = switch!(time_based);
pub(super) const RAMP: Setter = field!(ramp_ns, value::duration);
pub(super) const DIRECTORY: Setter = text!(directory);
pub(super) const FILE_PREFIX: Setter = text!(file_prefix);
pub(super) const NUMA: Setter = field!(numa, value::node);
pub(super) const CPUS: Setter = field!(cpus, value::cpus);
pub(super) const DIRECT: Setter = switch!(direct);
pub(super) const BUFFERED: Setter = switch!(direct, |on| !on);
pub(super) const PRE_READ: Setter = switch!(pre_read);
pub(super) const INVALIDATE: Setter = switch!(invalidate);
pub(super) const CACHE_ALIKE: Setter = switch!(cache_alike);
pub(super) const DO_VERIFY: Setter =
    switch!(verify, |on| if on { VerifyMode::Pass } else { VerifyMode::Off });
pub(super) const VERIFY: Setter = Setter { bare: Some("pass"), ..field!(verify, value::verify) };
pub(super) const CEILINGS: Setter =
    Setter { bare: Some("on"), ..field!(ceilings, value::ceilings) };
pub(super) const BESIDE: Setter = field!(beside, value::beside);
pub(super) const SEED: Setter = field!(seed, value::integer);
pub(super) const RATE: Setter = field!(rate_bytes, value::rate);
pub(super) const RATE_IOPS: Setter = field!(rate_iops, value::at_least_one);
pub(super) const ARRIVALS: Setter = field!(arrivals, value::arrivals);
pub(super) const POISSON: Setter =
    switch!(arrivals, |on| if on { Arrivals::Poisson } else { Arrivals::Steady });
pub(super) const STEADY: Setter = field!(steady, value::steady);
pub(super) const STEADY_WINDOW: Setter = field!(steady_window_ns, value::some_time);
pub(super) const STEADY_RAMP: Setter = field!(steady_ramp_ns, value::duration);
pub(super) const STEADY_CHECK: Setter = field!(steady_check_ns, value::some_time);
pub(super) const READ_PERCENT: Setter = field!(read_percent, value::percent);
pub(super) const WRITE_PERCENT: Setter = Setter {
    apply: |job, value| {
        job.read_percent = Some(100 - value::percent(value)?);
        Ok(())
    },
    ..field!(read_percent, value::percent)
};
pub(super) const COVERAGE: Setter = switch!(coverage);
pub(super) const NO_COVERAGE: Setter = switch!(coverage, |on| !on);
pub(super) const DISTRIBUTION: Setter = field!(distribution, value::distribution);
pub(super) const ALIGN: Setter = field!(align, value::size);
pub(super) const UNALIGNED: Setter = switch!(unaligned);
pub(super) const START_DELAY: Setter = field!(start_delay_ns, value::duration);
pub(super) const LOOPS: Setter = field!(loops, value::at_least_one);
pub(super) const STONEWALL: Setter = switch!(stonewall);
pub(super) const SHARED: Setter = switch!(shared_files);
pub(super) const LAYOUT: Setter = field!(layout, value::layout);
pub(super) const READ_SHIFT: Setter = field!(read_shift, value::read_shift);
pub(super) const WEAR_OUT: Setter = switch!(wear_out);
pub(super) const SHARED_FD: Setter = switch!(shared_fd);
pub(super) const MEMORY: Setter = field!(memory, value::memory);
pub(super) const FIO_MEMORY: Setter = field!(memory, value::fio_memory);
pub(super) const FILL: Setter = field!(fill, value::fill);
pub(super) const FILL_RANDOM: Setter =
    switch!(fill, |on| if on { Fill::Random } else { Fill::Pattern });
pub(super) const REFILL: Setter = switch!(refill);
pub(super) const SYNC: Setter = Setter { bare: Some("1"), ..field!(sync, value::sync) };
pub(super) const INJECT: Setter = text!(inject);
pub(super) const KEEP: Setter = switch!(keep);
pub(super) const UNLINK: Setter = switch!(keep, |on| !on);
pub(super) const STREAMS: Setter = field!(streams, value::at_least_one_u32);
pub(super) const GATHER_BATCH: Setter = field!(gather_batch, value::at_least_one_u32);
pub(super) const GATHER_SCATTER: Setter = switch!(gather_scatter);
pub(super) const VIA_GPU: Setter = field!(via_gpu, value::device);
pub(super) const VIA_PEER: Setter = field!(via_peer, value::via_peer);
pub(super) const SKIP_BUFREGISTER: Setter = switch!(skip_bufregister);
pub(super) const NVLINKS: Setter = switch!(nvlinks);
pub(super) const BATCH: Setter = field!(batch, value::at_least_one_u32);
pub(super) const RDMA_URL: Setter = text!(rdma_url);
pub(super) const MIX_PERCENT: Setter = field!(mix_percent, value::percent);

/// Driver and devices are set separately: a part that a value does not mention is kept.
pub(super) const GPU: Setter = Setter {
    fields: &["gpu"],
    bare: None,
    adds: false,
    apply: |job, text| {
        let new = value::gpu(text)?;
        let gpu = job.gpu.get_or_insert_default();
        gpu.driver = new.driver.or(gpu.driver);
        if new.which != GpuWhich::Unset {
            gpu.which = new.which;
        }
        Ok(())
    },
};
pub(super) const GPU_DEV_ID: Setter = Setter {
    apply: |job, text| {
        let device = value::device(text)?;
        job.gpu.get_or_insert_default().which = GpuWhich::List(vec![device]);
        Ok(())
    },
    ..GPU
};

/// gdsio's transfer types by gpuio's path names. A type that gpuio can't run is still named: the
/// load refuses it by that name, with its reason.
pub(super) const XFER_TYPE: Setter = Setter {
    fields: &["xfer_type", "paths"],
    bare: None,
    adds: false,
    apply: |job, text| {
        const PATHS: [&str; 8] = [
            "gds",
            "host",
            "staged",
            "managed",
            "cached",
            "gds-stream",
            "gds-batch",
            "gds-batch-stream",
        ];
        let xfer_type = value::xfer_type(text)?;
        job.xfer_type = Some(xfer_type);
        // The index is below 8: `xfer_type` reads one digit from 0 to 7.
        job.paths = Some(vec![PATHS[usize::from(xfer_type)].to_owned()]);
        Ok(())
    },
};

/// An entry of the table for a supported key.
pub(super) const fn key(
    name: &'static str,
    aliases: &'static [&'static str],
    dialect: Dialect,
    setter: Setter,
    summary: &'static str,
) -> Key {
    Key { name, aliases, dialect, summary, status: Status::Supported(setter) }
}
