//! Workloads with a name: job files, with their sources as comments.

/// A workload with a name.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// The job file. Its first line is a comment that says in one sentence what the workload is.
    pub text: &'static str,
}

impl Preset {
    /// Whether it reads files of the user's, and makes none.
    pub fn reads_files(&self) -> bool {
        self.end_of_files().is_some()
    }

    /// The end of the names of the files of the user's that it reads; empty for all.
    pub fn end_of_files(&self) -> Option<&'static str> {
        let (_, behind) = self.text.split_once("\nfilename=*")?;
        behind.lines().next()
    }

    /// The workload, in one sentence.
    pub fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}

/// A row of the table: the file of that name.
macro_rules! preset {
    ($name:literal) => {
        Preset { name: $name, text: include_str!(concat!("../../presets/", $name, ".ini")) }
    };
}

pub const PRESETS: &[Preset] = &[
    preset!("unet3d-a100"),
    preset!("unet3d-h100"),
    preset!("unet3d-b200"),
    preset!("resnet50-h100"),
    preset!("cosmoflow-h100"),
    preset!("retinanet-b200"),
    preset!("flux-b200"),
    preset!("dlrm-b200"),
    preset!("dali-inference"),
    preset!("kv-cache-llama3-8b"),
    preset!("kv-cache-llama3-8b-cpu"),
    preset!("kv-cache-llama3-70b"),
    preset!("kv-cache-deepseek-v3"),
    preset!("safetensors"),
    preset!("own-files"),
    preset!("seismic"),
    preset!("checkpoint-llama3-8b"),
    preset!("checkpoint-llama3-70b"),
    preset!("checkpoint-llama3-405b"),
    preset!("checkpoint-llama3-1t"),
    preset!("vector-search"),
];

/// The workload that has a preset for each model.
pub const OF_MODELS: &str = "kv-cache";

/// Its models.
pub fn models() -> Vec<&'static str> {
    let of = |name: &'static str| name.strip_prefix(OF_MODELS)?.strip_prefix('-');
    PRESETS.iter().filter_map(|preset| of(preset.name)).collect()
}

pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
