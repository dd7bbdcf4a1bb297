//! The settings of a job, each as a `key = value` line.

use std::collections::BTreeMap;

use gpuio_record::{
    Arrivals, BlockShare, Compressible, DirectMode, Distribution, Fill, JobPlan, Order, Pacing,
    VerifyMode, WorkerPlan,
};
use gpuio_units::{format_bytes, format_cpu_list, format_duration_ns};

use super::comment;
use crate::workload::rw;

/// One setting.
pub(super) fn set(out: &mut String, key: &str, value: &str) {
    out.push_str(&format!("{key} = {value}\n"));
}

fn switch(out: &mut String, key: &str, on: bool) {
    set(out, key, if on { "1" } else { "0" });
}

/// A name or other free text: `${` would be replaced from the environment, so it is written as
/// `$${`.
pub(super) fn text(out: &mut String, key: &str, value: &str) {
    let line = super::one_line(value);
    if line != value || line.trim() != line || ends_in_comment(&line) {
        comment(out, &format!("the next line can't represent {key} exactly: {value:?}"));
    }
    set(out, key, &line.replace("${", "$${"));
}

/// Whether a reader of job files would take the end of this value for a comment.
fn ends_in_comment(value: &str) -> bool {
    [" #", " ;"].iter().any(|mark| value.contains(mark)) || value.starts_with(['#', ';'])
}

pub(super) fn write(out: &mut String, job: &JobPlan) {
    text(out, "path", &job.path.choice.actual);
    // A path of a library has no engine, and none may be named.
    if job.has_engine() {
        text(out, "engine", &job.engine.actual);
    }
    gpu_side(out, job);
    pinning(out, job);
    let depth = job.depth.to_string();
    if let Some(feed) = &job.feed {
        set(out, "depth", &depth);
        super::feed::write(out, job, feed);
    } else {
        set(out, "threads", &job.threads.to_string());
        set(out, "depth", &depth);
        load(out, job);
        targets(out, job);
        time(out, job);
    }
    if let Some(pacing) = &job.pacing {
        rate(out, pacing);
    }
    set(out, "seed", &job.seed.to_string());
    switch(out, "direct", job.direct == DirectMode::Direct);
    switch(out, "pre_read", job.pre_read);
    switch(out, "invalidate", job.invalidate);
    if job.feed.is_none() {
        switch(out, "sync", job.sync);
    }
    let verify = match job.verify {
        VerifyMode::Off => "off",
        VerifyMode::Pass => "pass",
        VerifyMode::Rewrite => "rewrite",
        VerifyMode::Inline => "inline",
    };
    let verify = if job.fio_headers { "crc32c" } else { verify };
    let verify = if job.against_file { "file" } else { verify };
    set(out, "verify", verify);
    if job.fio_headers && job.verify == VerifyMode::Off {
        switch(out, "do_verify", false);
    }
    if let Some(time) = job.verify_ns {
        set(out, "verify_time", &format_duration_ns(time));
    }
    if job.feed.is_none() {
        let fill = match job.fill {
            Fill::Pattern => "pattern",
            Fill::Random => "random",
        };
        set(out, "fill", fill);
        switch(out, "refill", job.refill);
    }
    if let Some(Compressible { percent, chunk_bytes }) = job.compressible {
        set(out, "buffer_compress_percentage", &percent.to_string());
        set(out, "buffer_compress_chunk", &chunk_bytes.to_string());
    }
    switch(out, "keep", job.keep);
    if job.feed.is_none() {
        let ceilings = job.ceilings_ns.map_or_else(|| "off".to_owned(), format_duration_ns);
        set(out, "ceilings", &ceilings);
    }
    if let Some(beside) = &job.beside {
        set(out, "beside", &beside.key());
        comment(
            out,
            "the job runs twice, first without the GPU computation; the computation alone is \
             measured for 2 s",
        );
    }
    if let Some(inject) = &job.inject {
        text(out, "inject", inject);
    }
}

/// GPUs, memory and what only paths to a GPU have.
fn gpu_side(out: &mut String, job: &JobPlan) {
    set(out, "gpu", &gpus(job));
    set(out, "memory", job.memory.name());
    if job.streams > 0 {
        set(out, "streams", &job.streams.to_string());
    }
    if let Some(batch) = job.gather_batch {
        set(out, "gather_batch", &batch.to_string());
    }
    if let Some(scatter) = job.gather_scatter {
        switch(out, "gather_scatter", scatter);
    }
    if let Some(via) = &job.via {
        set(out, "via_gpu", &via.gpu.index.to_string());
        set(out, "via_peer", if via.any { "any" } else { "peer" });
    }
    if let Some(fan_out) = job.fan_out {
        set(out, "via_peer", if fan_out.any { "any" } else { "peer" });
    }
    if let Some(register) = job.register_buffer {
        switch(out, "skip_bufregister", !register);
    }
}

