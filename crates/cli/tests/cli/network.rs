//! `gpuio network`: two processes, their counts against each other's, against the kernel's
//! counters of an interface, and against a rate that a queueing discipline sets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tool::{GPUIO, Ran, command, finish, gpuio, other, plain, scratch, skip, wait, words};

/// A server, and where it says that it listens.
pub(crate) struct Server {
    child: Child,
    pub(crate) at: String,
    pub(crate) err: BufReader<std::process::ChildStderr>,
}

impl Server {
    pub(crate) fn start(command: &mut Command, flags: &str) -> Server {
        let command = command.args(words("--serve")).args(words(flags));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let at = line.split(" at ").nth(1).and_then(|rest| rest.split(' ').next());
        Server { at: at.unwrap_or_else(|| panic!("{line}")).to_owned(), child, err }
    }

    pub(crate) fn here(dir: &Path, flags: &str) -> Server {
        Server::start(command(dir).arg("network"), flags)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Its exit code and what it printed since.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.err.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn both_ends_agree(rate: &Value) -> f64 {
    let count = |key: &str| rate[key].as_u64().unwrap_or_else(|| panic!("{key} in {rate:#}"));
    assert_eq!(count("sent_bytes"), count("received_bytes"));
    assert!(count("sent_bytes") > 0 && count("data_segments") > 0, "{rate:#}");
    let rates = rate["intervals_bytes_per_s"].as_array().unwrap();
    let of = |key: &str| rate[key].as_f64().unwrap();
    let median = of("bytes_per_s");
    assert!(of("lowest_bytes_per_s") <= median && median <= of("highest_bytes_per_s"));
    let below = rates.iter().filter(|one| one.as_f64().unwrap() <= median).count();
    assert!(2 * below >= rates.len() && !rates.is_empty(), "{rate:#}");
    assert!(of("client_cpu_s_per_gb") > 0.0 && of("server_cpu_s_per_gb") > 0.0);
    median
}

#[test]
fn both_ends_count_the_same_bytes() {
    let dir = scratch();
    let server = Server::here(dir.path(), "0");
    assert!(server.at.starts_with("127.0.0.1:"), "only this machine: {}", server.at);
    let line = format!("network {} --runtime 1s --ramp 0s --streams 3 --format json", server.at);
    let ran = gpuio(dir.path(), &line).exits(0);
    let result = ran.json();
    both_ends_agree(&result["read"]);
    both_ends_agree(&result["write"]);
    assert_eq!(result["client"]["interface"], "lo");
    assert_eq!(result["streams"], 3);
    assert!(result["notes"][0].as_str().unwrap().contains("no network was measured"));
    let (code, text) = server.ends();
    assert_eq!((code, text.contains("served 127.0.0.1:")), (Some(0), true), "{text}");
    // Nobody listens any more.
    let gone = line.replace("--format json", "");
    gpuio(dir.path(), &gone).exits(3).prints(&["gpuio network --serve ADDRESS:PORT"]);
}

#[test]
fn what_is_not_gpuio_is_refused_on_both_sides() {
    let dir = scratch();
    let mut server = Server::here(dir.path(), "0 --count 2");
    for garbage in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0xff; 100_000], Vec::new()] {
        let mut stream = TcpStream::connect(&server.at).unwrap();
        // It may close before it has read all of it.
        let _ = stream.write_all(&garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut line = String::new();
        while !line.contains("is no client of this version") {
            line.clear();
            assert!(server.err.read_line(&mut line).unwrap() > 0);
        }
    }
    // The request has the right version, but asks for streams that do not exist.
    let mut stream = TcpStream::connect(&server.at).unwrap();
    let ask = r#"{"Ask":{"direction":"Read","streams":1000000,"ramp":{"secs":0,"nanos":0},"#;
    let ask = format!("{ask}\"runtime\":{{\"secs\":1,\"nanos\":0}}}}}}");
    stream.write_all(format!("gpuio network 1\n{ask}\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let refused = "{\"Refused\":\"more than 64 streams; its --max-streams says how many\"}";
    assert_eq!(text, format!("gpuio network 1\n{refused}\n"));
    let line = |at: &str| format!("network {at} --runtime 1s --ramp 0s --direction read");
    // More than its time.
    let long = line(&server.at).replace("1s", "1h");
    gpuio(dir.path(), &long).exits(1).prints(&["refuses: it ends in", "--timeout"]);
    let saved = format!("{} -o r.json", line(&server.at));
    gpuio(dir.path(), &saved).exits(0);
    gpuio(dir.path(), &saved).exits(2).prints(&["r.json: the file exists already"]);
    gpuio(dir.path(), &format!("{saved} --force")).exits(0);
    assert_eq!(server.ends().0, Some(0), "refused ones do not count");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap();
    let mut client = command(dir.path());
    let client = client.args(words(&line(&at.to_string())));
    let child = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stream, _) = other.accept().unwrap();
    stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    let ran = wait(child, Instant::now()).exits(3);
    let words = "is no server of gpuio network; start `gpuio network --serve ADDRESS:PORT`";
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    ran.prints(&[words]);
}

#[test]
fn wrong_words_are_usage_errors() {
    let dir = scratch();
    gpuio(dir.path(), "network filer1").exits(2).prints(&["filer1: give host and port"]);
    gpuio(dir.path(), "network").exits(2).prints(&["HOST:PORT"]);
    gpuio(dir.path(), "network a:1 --serve 0").exits(2);
    gpuio(dir.path(), "network a:1 --count 2").exits(2).prints(&["--count"]);
    gpuio(dir.path(), "network a:1 --runtime 0.5").exits(2).prints(&["at least 1 s"]);
    let line = "network a:1 --format json -o r.ini";
    gpuio(dir.path(), line).exits(2).prints(&["the file's name says spec"]);
    gpuio(dir.path(), "network --serve 0 --timeout 1s").exits(1).prints(&["no client was served"]);
}

/// Two hosts with a cable of 200 Mb/s in both directions: network namespaces, veth(4), tc-tbf(8).
struct Cable([String; 2]);

const CABLE: &str = "set -e
    ip netns add $A
    ip netns add $B
    ip link add v netns $A type veth peer name v netns $B
    ip -n $A addr add 10.78.0.1/24 dev v
    ip -n $B addr add 10.78.0.2/24 dev v
    for host in $A $B; do
        ip -n $host link set lo up
        ip -n $host link set v up
        ip netns exec $host tc qdisc add dev v root tbf rate 200mbit burst 64kb latency 100ms
    done";

impl Cable {
    fn new() -> Option<Cable> {
        let names = ["a", "b"].map(|host| format!("gpuio-net-{}-{host}", std::process::id()));
        let mut shell = plain("sh");
        shell.args(["-c", CABLE]).env("A", &names[0]).env("B", &names[1]);
        let cable = Cable(names);
        let why = match shell.output() {
            Ok(output) if output.status.success() => return Some(cable),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "),
            Err(error) => error.to_string(),
        };
        skip(&format!("no network namespaces with a veth and tc here, which needs root: {why}"));
        None
    }

    fn command(&self, host: usize, dir: &Path) -> Command {
        let mut command = other(dir, "ip");
        command.current_dir(dir).args(["netns", "exec", &self.0[host], GPUIO, "network"]);
        command
    }

    /// The output of a program on this host.
    fn run(&self, host: usize, line: &str) -> String {
        let mut command = plain("ip");
        command.args(["netns", "exec", &self.0[host]]).args(words(line));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Bytes that this host's end of the cable has received and sent.
    fn counters(&self, host: usize) -> [u64; 2] {
        let text = self.run(host, "cat /proc/net/dev");
        let line = text.lines().find_map(|line| line.trim().strip_prefix("v:")).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        [numbers[0], numbers[8]]
    }

    /// Segments that this host has sent again (`RetransSegs` of RFC 4022).
    fn sent_again(&self, host: usize) -> u64 {
        let text = self.run(host, "cat /proc/net/snmp");
        let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
        let names = lines.next().unwrap().split_whitespace();
        let mut both = names.zip(lines.next().unwrap().split_whitespace());
        both.find(|(name, _)| *name == "RetransSegs").unwrap().1.parse().unwrap()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = plain("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
fn a_rate_from_outside_is_what_it_measures() {
    const TRIES: u64 = 5;
    let Some(cable) = Cable::new() else { return };
    let dir = scratch();
    let flags = format!("10.78.0.2:0 --count {}", TRIES + 2);
    let server = Server::start(&mut cable.command(1, dir.path()), &flags);
    let line = format!("{} --runtime 2s --ramp 0.5 --streams 2", server.at);
    let run = |more: &str| -> Ran {
        finish(cable.command(0, dir.path()).args(words(&line)).args(words(more))).exits(0)
    };
    // Out of each 1514 bytes that the discipline counts, 1448 are data: MTU 1500 less the headers
    // of IPv4 and TCP with time stamps (20, 32), and 14 of Ethernet.
    let data = 200e6 / 8.0 * 1448.0 / 1514.0;
    // Other programs may keep both ends from running: one of a few tries must be right.
    let mut tried = Vec::new();
    let right = (0..TRIES).any(|_| {
        let before = cable.counters(0);
        let result = run("--format json").json();
        let after = cable.counters(0);
        tried.push(["read", "write"].map(|name| both_ends_agree(&result[name]) / data));
        let mut wire = Vec::new();
        for (name, counter) in [("read", 0), ("write", 1)] {
            let rate = &result[name];
            // The interface saw these bytes, headers, and what the other direction acknowledged.
            let moved = (after[counter] - before[counter]) as f64;
            // Where a host has no time to run, TCP sends more than once.
            let of_wire = rate["received_bytes"].as_f64().unwrap() / moved;
            assert!((0.5..1.0).contains(&of_wire), "{name}: {of_wire} of {moved}: {result:#}");
            wire.push(of_wire);
            let own = rate["client_interface_bytes"][counter].as_f64().unwrap();
            assert!(own <= moved && own > 0.95 * moved, "{name}: {own} of {moved}");
            assert_eq!(rate["path_mtu_bytes"], 1500);
        }
        assert_eq!(result["client"]["address"], "10.78.0.1");
        assert_eq!(result["client"]["interface"], "v");
        assert_eq!(result["server_port"]["address"], "10.78.0.2");
        wire.iter().all(|share| *share > 0.93)
            && tried.last().unwrap().iter().all(|share| (0.95..1.01).contains(share))
    });
    assert!(right, "shares of {data} bytes per second: {tried:?}");

    run("--direction read --bind 10.78.0.1 -o net.ini");
    let spec = std::fs::read_to_string(dir.path().join("net.ini")).unwrap();
    assert!(spec.contains("[port v]\nread = ") && !spec.contains("write"), "{spec}");
    assert!(spec.contains("source = measured by TCP with 2 streams on 20"), "{spec}");
    let plan = gpuio(dir.path(), "plan --spec net.ini --format json");
    assert_ne!(plan.code, 2, "the figures are read, whether there is storage or not: {plan:#?}");

    // A queue that holds less than TCP sends at once drops packets.
    cable.run(0, "tc qdisc replace dev v root tbf rate 200mbit burst 64kb latency 1ms");
    let before = cable.sent_again(0);
    let result = run("--direction write --format json").json();
    let of_host = cable.sent_again(0) - before;
    let own = result["write"]["retransmitted_segments"].as_u64().unwrap();
    // The host's also has the first connection's, and those before the handshakes ended.
    assert!(0 < own && own <= of_host && of_host - own <= 20, "{own} of {of_host}");
}
