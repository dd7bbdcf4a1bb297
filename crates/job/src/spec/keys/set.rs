//! One setter for each meaning, shared by keys of several dialects.

use super::{Apply, Key, Setter, Status};
use crate::spec::dialect::Dialect;
use crate::spec::job::{GpuWhich, JobSpec, OWN_NAME};
use crate::spec::value;

/// A setter that needs a value.
pub(super) const fn setter(
    fields: &'static [&'static str],
    clear: fn(&mut JobSpec),
    apply: Apply,
) -> Setter {
    Setter { fields, bare: None, adds: None, writes: None, clear, apply }
}

/// `field = parse(value)`, with a value required.
macro_rules! field {
    ($field:ident, $parse:path) => {
        crate::spec::keys::set::setter(
            &[stringify!($field)],
            |job| job.$field = None,
            |job, value| {
                job.$field = Some($parse(value)?);
                Ok(())
            },
        )
    };
}

/// `field = convert(value is on)`; without a value it is on.
macro_rules! switch {
    ($field:ident) => {
        switch!($field, |on| on)
    };
    ($field:ident, |$on:ident| $convert:expr) => {
        crate::spec::keys::Setter {
            bare: Some("1"),
            ..crate::spec::keys::set::setter(
                &[stringify!($field)],
                |job| job.$field = None,
                |job, value| {
                    let $on = crate::spec::value::on_or_off(value)?;
                    job.$field = Some($convert);
                    Ok(())
                },
            )
        }
    };
}

/// `feed.field = parse(value)`, with a value required.
macro_rules! feed {
    ($name:literal, $field:ident, $parse:path) => {
        crate::spec::keys::set::setter(
            &[$name],
            |job| job.feed.$field = None,
            |job, value| {
                job.feed.$field = Some($parse(value)?);
                Ok(())
            },
        )
    };
}

/// `field = parse(value)`, where a list has reads and writes apart: `64k,4k`.
macro_rules! by_direction {
    ($field:ident, $parse:path) => {
        crate::spec::keys::Setter {
            writes: Some(|job, text| {
                if let (_, Some(writes)) = crate::spec::value::by_direction(text, $parse)? {
                    job.$field = writes;
                }
                Ok(())
            }),
            ..crate::spec::keys::set::setter(
                &[stringify!($field)],
                |job| {
                    job.$field = None;
                    job.of_writes.iter_mut().for_each(|writes| writes.$field = None);
                },
                |job, text| {
                    (job.$field, _) = crate::spec::value::by_direction(text, $parse)?;
                    Ok(())
                },
            )
        }
    };
}

/// `field = value`, as it stands.
macro_rules! text {
    ($field:ident) => {
        field!($field, crate::spec::value::text)
    };
}

pub(super) const PATH: Setter =
    Setter { adds: Some(|job| &mut job.paths), ..field!(paths, value::words) };
pub(super) const FILENAME: Setter =
    Setter { adds: Some(|job| &mut job.filenames), ..field!(filenames, value::file_names) };
