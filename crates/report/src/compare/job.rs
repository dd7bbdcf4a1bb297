//! Describes one job and direction of a record, for comparison with another.

use crate::foreign::Direction;
use gpuio_base::document::unique;
use gpuio_base::units::{format_bytes, format_duration_ns, human_bytes};
use gpuio_record::{
    Arrivals, BlockShare, DirectMode, Distribution, EndedHow, Follow, JobPlan, JobResult, Order,
    Pacing, Record, Route, Source, Towards, VerifyMode, VerifyOutcome, VerifySubject,
};

use crate::compare::aspect::{DUE, NOTHING, SOFTWARE, WITHOUT_CUFILE, rw_words, yes_no};
use crate::number::{many, requested_rate};
use crate::standing;
use crate::workload::sizes_short;

/// Separates two of cuFile's settings.
pub(crate) const SETTINGS_BREAK: &str = "; ";

/// The value for direct I/O, which has no share in the page cache.
pub(crate) const AROUND_THE_CACHE: &str = "goes around it";

/// One direction of a job, with the record around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) record: &'a Record,
    pub(crate) plan: &'a JobPlan,
    pub(crate) result: &'a JobResult,
    pub(crate) direction: Direction,
}

impl Job<'_> {
    pub(crate) fn is_mix(&self) -> bool {
        !matches!(self.plan.read_percent, 0 | 100..)
    }

    /// How many processes ran it.
    pub(crate) fn ranks(&self) -> String {
        self.record.ranks.as_ref().map_or(1, |all| all.ranks).to_string()
    }

    /// On how many hosts.
    pub(crate) fn hosts(&self) -> String {
        self.record.ranks.as_ref().map_or(1, |all| all.hosts.len()).to_string()
    }

    /// None of a single process, whose record does not have it.
    pub(crate) fn host_names(&self) -> Option<String> {
        let hosts = &self.record.ranks.as_ref()?.hosts;
        Some(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn gpu_uuids(&self) -> Option<String> {
        let uuids = self.plan.gpus.iter().filter(|gpu| !gpu.software).map(|gpu| gpu.uuid.as_str());
        let uuids = unique(uuids);
        (!uuids.is_empty()).then(|| uuids.join(", "))
    }

    pub(crate) fn ended(&self) -> String {
        let mut words = vec![
            match self.result.ended {
                EndedHow::Complete => "complete",
                EndedHow::Interrupted => "interrupted",
                EndedHow::Failed => "failed",
                EndedHow::Unfinished => "unfinished",
            }
            .to_owned(),
        ];
        if self.result.failed > 0 {
            words.push(format!("{} failed", many(self.result.failed, "I/O")));
        }
        let verify = self.result.verify.as_ref();
        let (bad, at_least) = verify.map_or((0, false), VerifyOutcome::different_bad);
        if bad > 0 {
            let least = if at_least { "at least " } else { "" };
            words.push(format!("{least}{} had wrong data", many(bad, "block")));
        }
        if let Some(other) = verify.and_then(|verify| verify.written_as.as_ref()) {
            let blocks = many(other.blocks, "block was|blocks were");
            words.push(format!("{blocks} not checked: written with another bs"));
        }
        words.join(", ")
    }

    pub(crate) fn gpu_kind(&self) -> String {
        let stand_in = self.record.cufile.as_ref().is_some_and(|cufile| cufile.stand_in);
        let software = self.plan.uses_software_gpu() || stand_in;
        let words = if software && !self.plan.gpus.is_empty() { SOFTWARE } else { "hardware" };
        words.to_owned()
    }

    pub(crate) fn rw(&self) -> String {
        let random = matches!(self.plan.order, Order::Random { .. });
        let mix = self.is_mix().then_some(self.plan.read_percent);
        rw_words(self.direction, random, mix)
    }

    /// The block size; of several, each with its share.
    pub(crate) fn block(&self) -> Option<String> {
        if self.direction == Direction::Both && !self.plan.write_blocks.is_empty() {
            return Some(sizes_short(self.plan));
        }
        block_words(self.plan.sizes_of(self.direction == Direction::Write))
    }

    /// The engine that ran; a library moves the bytes itself.
    pub(crate) fn engine(&self) -> Option<String> {
        if self.plan.path.choice.actual.starts_with("gds") || !self.plan.has_engine() {
            return None;
        }
        // The part after the name is the set-up: `io_uring (fixed buffers)`.
        let name = |actual: &'_ str| actual.split([' ', '(']).next().unwrap_or(actual).to_owned();
        let mut names: Vec<String> =
            self.result.engine.iter().map(|one| name(&one.actual)).collect();
        names.sort_unstable();
        names.dedup();
        Some(if names.is_empty() { self.plan.engine.actual.clone() } else { names.join("+") })
    }

    /// The destination memory, of the kinds that a GPU path has.
    pub(crate) fn memory(&self) -> Option<String> {
        (!self.plan.gpus.is_empty()).then(|| self.plan.memory.name().to_owned())
    }

    /// The order of offsets, and the distribution of random ones.
    pub(crate) fn order(&self) -> String {
        let mut words = order_words(&self.plan.order, self.plan.follow);
        if self.plan.skew_bytes > 0 {
            words.push_str(", off the 4 KiB grid");
        }
        if self.plan.chain {
            words.push_str(", each out of the bytes before");
        }
        words
    }

    pub(crate) fn rate(&self) -> String {
        let reads = rate_words(self.plan.pacing.as_ref());
        match &self.plan.write_pacing {
            None => reads,
            writes => format!("reads {reads}, writes {}", rate_words(writes.as_ref())),
        }
    }

    pub(crate) fn sync(&self) -> Option<String> {
        (self.direction != Direction::Read).then(|| yes_no(self.plan.sync).to_owned())
    }

    pub(crate) fn path(&self) -> String {
        self.plan.path.choice.actual.clone()
    }

    pub(crate) fn taken(&self) -> Option<String> {
        let verdict = &self.result.proof.as_ref()?.verdict;
        Some(match verdict.route {
            Route::Direct => "direct".to_owned(),
            Route::HostMemory if verdict.source == Source::Holes => return self.source(),
            Route::HostMemory => "page cache".to_owned(),
            Route::Mapped => "page cache, no host copy".to_owned(),
            Route::BounceHost => "bounce (host)".to_owned(),
            // The number of that GPU is the device's, not another path.
            Route::BounceGpu { .. } => "bounce (another GPU)".to_owned(),
            Route::Mixed => "mixed".to_owned(),
            Route::Unknown => return None,
        })
    }

    pub(crate) fn source(&self) -> Option<String> {
        let verdict = &self.result.proof.as_ref()?.verdict;
        Some(
            match verdict.source {
                Source::Storage => "storage",
                Source::StorageThroughPageCache => "storage, through the page cache",
                Source::PageCache => "page cache",
                Source::Mixed => "part storage, part page cache or holes",
                Source::Holes => "holes, no device",
                Source::Unknown => return None,
            }
            .to_owned(),
        )
    }

    /// The share of buffered files in the page cache, in three steps; direct I/O bypasses it.
    pub(crate) fn resident(&self) -> Option<String> {
        if self.result.direct_actual == DirectMode::Direct {
            return Some(AROUND_THE_CACHE.to_owned());
        }
        let share = self.result.cache.resident_before?;
        let words = match share {
            _ if share < 0.05 => "below 5 % cached",
            _ if share > 0.95 => "above 95 % cached",
            _ => "5 to 95 % cached",
        };
        Some(words.to_owned())
    }

    pub(crate) fn direct(&self) -> String {
        match self.result.direct_actual {
            DirectMode::Direct => "direct".to_owned(),
            DirectMode::Buffered => "buffered".to_owned(),
        }
    }

    pub(crate) fn verify(&self) -> String {
        let inline = self.plan.verify == VerifyMode::Inline;
        // Writes that are read back get their data between I/Os. Old records do not say what was
        // verified.
        let back = |found: &VerifyOutcome| found.subject == VerifySubject::TimedWrites;
        let refilled = self.plan.refill || self.result.verify.as_ref().is_some_and(back);
        let words: Vec<&str> = [(inline, "verified"), (refilled, "refilled")]
            .into_iter()
            .filter_map(|(is, word)| is.then_some(word))
            .collect();
        if words.is_empty() { "no".to_owned() } else { words.join(", ") }
    }

    pub(crate) fn beside(&self) -> String {
        self.plan.beside.map_or_else(|| NOTHING.to_owned(), |beside| beside.key())
    }

    /// The larger load that the job is a part of.
    pub(crate) fn part(&self) -> String {
        self.plan.part.map_or_else(
            || NOTHING.to_owned(),
            |part| {
                let bytes = self.plan.size_bytes;
                format!(
                    "scale {}, {bytes} of {} bytes, of {} threads",
                    part.scale, part.full_size_bytes, part.full_threads
                )
            },
        )
    }

    /// How much of the data repeats, which storage may compress: by the plan, or by what the files
    /// held that it reads. Coarse, since a few blocks were looked at.
    pub(crate) fn data(&self) -> Option<String> {
        if let Some(it) = self.plan.compressible {
            return Some(format!("{} % of each {} bytes", it.percent, it.chunk_bytes));
        }
        let repeated = match (self.direction, self.result.cache.content) {
            (Direction::Write, _) => 0.0,
            (_, Some(found)) => found.repeated(),
            (_, None) if standing::is_foreign(self.plan) => return None,
            (_, None) => 0.0,
        };
        let words = match repeated {
            _ if repeated < 0.1 => NOTHING,
            _ if repeated > 0.95 => "all of it, as zeros do",
            _ => "a part of it",
        };
        Some(words.to_owned())
    }

    /// The parts of a replay that decide its load; the name of the trace doesn't.
    pub(crate) fn replay(&self) -> String {
        self.plan.replay.as_ref().map_or_else(
            || NOTHING.to_owned(),
            |replay| {
                format!(
                    "{} calls, {} bytes read, {} written, order {}, pace {}",
                    replay.calls,
                    replay.read_bytes,
                    replay.written_bytes,
                    replay.order.word(),
                    replay.pace.word()
                )
            },
        )
    }

    pub(crate) fn feed(&self) -> String {
        self.plan.feed.as_ref().map_or_else(|| NOTHING.to_owned(), |feed| feed.words().join(", "))
    }

    pub(crate) fn inject(&self) -> String {
        self.plan.inject.clone().unwrap_or_else(|| "none".to_owned())
    }

    /// Models of the job's GPUs, sorted, how often each.
    pub(crate) fn gpus(&self) -> String {
        let mut names: Vec<&str> = self.plan.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        names.sort_unstable();
        if names.is_empty() {
            return "none".to_owned();
        }
        let groups = names.chunk_by(|a, b| a == b);
        groups.map(|group| format!("{} × {}", group.len(), group[0])).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn cpus(&self) -> Option<String> {
        let cpu = &self.record.host.cpu;
        let count = cpu.allowed.as_ref().or(cpu.online.as_ref())?.len();
        let model = cpu.model.as_deref().unwrap_or("unknown model");
        Some(format!("{count} × {model}"))
    }

    /// Major and minor number of the kernel.
    pub(crate) fn kernel(&self) -> Option<String> {
        let release = self.record.host.kernel.release.as_deref()?;
        let mut parts = release.split(['.', '-']);
        Some(format!("{}.{}", parts.next()?, parts.next()?))
    }

    pub(crate) fn release(&self) -> Option<String> {
        self.record.host.kernel.release.clone()
    }

    pub(crate) fn cuda(&self) -> Option<String> {
        self.record.driver_version.map(|(major, minor)| format!("{major}.{minor}"))
    }

    pub(crate) fn cufile(&self) -> Option<String> {
        let cufile = self.record.cufile.as_ref()?;
        let version = |version: Option<(u32, u32)>, none: &str| {
            version.map_or_else(|| none.to_owned(), |(major, minor)| format!("{major}.{minor}"))
        };
        let library = version(cufile.version, "unknown");
        let module = version(cufile.nvidia_fs, "not loaded");
        let whose = if cufile.gpuio { "gpuio's cuFile" } else { "cuFile" };
        Some(format!("{whose} {library}, nvidia-fs {module}"))
    }

    /// The cuFile settings of the job, a key in each part. The location of its log differs in each
    /// run.
    pub(crate) fn settings(&self) -> Option<String> {
        if self.plan.register_buffer.is_none() {
            return Some(WITHOUT_CUFILE.to_owned());
        }
        let config = &self.record.cufile.as_ref()?.config;
        let parts = config.iter().filter(|(key, _)| *key != "logging.dir");
        let parts: Vec<String> = parts.map(|(key, value)| format!("{key}={value}")).collect();
        Some(parts.join(SETTINGS_BREAK))
    }

    pub(crate) fn size(&self) -> String {
        format_bytes(self.plan.size_bytes)
    }

    pub(crate) fn stop(&self) -> String {
        let stop = self.plan.stop;
        let mut words = Vec::new();
        words.extend(stop.runtime_ns.map(format_duration_ns));
        words.extend(stop.wear_out.then(|| "then the bytes of the fastest thread".to_owned()));
        words
            .extend(stop.bytes_per_thread.map(|bytes| format!("{} a thread", format_bytes(bytes))));
        let steady = self.plan.steady.as_ref();
        words.extend(steady.map(|steady| format!("once {} is steady", steady.requested)));
        if self.plan.ramp_ns > 0 {
            words.push(format!("ramp {}", format_duration_ns(self.plan.ramp_ns)));
        }
        words.join(", ")
    }

    pub(crate) fn tuning(&self) -> Option<String> {
        if self.plan.gpus.is_empty() {
            return None;
        }
        let streams = self.plan.streams;
        let mut words = vec![format!("{streams} stream{}", if streams == 1 { "" } else { "s" })];
        words.extend(self.plan.gather_batch.map(|batch| format!("batches of {batch}")));
        words.extend(self.plan.rings.map(|rings| format!("{rings} rings")));
        let unregistered = self.plan.register_buffer == Some(false);
        words.extend(unregistered.then(|| "memory not registered".to_owned()));
        Some(words.join(", "))
    }

    pub(crate) fn machine_memory(&self) -> Option<String> {
        let bytes = self.record.host.memory.usable_bytes?;
        Some(human_bytes(bytes as f64))
    }

    /// From when latencies count, where that is not submission: a paced I/O waits for it.
    pub(crate) fn since(&self) -> Option<String> {
        let towards =
            if self.direction == Direction::Write { Towards::Write } else { Towards::Read };
        let latency = towards.of(self.result).latency.as_ref()?;
        latency.queue.is_some().then(|| DUE.to_owned())
    }

    /// The rate that one direction has to keep.
    pub(crate) fn pacing(&self) -> Option<&Pacing> {
        let own = self.plan.write_pacing.as_ref().filter(|_| self.direction == Direction::Write);
        own.or(self.plan.pacing.as_ref())
    }

    pub(crate) fn container(&self) -> Option<String> {
        let container = self.record.host.kernel.containment.container.clone();
        Some(container.unwrap_or_else(|| "none".to_owned()))
    }

    pub(crate) fn tool(&self) -> String {
        format!("{} {}", self.record.tool.name, self.record.tool.version)
    }
}

/// The order of offsets.
pub(crate) fn order_words(order: &Order, follow: Option<Follow>) -> String {
    let mut words = Vec::new();
    match order {
        Order::Sequential => words.push("in order".to_owned()),
        Order::Random { distribution, coverage } => {
            words.push(match distribution {
                Distribution::Uniform => "uniform".to_owned(),
                other => other.key(),
            });
            words.extend((!coverage).then(|| "blocks may repeat".to_owned()));
        }
    }
    words.extend(follow.map(|follow| follow.words()));
    words.join(", ")
}

/// Block sizes, of several each with its share; `None` of none.
pub(crate) fn block_words(shares: &[BlockShare]) -> Option<String> {
    let one = |share: &BlockShare| match share.min_bytes == share.max_bytes {
        true => format_bytes(share.min_bytes),
        false => format!("{}-{}", format_bytes(share.min_bytes), format_bytes(share.max_bytes)),
    };
    match shares {
        [] => None,
        [share] => Some(one(share)),
        shares => {
            let words = shares.iter().map(|share| format!("{}/{}", one(share), share.percent));
            Some(words.collect::<Vec<_>>().join(":"))
        }
    }
}

/// A rate, or that there is none.
pub(crate) fn rate_words(pacing: Option<&Pacing>) -> String {
    let Some(Pacing { bytes_per_s, iops, arrivals }) = pacing else { return "none".to_owned() };
    let mut words = Vec::new();
    words.extend(bytes_per_s.map(requested_rate));
    words.extend(iops.map(|iops| format!("{iops} IOPS")));
    if words.is_empty() {
        return "none".to_owned();
    }
    if *arrivals == Arrivals::Poisson {
        words.push("poisson".to_owned());
    }
    words.join(", ")
}
