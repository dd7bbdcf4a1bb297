//! `gpuio network` against other ends that do not do their part, and without threads: each of the
//! two ends by itself, in a time that is its own to decide.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use crate::many_threads::with_threads;
use crate::network::Server;
use crate::tool::{Ran, calm, command, finish, gpuio, scratch, wait, words};

const HELLO: &str = "gpuio network 1";

/// A connection, line by line.
struct Line(BufReader<TcpStream>);

impl Line {
    fn on(stream: TcpStream) -> Line {
        Line(BufReader::new(stream))
    }

    /// The next line; nothing once the other end has closed.
    fn read(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).is_ok_and(|read| read > 0).then(|| line.trim().to_owned())
    }

    /// The other end may have gone.
    fn send(&mut self, line: &str) {
        let _ = self.0.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    /// Until the other end has closed.
    fn wait(&mut self) {
        while self.read().is_some() {}
    }
}

/// Sends until nobody takes it any more.
/// A pause after each write leaves the processors to the other tests.
fn send_for_ever(mut stream: TcpStream) {
    while stream.write_all(&[0; 65536]).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The server's actions once its two streams are open; it gets the first connection too.
type Does = fn(&mut Line, Vec<TcpStream>);

/// A server that follows the protocol until `Go`.
fn hostile_server(does: Does) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let server = spawn(move || {
        let mut first = Line::on(listener.accept().unwrap().0);
        assert_eq!(first.read().as_deref(), Some(HELLO));
        first.send(HELLO);
        assert!(first.read().unwrap().contains("Ask"));
        first.send("{\"Ready\":7}");
        let streams = (0..2).map(|_| {
            let mut line = Line::on(listener.accept().unwrap().0);
            assert_eq!(line.read().as_deref(), Some("gpuio network 1 stream 7"));
            line.0.into_inner()
        });
        does(&mut first, streams.collect());
    });
    (at, server)
}

fn never_stops(first: &mut Line, streams: Vec<TcpStream>) {
    first.send("\"Go\"");
    streams.into_iter().for_each(|stream| drop(spawn(|| send_for_ever(stream))));
    first.wait();
}

const SERVERS: [(&str, &str, Does); 7] = [
    ("read", "did not end within", never_stops),
    ("read", "no answer in time", |first, streams| {
        // It never says that it begins.
        first.wait();
        drop(streams);
    }),
    ("read", "no byte arrived", |first, streams| {
        first.send("\"Go\"");
        first.wait();
        drop(streams);
    }),
    ("read", "no answer in time", |first, streams| {
        first.send("\"Go\"");
        drop(streams);
        first.wait();
    }),
    ("read", "its answer is none", |first, _| {
        // A line that never ends.
        while first.0.get_mut().write_all(&[b'x'; 65536]).is_ok() {}
    }),
    ("write", "does not answer", |first, streams| {
        // It reads nothing, and never says that it is enough.
        first.send("\"Go\"");
        first.wait();
        drop(streams);
    }),
    ("write", "did not end within", |first, streams| {
        first.send("\"Go\"");
        first.send("\"Stop\"");
        first.wait();
        drop(streams);
    }),
];

#[test]
fn a_client_ends_whatever_the_server_does() {
    let _calm = calm();
    let run = |(direction, says, does): (&'static str, &'static str, Does)| {
        spawn(move || {
            let dir = scratch();
            let (at, server) = hostile_server(does);
            let line =
                format!("network {at} --direction {direction} --streams 2 --runtime 1s --ramp 0s");
            gpuio(dir.path(), &line).exits(1).prints(&[says]);
            server.join().unwrap();
        })
    };
    let all: Vec<_> = SERVERS.into_iter().map(run).collect();
    all.into_iter().for_each(|one| one.join().unwrap());
}