/// cuFile settings; the same for all jobs.
pub(super) fn cufile(out: &mut String, settings: &BTreeMap<String, String>) {
    for (key, value) in settings {
        text(out, &format!("cufile.{key}"), value);
    }
}

/// Which GPUs, in the order in which threads take them.
fn gpus(job: &JobPlan) -> String {
    if job.gpus.is_empty() {
        return "none".to_owned();
    }
    let numbers: Vec<String> = job.gpus.iter().map(|gpu| gpu.index.to_string()).collect();
    let software = job.gpus.iter().any(|gpu| gpu.software);
    let driver = if software { "software:" } else { "" };
    format!("{driver}{}", numbers.join(","))
}

pub(super) fn direct_word(mode: DirectMode) -> &'static str {
    match mode {
        DirectMode::Direct => "direct",
        DirectMode::Buffered => "buffered",
    }
}

/// CPUs and NUMA node, if all threads share them. Threads in different locations were placed near
/// their GPUs: the plan will place them there again, and no key could.
fn pinning(out: &mut String, job: &JobPlan) {
    let Some(first) = job.workers.first() else {
        return;
    };
    let same =
        |worker: &WorkerPlan| worker.cpus == first.cpus && worker.numa_node == first.numa_node;
    if !job.workers.iter().all(same) {
        return;
    }
    if let Some(node) = first.numa_node {
        set(out, "numa", &node.to_string());
    }
    if !first.cpus.is_empty() {
        set(out, "cpus_allowed", &format_cpu_list(&first.cpus));
    }
}

/// What is read and written, in which sizes and order.
fn load(out: &mut String, job: &JobPlan) {
    set(out, "rw", rw(job));
    if job.directions().len() > 1 {
        set(out, "rwmixread", &job.read_percent.to_string());
    }
    blocks(out, &job.blocks);
    set(out, "blockalign", &format_bytes(job.align_bytes));
    switch(out, "unaligned", job.skew_bytes > 0);
    if job.skew_bytes > 0 {
        comment(out, &format!("unaligned: every offset moves by {} bytes", job.skew_bytes));
    }
    if let Order::Random { distribution, coverage } = &job.order {
        switch(out, "norandommap", !coverage);
        set(out, "random_distribution", &distribution_word(distribution));
    }
}

pub(super) fn blocks(out: &mut String, blocks: &[BlockShare]) {
    match blocks {
        [one] => set(out, "bs", &range(one)),
        shares => {
            let shares: Vec<String> =
                shares.iter().map(|share| format!("{}/{}", range(share), share.percent)).collect();
            set(out, "bssplit", &shares.join(":"));
        }
    }
}

fn range(share: &BlockShare) -> String {
    if share.min_bytes == share.max_bytes {
        return format_bytes(share.min_bytes);
    }
    let [min, max, step] = [share.min_bytes, share.max_bytes, share.step_bytes].map(format_bytes);
    format!("{min}:{max}:{step}")
}

/// Numbers as Rust prints an `f64`: the shortest text that reads back to the same value.
fn distribution_word(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Uniform => "random".to_owned(),
        Distribution::Zipf { theta } => format!("zipf:{theta}"),
        Distribution::Pareto { h } => format!("pareto:{h}"),
        Distribution::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
    }
}

/// A name, in whose key colons separate several.
pub(super) fn name(name: &str) -> String {
    name.replace(':', "\\:")
}

