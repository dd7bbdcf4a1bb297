//! Flags of `gpuio workload`.

use clap::Args;

use super::{CufileFlags, FigureFlags, MachineFlags, Out};

/// A workload: a preset or a file of the user's own, and what is changed in it.
#[derive(Debug, Args)]
pub(crate) struct Workload {
    /// list; show, and a name; or the workload to run: a preset, or a job file of your own
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// With show: the preset. Of a workload that reads files of yours, such as safetensors: their
    /// directory
    #[arg(value_name = "PRESET|DIRECTORY")]
    pub(crate) shown: Option<String>,
    #[command(flatten)]
    pub(crate) feed: FeedFlags,
    #[command(flatten)]
    pub(crate) data: WorkloadData,
    #[command(flatten)]
    pub(crate) machine: MachineFlags,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
}

/// What of a training feed is changed. Each value is parsed as the key of the same name.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Workload", allow_negative_numbers = true)]
pub(crate) struct FeedFlags {
    /// Run the workload for each of these values of a key of the job file, as gpuio sweep does:
    /// readers=1..8*2, path=gather,gds; repeat for more keys. Several values of a number below,
    /// such as --batch 1..256*2, are the same
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// With several values: runs of each [3]
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<String>,
    /// Share of the data to use; every output says it [1]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<String>,
    /// Ranks of a checkpoint that run here: threads of a load of blocks [those of the preset]
    #[arg(long, visible_alias = "threads", value_name = "N")]
    pub(crate) ranks: Option<String>,
    /// Files of the whole data set: the snapshots of seismic, the users of kv-cache
    #[arg(long, visible_aliases = ["snapshots", "users"], value_name = "N")]
    pub(crate) files: Option<String>,
    /// Times in which 95 % and 99 % of the batches are to be read or written: interactive,
    /// responsive, batch, or two times: 50ms/100ms
    #[arg(long, value_name = "LEVEL")]
    pub(crate) slo: Option<String>,
    /// Of kv-cache: whose caches: llama3-8b, llama3-8b-cpu, llama3-70b or deepseek-v3; kv-cache
    /// --model llama3-8b is the preset kv-cache-llama3-8b
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How many times smaller samples are stored than they are
    #[arg(long, value_name = "FACTOR")]
    pub(crate) ratio: Option<String>,
    /// Accelerators that share the samples out, spread evenly over the GPUs; or auto: runs the
    /// workload again and again to find the most that keep the utilisation to reach [one for each
    /// GPU]
    #[arg(long, value_name = "N")]
    pub(crate) accelerators: Option<String>,
    /// Passes over the data set
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<String>,
    /// Samples of a step
    #[arg(long, visible_alias = "batch", value_name = "N")]
    pub(crate) batch_samples: Option<String>,
    /// Reader threads of each accelerator
    #[arg(long, value_name = "N")]
    pub(crate) readers: Option<String>,
    /// Batches that each reader may be ahead
    #[arg(long, value_name = "N")]
    pub(crate) prefetch: Option<String>,
    /// What accelerators do with a batch: kernel (arithmetic in registers) or memory (a stream over
    /// GPU memory), on all multiprocessors or a share of them: kernel:50%; sleep, as MLPerf
    /// Storage's do; or none [kernel; sleep on path host]
    #[arg(long, value_name = "WORK")]
    pub(crate) compute: Option<String>,
    /// How long that takes for a batch
    #[arg(long, value_name = "TIME")]
    pub(crate) compute_time: Option<String>,
    /// How much longer it takes for each sample of a batch
    #[arg(long, value_name = "TIME")]
    pub(crate) sample_compute_time: Option<String>,
    /// Data path, as in gpuio bench [staged; host with --gpu none]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Vec<String>,
    /// I/O engine between file and host memory [auto]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// Longest block that a sample is cut into [1M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// I/Os in flight per reader thread, as in gpuio bench
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<String>,
    /// End after this time, if the epochs are not over by then
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Seed of the order of the samples [1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<String>,
    /// Verify the data where it ends: inline (every block on arrival; not in latencies, but in the
    /// run time), pass (read again after the run) or off [inline]
    #[arg(long, value_name = "MODE")]
    pub(crate) verify: Option<String>,
}

/// The files.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct WorkloadData {
    /// Directory of the data set, created if missing [./gpuio-scratch, removed afterwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    /// Prefix of file names in the directory [that of the preset, or replay]
    #[arg(long, value_name = "NAME")]
    pub(crate) file_prefix: Option<String>,
    /// Use O_DIRECT [where the file system supports it]
    #[arg(long)]
    pub(crate) direct: bool,
    /// Use the page cache
    #[arg(long, conflicts_with = "direct")]
    pub(crate) buffered: bool,
    /// Read the files into the page cache before the measurement
    #[arg(long)]
    pub(crate) pre_read: bool,
    /// Drop the files from the page cache before the measurement
    #[arg(long, conflicts_with = "pre_read")]
    pub(crate) invalidate: bool,
    /// Keep the scratch files
    #[arg(long)]
    pub(crate) keep: bool,
    /// Set any key of the job-file format
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

impl WorkloadData {
    /// The same of the files alone.
    pub(super) fn keys(&self) -> Vec<(&'static str, String, &'static str)> {
        let valued = [
            ("directory", &self.directory.as_deref().map(gpuio_spec::one_name), "--directory"),
            ("file_prefix", &self.file_prefix, "--file-prefix"),
        ];
        let valued = valued.into_iter().filter_map(|(key, value, flag)| {
            value.as_ref().map(|value| (key, value.clone(), flag))
        });
        let switches = [
            ("direct", self.direct, "--direct"),
            ("buffered", self.buffered, "--buffered"),
            ("pre_read", self.pre_read, "--pre-read"),
            ("invalidate", self.invalidate, "--invalidate"),
            ("keep", self.keep, "--keep"),
        ];
        let on = switches.into_iter().filter(|(_, on, _)| *on);
        valued.chain(on.map(|(key, _, flag)| (key, String::new(), flag))).collect()
    }
}

impl Workload {
    /// The flags as (job-file key, value, flag) in the order of the help. Bare flags have an empty
    /// value.
    pub(crate) fn keys(&self) -> Vec<(&'static str, String, &'static str)> {
        let feed = &self.feed;
        let valued = [
            ("scale", &feed.scale, "--scale"),
            ("files", &feed.files, "--files"),
            ("ratio", &feed.ratio, "--ratio"),
            ("slo", &feed.slo, "--slo"),
            ("threads", &feed.ranks, "--ranks"),
            ("accelerators", &feed.accelerators, "--accelerators"),
            ("epochs", &feed.epochs, "--epochs"),
            ("batch_samples", &feed.batch_samples, "--batch-samples"),
            ("readers", &feed.readers, "--readers"),
            ("prefetch", &feed.prefetch, "--prefetch"),
            ("compute", &feed.compute, "--compute"),
            ("compute_time", &feed.compute_time, "--compute-time"),
            ("sample_compute_time", &feed.sample_compute_time, "--sample-compute-time"),
            ("engine", &feed.engine, "--engine"),
            ("bs", &feed.bs, "--bs"),
            ("depth", &feed.depth, "--depth"),
            ("runtime", &feed.runtime, "--runtime"),
            ("seed", &feed.seed, "--seed"),
            ("verify", &feed.verify, "--verify"),
        ];
        let some = |(key, value, flag): (&'static str, &Option<String>, &'static str)| {
            value.as_ref().map(|value| (key, value.clone(), flag))
        };
        let paths = feed.path.iter().map(|path| ("path", path.clone(), "--path"));
        let data = self.data.keys().into_iter();
        let machine = self.machine.keys();
        let machine = machine.into_iter().filter_map(some);
        valued.into_iter().filter_map(some).chain(paths).chain(machine).chain(data).collect()
    }
}