/// The directories: the first, and those that other threads have.
pub(super) const DIRECTORY: Setter = setter(
    &["directory"],
    |job| (job.directory, job.more_directories) = (None, Vec::new()),
    |job, text| {
        let mut names = value::file_names(text)?.into_iter();
        (job.directory, job.more_directories) = (names.next(), names.collect());
        Ok(())
    },
);
/// The length of files, or the shortest and the longest.
pub(super) const FILE_SIZE: Setter = setter(
    &["file_bytes"],
    |job| (job.file_bytes, job.file_bytes_most) = (None, None),
    |job, text| {
        let (least, most) = value::file_size(text)?;
        (job.file_bytes, job.file_bytes_most) = (Some(least), most);
        Ok(())
    },
);
/// The direction, with fio's number behind a colon.
pub(super) const RW: Setter = setter(
    &["rw"],
    |job| (job.rw, job.rw_modifier) = (None, None),
    |job, value| {
        let (mut rw, modifier) = value::rw(value)?;
        if job.verify_only == Some(true) {
            rw = rw.reading();
        }
        (job.rw, job.rw_modifier) = (Some(rw), modifier);
        Ok(())
    },
);
/// fio's, which may stand before or behind `rw`.
pub(super) const VERIFY_ONLY: Setter = Setter {
    bare: Some("1"),
    ..setter(
        &["verify_only"],
        |job| job.verify_only = None,
        |job, value| {
            let on = value::on_or_off(value)?;
            job.verify_only = Some(on);
            job.rw = job.rw.map(|rw| if on { rw.reading() } else { rw });
            Ok(())
        },
    )
};
pub(super) const NAME: Setter = setter(
    &["name"],
    |job| job.name.clear(),
    |job, value| {
        value.clone_into(&mut job.name);
        Ok(())
    },
);
/// fio's libcufile is a path here, and no engine.
pub(super) const IOENGINE: Setter = setter(
    &["engine"],
    |job| job.engine = None,
    |job, text| {
        let cufile = text == "libcufile";
        job.engine = if cufile { None } else { Some(value::fio_engine(text)?) };
        job.fio_cufile = cufile.then_some(true);
        Ok(())
    },
);
/// Bytes, or a share of each file; the later one replaces the other.
pub(super) const SIZE: Setter = setter(
    &["size"],
    |job| job.size = None,
    |job, text| {
        (job.size, job.size_percent) = match text.strip_suffix('%') {
            Some(_) => (None, Some(value::size_percent(text)?)),
            None => (Some(value::size(text)?), None),
        };
        Ok(())
    },
);
/// A bare number is microseconds, as in fio.
pub(super) const THINK: Setter = field!(think_ns, value::fio_microseconds);
/// Without a value the job's name is taken.
pub(super) const BW_LOG: Setter = Setter { bare: Some(OWN_NAME), ..text!(bw_log) };
pub(super) const LAT_LOG: Setter = Setter { bare: Some(OWN_NAME), ..text!(lat_log) };
pub(super) const IOPS_LOG: Setter = Setter { bare: Some(OWN_NAME), ..text!(iops_log) };
/// Bytes, or a share of each file; the later one replaces the other.
pub(super) const OFFSET: Setter = setter(
    &["offset"],
    |job| job.offset = None,
    |job, text| {
        (job.offset, job.offset_percent) = match text.strip_suffix('%') {
            Some(_) => (None, Some(value::percent(text)?)),
            None => (Some(value::bytes(text)?), None),
        };
        Ok(())
    },
);
pub(super) const THREADS: Setter = field!(threads, value::at_least_one_u32);
pub(super) const DEPTH: Setter = field!(depth, value::at_least_one_u32);
pub(super) const RAMP: Setter = field!(ramp_ns, value::duration);
pub(super) const NUMA: Setter = field!(numa, value::node);
pub(super) const CPUS: Setter = field!(cpus, value::cpus);
/// `full` is `pass` without a limit of its time, where another source set one.
pub(super) const VERIFY: Setter = Setter {
    bare: Some("pass"),
    ..setter(
        &["verify"],
        |job| job.verify = None,
        |job, value| {
            job.verify = Some(value::verify(value)?);
            job.fio_headers = value.starts_with("crc32c").then_some(true);
            job.against_file = (value == "file").then_some(true);
            if value == "full" {
                job.verify_ns = None;
            }
            Ok(())
        },
    )
};
pub(super) const CEILINGS: Setter =
    Setter { bare: Some("on"), ..field!(ceilings, value::ceilings) };
/// fio's order of files; by chance is over all of their blocks alike, where the order is random.
pub(super) const FILE_SERVICE: Setter = setter(
    &["files_in_turn"],
    |job| (job.files_in_turn, job.files_by_chance) = (None, false),
    |job, value| {
        job.files_by_chance = value == "random";
        job.files_in_turn =
            if job.files_by_chance { Some(true) } else { Some(value::file_service(value)?) };
        Ok(())
    },
);
/// fio's share of the I/Os that are to be fast enough: all of them is the default.
pub(super) const LATENCY_PERCENTILE: Setter = setter(
    &["latency_percentile"],
    |job| job.latency_percentile = None,
    |job, value| {
        job.latency_percentile = value::percentiles(value)?.first().copied();
        Ok(())
    },
);
/// fio takes any number for on, and some files have the time here.
pub(super) const TIME_BASED: Setter =
    Setter { bare: Some("1"), ..field!(time_based, value::on_or_number) };
pub(super) const SEED: Setter = field!(seed, value::integer);
pub(super) const ARRIVALS: Setter = field!(arrivals, value::arrivals);
pub(super) const READ_PERCENT: Setter = field!(read_percent, value::percent);
pub(super) const WRITE_PERCENT: Setter = Setter {
    apply: |job, value| {
        job.read_percent = Some(100 - value::percent(value)?);
        Ok(())
    },
    ..field!(read_percent, value::percent)
};
pub(super) const DISTRIBUTION: Setter = field!(distribution, value::distribution);
pub(super) const ALIGN: Setter = field!(align, value::size);
pub(super) const UNALIGNED: Setter = switch!(unaligned);
pub(super) const START_DELAY: Setter = field!(start_delay_ns, value::duration);
pub(super) const REFILL: Setter = switch!(refill);
pub(super) const SYNC: Setter = Setter { bare: Some("1"), ..field!(sync, value::sync) };

/// Driver and devices are set separately: a part that a value does not mention is kept.
pub(super) const GPU: Setter = setter(
    &["gpu"],
    |job| job.gpu = None,
    |job, text| {
        let new = value::gpu(text)?;
        let gpu = job.gpu.get_or_insert_default();
        gpu.driver = new.driver.or(gpu.driver);
        if new.which != GpuWhich::Unset {
            gpu.which = new.which;
        }
        Ok(())
    },
);
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
pub(super) const XFER_TYPE: Setter = setter(
    &["xfer_type", "paths"],
    |job| job.xfer_type = None,
    |job, text| {
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
);

/// An entry of the table for a supported key. The summary may be empty where a flag's help says it.
pub(super) const fn key(
    name: &'static str,
    dialect: Dialect,
    setter: Setter,
    summary: &'static str,
) -> Key {
    Key { summary, ..Key::new(name, dialect, Status::Supported(setter)) }
}
