//! Outputs of tools that looked on, each in a text of its own, joined to the one run of the others.

use gpuio_base::document::unique;

use super::hold::{CARRIES, agree, is_alike};
use super::seen::Traffic;
use super::{Beside, Got, Post, Run, Seen, Sight};

/// Moves the tools of texts that have nothing else beside the run of the others, where there is
/// one and nothing speaks against it. Why the rest is not joined stands in it.
pub fn join(mut posts: Vec<Post>) -> Vec<Post> {
    let looks_on = |post: &Post| !post.is_empty() && post.runs.iter().all(Run::only_looks_on);
    let has_run = |post: &Post| !post.is_empty() && !looks_on(post);
    let with_runs: Vec<usize> = (0..posts.len()).filter(|at| has_run(&posts[*at])).collect();
    let Some(first) = with_runs.first().copied() else { return posts };
    let results = |at: &usize| posts[*at].runs.iter().filter(|run| run.got.is_some()).count();
    let results: usize = with_runs.iter().map(results).sum();
    for at in (0..posts.len()).filter(|at| looks_on(&posts[*at])).collect::<Vec<_>>() {
        let why = match (posts[first].runs.as_slice(), results) {
            ([run], 1) => against(run, &posts[at]),
            _ => Some(format!("there are {results} results it may be of")),
        };
        // Parts of one text were parted, since they contradict each other.
        if posts[at].name == posts[first].name {
            continue;
        }
        if why.is_some() {
            posts[at].apart = why;
            continue;
        }
        let from = posts[first].most_line;
        let name = posts[at].name.clone();
        let all = std::mem::take(&mut posts[at].runs).into_iter().flat_map(|run| run.beside);
        let all: Vec<Seen> = all.map(|seen| Seen { line: seen.line + from, ..seen }).collect();
        let lines = posts[at].most_line;
        let own = &mut posts[first];
        own.runs[0].beside.extend(all);
        own.joined.push(Beside { name, from });
        own.most_line = from + lines;
    }
    posts
}

/// The reason why tools did not look on while a run was under way.
fn against(run: &Run, tools: &Post) -> Option<String> {
    let hosts = tools.runs.iter().filter_map(|one| one.host.as_ref());
    let other = hosts.zip(run.host.iter().cycle()).find(|(one, own)| one != own);
    if let Some((one, own)) = other {
        return Some(format!("it is of host {one}, and the result of {own}"));
    }
    let got = run.got.as_ref()?;
    if let Some(why) = elsewhere(run, got, tools) {
        return Some(why);
    }
    let other = tools.runs.iter().flat_map(|one| &one.beside).find(|seen| !is_of(seen, got))?;
    Some(format!("the rates of {} and of the result do not agree", other.tool))
}

/// The reason where GPUs carry so much, and none of them is one that the run names.
fn elsewhere(run: &Run, got: &Got, tools: &Post) -> Option<String> {
    let targets = &run.asked.as_ref().filter(|asked| !asked.gpus.is_empty())?.gpus;
    let rate = got.rate?;
    let seen = tools.runs.iter().flat_map(|one| &one.beside);
    let traffic = seen.filter_map(|seen| match &seen.sight {
        Sight::Gpus(gpus) => Some(gpus),
        _ => None,
    });
    let carries = |gpu: &&Traffic| gpu.received.max(gpu.sent) >= CARRIES * rate;
    let carrying: Vec<u32> = traffic.flatten().filter(carries).map(|gpu| gpu.gpu).collect();
    let names = |gpus: &[u32]| unique(gpus.iter().map(|gpu| format!("GPU {gpu}"))).join(" and ");
    (!carrying.is_empty() && !carrying.iter().any(|gpu| targets.contains(gpu))).then(|| {
        format!("the traffic is of {}, and the run's GPU is {}", names(&carrying), names(targets))
    })
}

/// Whether the figures of a tool may be of a result.
fn is_of(seen: &Seen, got: &Got) -> bool {
    match &seen.sight {
        Sight::Disks(disks) => agree(disks, got),
        Sight::CuFile(stats) => {
            let own = stats.read_rate.into_iter().chain(stats.write_rate).reduce(f64::max);
            own.zip(got.rate).is_none_or(|(own, rate)| is_alike(own / rate))
        }
        Sight::Gpus(_) | Sight::Module(_) | Sight::SinceBoot => true,
    }
}

impl Run {
    fn only_looks_on(&self) -> bool {
        let is_load = self.got.is_some() || self.asked.is_some() || self.in_words.is_some();
        !is_load && !self.beside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::post::{About, Statement, hold, read};

    const RUN: &str = "dgx2> gdsio -D /d -d 12 -w 8 -s 500M -i 1M -x 0 -I 0 -T 120\nIoType: READ \
                       XferType: GPUD Threads: 8 DataSetSize: 491438080/4096000(KiB) IOSize: \
                       1024(KiB) Throughput: 3.893747 GiB/sec, Avg_Latency: 2003.091575 usecs \
                       ops: 479920 total_time 120.365276 secs\n";
    const DMON: &str = "dgx2> dcgmi dmon -e 1009,1010 -d 1000\n# Entity PCITX PCIRX\n      \
                        Id\n    GPU 0 4712070210 5237742827\n    GPU 12 528378278 4721644934\n";

    fn said(texts: &[(&str, &str)]) -> Vec<Statement> {
        let posts = texts.iter().map(|(name, text)| read(name, text)).collect();
        hold(&super::join(posts), &[])
    }

    #[test]
    fn tools_of_another_text_are_read_as_beside_the_only_run() {
        let all = said(&[("tool.txt", DMON), ("run.txt", RUN)]);
        let path = all.iter().find(|one| one.about == About::Path).unwrap();
        assert!(path.words.contains("through the memory of GPU 0"), "{all:?}");
        assert!(path.words.ends_with("(tool.txt:2)."), "{path:?}");
        assert_eq!((path.file.as_str(), path.lines.as_slice()), ("run.txt", &[2][..]));
        let is = |words: &str| all.iter().any(|one| one.words.contains(words));
        assert!(is("tool.txt is read as printed during the run of run.txt"), "{all:?}");
        assert!(!is("is not decided by what is here"), "{all:?}");
    }

    #[test]
    fn what_speaks_against_it_is_said() {
        let disk =
            |rate: u32| format!("Device r/s rMB/s %util\nnvme0n1 31000.00 {rate}.00 99.90\n");
        for (texts, why) in [
            ([("a", RUN), ("b", &*disk(900))], "the rates of iostat and of the result do not"),
            ([("a", RUN), ("b", &*DMON.replace("dgx2", "dgx3"))], "of host dgx3"),
            ([("a", &*RUN.repeat(2)), ("b", DMON)], "2 results it may be of"),
            (
                [("a", &*RUN.replace("-d 12", "-d 2")), ("b", DMON)],
                "the traffic is of GPU 0 and GPU 12, and the run's GPU is GPU 2",
            ),
        ] {
            let all = said(&texts);
            let left = all.iter().find(|one| one.about == About::LeftOut);
            assert!(left.is_some_and(|one| one.words.contains(why)), "{why}: {all:?}");
        }
        let all = said(&[("a", RUN), ("b", &disk(3990))]);
        assert!(all.iter().all(|one| one.about != About::LeftOut), "{all:?}");
    }
}