fn targets(out: &mut String, job: &JobPlan) {
    if let Some(directory) = &job.directory {
        text(out, "directory", &name(directory));
        text(out, "file_prefix", &job.file_prefix);
    } else {
        let names: Vec<String> = job.targets.iter().map(|target| name(&target.path)).collect();
        text(out, "filename", &names.join(":"));
    }
    if let Some(replay) = &job.replay {
        comment(out, &crate::workload::replay(replay));
        comment(out, "a job file has no calls of a trace: repeat this with gpuio replay");
        switch(out, "shared_fd", job.shared_fd);
        return;
    }
    if let Some(ranges) = job.ranges {
        set(out, "ranges", ranges.kind.word());
        set(out, "loops", &ranges.passes.to_string());
        switch(out, "shared_fd", job.shared_fd);
        return;
    }
    match &job.part {
        None => match job.size_percent {
            Some(percent) => set(out, "size", &format!("{percent}%")),
            None => set(out, "size", &format_bytes(job.size_bytes)),
        },
        Some(part) => {
            set(out, "size", &format_bytes(part.full_size_bytes));
            set(out, "full_threads", &part.full_threads.to_string());
            set(out, "scale", &part.scale.to_string());
            comment(out, &crate::workload::part(job, part));
        }
    }
    if let Some(length) = job.file_bytes {
        set(out, "filesize", &format_bytes(length));
    }
    if let Some(files) = job.files_per_thread {
        set(out, "nrfiles", &files.to_string());
    }
    if job.files_in_turn {
        set(out, "file_service_type", "roundrobin");
    }
    if let Some(apart) = job.offset_increment {
        set(out, "offset_increment", &format_bytes(apart));
    }
    set(out, "offset", &format_bytes(job.offset_bytes));
    let layout = job.layout.as_ref();
    match layout.filter(|layout| layout.kind.is_shared()) {
        Some(layout) => set(out, "layout", layout.kind.word()),
        None => switch(out, "shared_files", job.shared_files),
    }
    if let Some(shift) = layout.and_then(|layout| layout.read_shift.as_ref()) {
        set(out, "read_shift", shift);
    }
    switch(out, "shared_fd", job.shared_fd);
}

fn time(out: &mut String, job: &JobPlan) {
    if let Some(bytes) = job.stop.bytes_per_thread {
        set(out, "io_size", &format_bytes(bytes));
    }
    if let Some(runtime) = job.stop.runtime_ns {
        set(out, "runtime", &format_duration_ns(runtime));
        // Without a byte limit the load repeats until the time is up.
        switch(out, "time_based", job.stop.bytes_per_thread.is_none());
        if job.stop.wear_out {
            switch(out, "wear_out", true);
        }
    }
    if let Some(steady) = &job.steady {
        set(out, "steadystate", &steady.requested);
        set(out, "steadystate_duration", &format_duration_ns(steady.window_ns));
        set(out, "steadystate_ramp_time", &format_duration_ns(steady.ramp_ns));
        set(out, "steadystate_check_interval", &format_duration_ns(steady.check_ns));
    }
    set(out, "ramp_time", &format_duration_ns(job.ramp_ns));
    set(out, "startdelay", &format_duration_ns(job.start_delay_ns));
    habits(out, job);
}

/// Pauses, flushes and logs.
fn habits(out: &mut String, job: &JobPlan) {
    if !job.percentiles.is_empty() {
        let all: Vec<String> = job.percentiles.iter().map(ToString::to_string).collect();
        set(out, "percentiles", &all.join(","));
    }
    if let Some(think) = &job.think {
        set(out, "thinktime", &format_duration_ns(think.pause_ns));
        set(out, "thinktime_spin", &format_duration_ns(think.spin_ns));
        set(out, "thinktime_blocks", &think.every_ios.to_string());
    }
    if let Some(flush) = &job.flush {
        if let Some(ios) = flush.every_ios {
            set(out, if flush.data_only { "fdatasync" } else { "fsync" }, &ios.to_string());
        }
        switch(out, "end_fsync", flush.at_end);
    }
    if let Some(logs) = &job.logs {
        let all = [("bw", &logs.bw), ("lat", &logs.lat), ("iops", &logs.iops)];
        for (kind, name) in all.into_iter().filter_map(|(kind, name)| Some((kind, name.as_ref()?)))
        {
            text(out, &format!("write_{kind}_log"), name);
        }
        if let Some(line) = logs.line_ns {
            set(out, "log_avg_msec", &format_duration_ns(line));
        }
    }
}

fn rate(out: &mut String, pacing: &Pacing) {
    if let Some(bytes) = pacing.bytes_per_s {
        set(out, "rate", &format_bytes(bytes));
    }
    if let Some(iops) = pacing.iops {
        set(out, "rate_iops", &iops.to_string());
    }
    let arrivals = match pacing.arrivals {
        Arrivals::Steady => "steady",
        Arrivals::Poisson => "poisson",
    };
    set(out, "rate_process", arrivals);
}