/// One signal, not two, ends a client that would measure for an hour.
#[test]
fn a_signal_ends_a_client_whose_server_never_stops_sending() {
    let _calm = calm();
    let dir = scratch();
    let (at, server) = hostile_server(never_stops);
    let line = format!("network {at} --direction read --streams 2 --runtime 1h");
    let mut client = command(dir.path());
    let client = client.args(words(&line)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = client.spawn().unwrap();
    // Its threads run once it receives.
    let threads = Path::new("/proc").join(child.id().to_string()).join("task");
    while std::fs::read_dir(&threads).unwrap().count() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    wait(child, Instant::now()).exits(1).prints(&["did not end within 2 s"]);
    server.join().unwrap();
}

/// The first connection of a client that asks for two streams, and these; none where the server
/// does not get so far.
fn hostile_client(at: &str, direction: &str) -> (Line, Vec<TcpStream>) {
    let mut first = Line::on(TcpStream::connect(at).unwrap());
    first.send(HELLO);
    assert_eq!(first.read().as_deref(), Some(HELLO));
    let none = r#"{"secs":0,"nanos":0}"#;
    let one = r#"{"secs":1,"nanos":0}"#;
    first.send(&format!(
        "{{\"Ask\":{{\"direction\":\"{direction}\",\"streams\":2,\"ramp\":{none},\
         \"runtime\":{one}}}}}"
    ));
    let ready = first.read().unwrap();
    let id = ready.strip_prefix("{\"Ready\":").unwrap().trim_end_matches('}').to_owned();
    let stream = |_| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(format!("{HELLO} stream {id}\n").as_bytes()).unwrap();
        stream
    };
    let streams = (0..2).map(stream).collect();
    assert_eq!(first.read().as_deref(), Some("\"Go\""));
    (first, streams)
}

fn sends_for_ever(at: &str) {
    let (mut first, streams) = hostile_client(at, "Write");
    let sending: Vec<_> =
        streams.into_iter().map(|stream| spawn(|| send_for_ever(stream))).collect();
    first.wait();
    sending.into_iter().for_each(|one| one.join().unwrap());
}

#[test]
fn a_server_outlives_clients_that_do_not_do_their_part() {
    type Client = fn(&str);
    let _calm = calm();
    let clients: [(&str, Client); 5] = [
        ("did not end within", sends_for_ever),
        ("no byte arrived", |at| {
            let (mut first, streams) = hostile_client(at, "Write");
            first.wait();
            drop(streams);
        }),
        ("timed out", |at| {
            // It reads nothing, and never says that it is enough.
            let (mut first, streams) = hostile_client(at, "Read");
            first.wait();
            drop(streams);
        }),
        ("did not end within", |at| {
            let (mut first, streams) = hostile_client(at, "Read");
            first.send("\"Stop\"");
            first.wait();
            drop(streams);
        }),
        ("asks for nothing", |at| {
            // A line that never ends, a byte at a time.
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(format!("{HELLO}\n").as_bytes()).unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }),
    ];
    let run = |(says, client): (&'static str, Client)| {
        spawn(move || {
            let dir = scratch();
            let server = Server::here(dir.path(), "0");
            client(&server.at);
            // An answer is enough: a whole load for each of these servers takes all processors.
            let line = format!("network {} --streams 65 --runtime 1s", server.at);
            gpuio(dir.path(), &line).exits(1).prints(&["more than 64 streams"]);
            server.signal(Signal::TERM);
            let (code, text) = server.ends();
            assert!(code.is_some() && text.contains(says), "{says}: {code:?} {text}");
            assert!(!text.contains("panicked"), "{says}: {text}");
        })
    };
    let all: Vec<_> = clients.into_iter().map(run).collect();
    all.into_iter().for_each(|one| one.join().unwrap());
}

