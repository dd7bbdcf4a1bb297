//! Examples below the flags of each verb.

pub(super) const BENCH: &str = "Examples:
  gpuio bench                                        # a minute: every path that can run here
  gpuio bench --gpu software                         # the GPU paths, without a GPU
  gpuio bench --path staged --gpu 0 --directory /mnt/nvme --bs 1M --threads 4 --runtime 30s
  gpuio bench --path staged,gds --gpu 0 --filename /mnt/nvme/file --rw randread --bs 4k -o r.json
  gpuio bench job.fio                                # fio's job files and gdsio's config files
  gpuio bench --rw=randread --bs=4k --ioengine=libaio --iodepth=32 --numjobs=4 --size=1G   # fio's
  gpuio bench job.ini --dry-run                      # every setting that would be used
Each key of job files is a flag too: --KEY=VALUE (docs/job-file.md).
Exit codes: 0 fine, 1 an I/O or verification error or a run that Ctrl-C or another signal ended
(results until then are printed and saved), 2 wrong usage, 3 not available on this machine.";

pub(super) const CHECK: &str = "Examples:
  gpuio check                             # everything that slows storage-to-GPU I/O here
  gpuio check --mount /data --gpu 0       # which ways of the bytes will work between the two
  gpuio check --mount /data --gpu 0 --prove
  gpuio check --explain iommu             # what a rule checks, why, and how to fix it
  gpuio check --from post.txt             # another machine, and the results in the text
  gpuio check --format json -o check.json";

pub(super) const COLLECT: &str = "Examples:
  gpuio collect -o collect.sh             # give this to the other side
  sh collect.sh > machine.txt             # there, without root
  gpuio check --from machine.txt          # here; also gpuio topo and gpuio plan";

pub(super) const COMPARE: &str = "Examples:
  gpuio compare before.json after.json
  gpuio compare before/ after/ --threshold 5%       # exit code 1 if it became slower: for CI
  gpuio compare fio.json gpuio.json                 # also gdsio's output and elbencho's CSV
  gpuio compare gpuio-sweep --axis path=gds,gather";

pub(super) const EXEC: &str = "Examples:
  gpuio exec -- python train.py
  gpuio exec --prefetch /models/llama -- python serve.py
  gpuio exec --verbose -- fio job.fio
  gpuio exec --gpu software -- ./test      # without a GPU
  eval \"$(gpuio exec --env)\"               # for all programs of this shell";

pub(super) const EXPLAIN: &str = "Examples:
  gpuio explain                           # every warning and rule
  gpuio explain direct_but_cached         # a warning of a run
  gpuio explain iommu                     # a rule of gpuio check
  gpuio explain of best                   # a head or a word of a report";

pub(super) const GENERATE: &str = "Examples:
  source <(gpuio generate bash)           # completions for this shell; zsh, too
  gpuio generate fish > ~/.config/fish/completions/gpuio.fish
  gpuio generate man ~/.local/share/man/man1";

pub(super) const LIST: &str = "Examples:
  gpuio list";

pub(super) const NETWORK: &str = "Examples:
  gpuio network --serve 0.0.0.0:7400      # on one machine; ends after a client, or in 10 minutes
  gpuio network filer1:7400               # on the other: reads, then writes
  gpuio network filer1:7400 --streams 16 --direction read --runtime 10s -o net.json
  gpuio network filer1:7400 -o net.ini    # as a ceiling: gpuio plan --spec net.ini";

pub(super) const PLAN: &str = "Examples:
  gpuio plan                              # which storage for which GPU, and what to expect
  gpuio plan --mount /raid --rw randread --bs 4k
  gpuio plan -o jobs.ini                  # and a job file: gpuio bench jobs.ini
  gpuio plan --from machine.tar           # another machine: gpuio topo --capture machine.tar";

pub(super) const PREFETCH: &str = "Examples:
  gpuio prefetch /models/llama            # before a program starts
  gpuio prefetch trace                    # what the last start read, in that order
  gpuio exec --prefetch trace -- python serve.py    # while it starts";

pub(super) const REPORT: &str = "Examples:
  gpuio report r.json                               # report.html
  gpuio report gpuio-sweep -o sweep.html
  gpuio report before.json after.json --format markdown
  gpuio report r.json --format openmetrics";

pub(super) const SHOW: &str = "Examples:
  gpuio show r.json
  gpuio show r.json --evidence
  gpuio show r.json --format csv -o r.csv";

pub(super) const STATS: &str = "Examples:
  gpuio stats                             # all processes, one line each
  gpuio stats 4711 --interval 1s          # one process, until it ends
  gpuio stats 4711 --level 3 --format json
  gpuio stats --serve 9401                # all processes, for Prometheus";

pub(super) const SWEEP: &str = "Examples:
  gpuio sweep --vary bs=4k..1M*4 --vary depth=1,8,32 --gpu 0
  gpuio sweep --vary 'gpu=0,{0,1}' --path gather    # quoted: the shell would expand the braces
  gpuio sweep --preset paths --directory /mnt/nvme
  gpuio sweep --latency-target p99=200us --over depth=1..64 --rw randread --bs 4k
  gpuio sweep --vary threads=1,4,16 --confidence 2% --budget 20min";

pub(super) const TOP: &str = "Examples:
  gpuio top                               # a full screen of active devices; q quits
  gpuio top nvme0n1 GPU0 --interval 500ms
  gpuio top --format json --count 10 > devices.jsonl
  gpuio top --serve 9400                  # for Prometheus";

pub(super) const TOPO: &str = "Examples:
  gpuio topo
  gpuio topo GPU0 nvme0n1                 # the route between two devices
  gpuio topo -o machine.svg               # a picture
  gpuio topo --capture machine.tar        # to be read elsewhere with --from";

pub(super) const REPLAY: &str = "Examples:
  gpuio exec --record trace -- python train.py      # record the program's cuFile calls
  gpuio replay trace --gpu 0 --path gather,mapped,gds --directory /mnt/other
  gpuio replay trace --gpu 0 --pace recorded --order threads -o r.json
  gpuio replay fio.iolog --gpu 0 --path staged --depth 32 --directory /mnt/nvme/replay
  gpuio replay trace --gpu software --directory /tmp/replay        # no GPU";
pub(super) const WORKLOAD: &str = "Examples:
  gpuio workload list                     # the presets, and what each is
  gpuio workload unet3d-h100 --try --gpu 0 --directory /mnt/nvme/unet3d   # half a minute
  gpuio workload show unet3d-h100 > my.ini
  gpuio workload unet3d-h100 --gpu 0 --directory /mnt/nvme/unet3d --scale 0.01
  gpuio workload my.ini --gpu all --readers 8 --keep -o r.json
  gpuio workload dali-inference --gpu 0 --directory /mnt/nvme/numpy --batch 1..256*2
  gpuio workload safetensors /models/llama --gpu 0,1        # your files, only read
  gpuio workload checkpoint-llama3-8b --gpu all --directory /mnt/nvme/save --scale 0.1
  gpuio workload cosmoflow-h100 --gpu software --directory /tmp/feed --scale 0.00005  # no GPU";
