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

/// `feed.field = parse(value)`, with a value required.
macro_rules! feed {
    ($name:literal, $field:ident, $parse:path) => {
        Setter {
            fields: &[$name],
            bare: None,
            adds: false,
            apply: |job, value| {
                job.feed.$field = Some($parse(value)?);
                Ok(())
            },
        }
    };
}

/// `field = parse(value)`, where a list has reads and writes apart: `64k,4k`.
macro_rules! by_direction {
    ($field:ident, $parse:path) => {
        Setter {
            fields: &[stringify!($field)],
            bare: None,
            adds: false,
            apply: |job, text| {
                (job.$field, job.of_writes.$field) = value::by_direction(text, $parse)?;
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
/// fio's libcufile is a path here, and no engine.
pub(super) const IOENGINE: Setter = Setter {
    fields: &["engine"],
    bare: None,
    adds: false,
    apply: |job, text| {
        let cufile = text == "libcufile";
        job.engine = if cufile { None } else { Some(value::fio_engine(text)?) };
        job.fio_cufile = cufile.then_some(true);
        Ok(())
    },
};
pub(super) const RW: Setter = field!(rw, value::rw);
pub(super) const BS: Setter = by_direction!(blocks, value::blocks);
pub(super) const BSRANGE: Setter = by_direction!(blocks, value::block_range);
pub(super) const BSSPLIT: Setter = by_direction!(blocks, value::block_split);
/// Bytes, or a share of each file; the later one replaces the other.
pub(super) const SIZE: Setter = Setter {
    fields: &["size"],
    bare: None,
    adds: false,
    apply: |job, text| {
        (job.size, job.size_percent) = match text.strip_suffix('%') {
            Some(_) => (None, Some(value::size_percent(text)?)),
            None => (Some(value::size(text)?), None),
        };
        Ok(())
    },
};
pub(super) const FILE_BYTES: Setter = field!(file_bytes, value::size);
pub(super) const FILES_PER_THREAD: Setter = field!(files_per_thread, value::at_least_one_u32);
pub(super) const FILES_IN_TURN: Setter = field!(files_in_turn, value::file_service);
pub(super) const OFFSET_INCREMENT: Setter = field!(offset_increment, value::bytes);
pub(super) const NUMBER_IOS: Setter = field!(number_ios, value::at_least_one);
pub(super) const WAIT_FOR: Setter = text!(wait_for);
pub(super) const CREATE_FILES: Setter = switch!(create_files);
pub(super) const FSYNC: Setter = field!(fsync_ios, value::integer);
pub(super) const FDATASYNC: Setter = field!(fdatasync_ios, value::integer);
pub(super) const END_FSYNC: Setter = switch!(end_fsync);
/// A bare number is microseconds, as in fio.
pub(super) const THINK: Setter = field!(think_ns, value::fio_microseconds);
pub(super) const THINK_SPIN: Setter = field!(think_spin_ns, value::fio_microseconds);
pub(super) const THINK_IOS: Setter = field!(think_ios, value::at_least_one);
pub(super) const BW_LOG: Setter = Setter { bare: Some("gpuio"), ..text!(bw_log) };
pub(super) const LAT_LOG: Setter = Setter { bare: Some("gpuio"), ..text!(lat_log) };
pub(super) const IOPS_LOG: Setter = Setter { bare: Some("gpuio"), ..text!(iops_log) };
pub(super) const LOG_TIME: Setter = field!(log_ns, value::fio_milliseconds);
pub(super) const POLLED: Setter = switch!(polled);
pub(super) const SUBMIT_THREAD: Setter = switch!(submit_thread);
pub(super) const CUDA_IO: Setter = field!(cuda_posix, value::cuda_io);
pub(super) const IO_SIZE: Setter = field!(io_size, value::size);
/// Bytes, or a share of each file; the later one replaces the other.
pub(super) const OFFSET: Setter = Setter {
    fields: &["offset"],
    bare: None,
    adds: false,
    apply: |job, text| {
        (job.offset, job.offset_percent) = match text.strip_suffix('%') {
            Some(_) => (None, Some(value::percent(text)?)),
            None => (Some(value::bytes(text)?), None),
        };
        Ok(())
    },
};
pub(super) const THREADS: Setter = field!(threads, value::at_least_one_u32);
pub(super) const DEPTH: Setter = field!(depth, value::at_least_one_u32);
pub(super) const RUNTIME: Setter = field!(runtime_ns, value::duration);
pub(super) const TIME_BASED: Setter = switch!(time_based);
pub(super) const RAMP: Setter = field!(ramp_ns, value::duration);
pub(super) const DIRECTORY: Setter = field!(directory, value::directory);
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
/// `full` is `pass` without a limit of its time, where another source set one.
pub(super) const VERIFY: Setter = Setter {
    fields: &["verify"],
    bare: Some("pass"),
    adds: false,
    apply: |job, value| {
        job.verify = Some(value::verify(value)?);
        job.fio_headers = value.starts_with("crc32c").then_some(true);
        job.against_file = (value == "file").then_some(true);
        if value == "full" {
            job.verify_ns = None;
        }
        Ok(())
    },
};
pub(super) const VERIFY_TIME: Setter = field!(verify_ns, value::some_time);
pub(super) const CEILINGS: Setter =
    Setter { bare: Some("on"), ..field!(ceilings, value::ceilings) };
pub(super) const PERCENTILES: Setter = field!(percentiles, value::percentiles);
pub(super) const BESIDE: Setter = field!(beside, value::beside);
pub(super) const FILES: Setter = feed!("feed.files", files, value::at_least_one);
pub(super) const SCALE: Setter = field!(scale, value::scale);
pub(super) const RANGES: Setter = field!(ranges, value::ranges);
pub(super) const FULL_THREADS: Setter = field!(full_threads, value::at_least_one_u32);
pub(super) const REPEAT: Setter = field!(repeat, value::repeat);
pub(super) const SAMPLES_PER_FILE: Setter =
    feed!("feed.samples_per_file", samples_per_file, value::at_least_one);
pub(super) const SAMPLE_SIZE: Setter = feed!("feed.sample_size", sample_size, value::sample_size);
pub(super) const RATIO: Setter = feed!("feed.ratio", ratio, value::ratio);
pub(super) const COLUMNS: Setter = feed!("feed.columns", columns, value::columns);
pub(super) const SAMPLE_GROUP: Setter =
    feed!("feed.sample_group", sample_group, value::at_least_one);
pub(super) const BATCH_SAMPLES: Setter =
    feed!("feed.batch_samples", batch_samples, value::at_least_one);
pub(super) const SAMPLE_ORDER: Setter = feed!("feed.order", order, value::sample_order);
pub(super) const CACHE_MEMORY: Setter = feed!("feed.cache_memory", cache_memory, value::size);
pub(super) const EPOCHS: Setter = feed!("feed.epochs", epochs, value::at_least_one);
pub(super) const ACCELERATORS: Setter =
    feed!("feed.accelerators", accelerators, value::at_least_one_u32);
pub(super) const READERS: Setter = feed!("feed.readers", readers, value::at_least_one_u32);
pub(super) const PREFETCH: Setter = feed!("feed.prefetch", prefetch, value::at_least_one_u32);
pub(super) const COMPUTE: Setter = feed!("feed.compute", compute, value::compute);
pub(super) const COMPUTE_TIME: Setter = feed!("feed.compute_ns", compute_ns, value::some_time);
pub(super) const SAMPLE_COMPUTE_TIME: Setter =
    feed!("feed.sample_compute_ns", sample_compute_ns, value::some_time);
pub(super) const SLO: Setter = feed!("feed.slo", slo, value::slo);
pub(super) const UTILISATION: Setter = feed!("feed.utilisation", utilisation, value::share);
pub(super) const SEED: Setter = field!(seed, value::integer);
pub(super) const RATE: Setter = by_direction!(rate_bytes, value::rate);
pub(super) const RATE_IOPS: Setter = by_direction!(rate_iops, value::at_least_one);
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
pub(super) const COMPRESS_PERCENT: Setter = field!(compress_percent, value::percent);
pub(super) const COMPRESS_CHUNK: Setter = field!(compress_chunk, value::chunk);
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

/// fio separates the GPUs of its subjobs by colons.
pub(super) const GPU_DEV_IDS: Setter = Setter {
    apply: |job, text| {
        let devices: Result<Vec<u32>, _> = value::pieces(text, ':')
            .map(|(at, one)| value::device(one).map_err(|error| error.shifted(at)))
            .collect();
        job.gpu.get_or_insert_default().which = GpuWhich::List(devices?);
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