#[test]
fn a_signal_ends_a_server_whose_client_never_stops_sending() {
    let _calm = calm();
    let dir = scratch();
    let server = Server::here(dir.path(), "0");
    let (mut first, streams) = hostile_client(&server.at, "Write");
    let sending: Vec<_> =
        streams.into_iter().map(|stream| spawn(|| send_for_ever(stream))).collect();
    // It has received for its second now.
    assert_eq!(first.read().as_deref(), Some("\"Stop\""));
    server.signal(Signal::TERM);
    let (code, text) = server.ends();
    assert!(code == Some(1) && text.contains("did not end within 2 s"), "{code:?} {text}");
    sending.into_iter().for_each(|one| one.join().unwrap());
}

#[test]
fn the_server_says_how_many_streams_a_client_may_have() {
    let _calm = calm();
    let dir = scratch();
    let server = Server::here(dir.path(), "0 --max-streams 2");
    let line = |streams: u32| {
        let at = &server.at;
        format!("network {at} --streams {streams} --direction write --runtime 1s --ramp 0s")
    };
    gpuio(dir.path(), &line(3)).exits(1).prints(&["more than 2 streams", "--max-streams"]);
    gpuio(dir.path(), &line(2)).exits(0);
    assert_eq!(server.ends().0, Some(0));
    gpuio(dir.path(), "network --serve 0 --max-streams 0").exits(2);
    gpuio(dir.path(), "network --serve 0 --max-streams 257").exits(2);
    gpuio(dir.path(), "network a:1 --max-streams 2").exits(2).prints(&["--max-streams"]);
}

fn many(at: &str, direction: &str) -> String {
    format!("{at} --streams 64 --direction {direction} --runtime 1s --ramp 0s")
}

#[test]
fn a_server_without_threads_refuses_and_lives() {
    let _calm = calm();
    let dir = scratch();
    let Some(mut shell) = with_threads(dir.path(), 64_901, 8) else { return };
    let server = Server::start(shell.arg("network"), "0 --count 3");
    for direction in ["read", "write"] {
        let ran = gpuio(dir.path(), &format!("network {}", many(&server.at, direction))).exits(1);
        ran.prints(&["the server refuses", "of 64", "could not be started", "--streams"]);
    }
    let few = many(&server.at, "read").replace("64", "4");
    gpuio(dir.path(), &format!("network {few}")).exits(0);
    server.signal(Signal::TERM);
    let (code, text) = server.ends();
    assert_eq!((code, text.contains("panicked")), (Some(0), false), "{text}");
}

/// A connection that can't be accepted now is accepted later.
#[test]
fn a_server_without_descriptors_waits_for_them() {
    let _calm = calm();
    let dir = scratch();
    let server = Server::here(dir.path(), "0");
    let descriptors = |most| {
        let limit = Rlimit { current: Some(most), maximum: Some(1024) };
        prlimit(Some(server.pid()), Resource::Nofile, limit).unwrap();
    };
    descriptors(3);
    let mut waits = Line::on(TcpStream::connect(&server.at).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    descriptors(1024);
    waits.send(HELLO);
    assert_eq!(waits.read().as_deref(), Some(HELLO));
    drop(waits);
    let line = format!("network {} --direction read --runtime 1s --ramp 0s", server.at);
    gpuio(dir.path(), &line).exits(0);
    assert_eq!(server.ends().0, Some(0));
}

#[test]
fn a_client_without_threads_says_so() {
    let _calm = calm();
    let dir = scratch();
    let Some(mut shell) = with_threads(dir.path(), 64_902, 8) else { return };
    let server = Server::here(dir.path(), "0 --count 9");
    for direction in ["read", "write"] {
        let ran: Ran =
            finish(shell.arg("network").args(words(&many(&server.at, direction)))).exits(1);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        ran.prints(&["could not be started", "ulimit -u"]);
        shell = with_threads(dir.path(), 64_902, 8).unwrap();
    }
    let few = many(&server.at, "read").replace("64", "4");
    gpuio(dir.path(), &format!("network {few}")).exits(0);
    server.signal(Signal::TERM);
    let (code, text) = server.ends();
    assert_eq!((code, text.contains("panicked")), (Some(0), false), "{text}");
}
