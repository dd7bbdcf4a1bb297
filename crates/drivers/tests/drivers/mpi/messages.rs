//! Messages between ranks, with each MPI of this machine. The test runs itself under `mpirun`; what
//! is not installed is reported as SKIPPED.

use std::process::Command;
use std::time::{Duration, Instant};

use gpuio_drivers::mpi::{Launcher, World};

/// Set for the ranks: the test function then is one of them.
const RANK: &str = "GPUIO_TEST_RANK";

fn receive(world: &mut World) -> (u32, Vec<u8>) {
    let began = Instant::now();
    loop {
        if let Some(message) = world.receive().unwrap() {
            return message;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "no message arrived");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn message(rank: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at + rank as usize) % 251).unwrap()).collect()
}

/// Empty, short, and far beyond what a library sends at once.
const LENGTHS: [usize; 4] = [0, 1, 4096, 9_000_001];

/// Every other rank sends messages to rank 0, which sends each back to its sender.
#[test]
#[ignore = "a rank: the other tests start it"]
fn rank() {
    if std::env::var_os(RANK).is_none() {
        return;
    }
    let launcher = Launcher::found(&|name| std::env::var(name).ok()).expect("a launcher");
    let named = std::env::var("GPUIO_MPI").ok();
    let joined = World::join(&launcher, named.as_deref());
    let mut world = joined.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((world.rank(), world.size()), (launcher.rank, 4));
    if world.rank() == 0 {
        let mut seen = [0; 4];
        for _ in 0..3 * LENGTHS.len() {
            let (from, bytes) = receive(&mut world);
            assert!(bytes == message(from, LENGTHS[seen[from as usize]]), "of rank {from}");
            seen[from as usize] += 1;
            world.send(from, &bytes).unwrap();
        }
        assert_eq!(seen, [0, 4, 4, 4]);
        // Not by `println`: the harness prints half a line before it.
        eprintln!("all echoed, {}", world.library());
    } else {
        for length in LENGTHS {
            world.send(0, &message(world.rank(), length)).unwrap();
        }
        for length in LENGTHS {
            assert!(receive(&mut world) == (0, message(world.rank(), length)), "{length}");
        }
    }
    while !world.has_sent().unwrap() {
        std::thread::yield_now();
    }
    world.finalize();
}

/// Four ranks by this command; its output, or `None` where the command is not installed.
fn four(mpirun: &str, flags: &[&str]) -> Option<(bool, String)> {
    let mut command = Command::new(mpirun);
    command.args(flags).args(["-n", "4"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "mpi::messages::rank", "--ignored", "--nocapture"]).env(RANK, "1");
    match command.output() {
        Ok(output) => {
            let both = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&both).into_owned()))
        }
        Err(error) => {
            eprintln!("SKIPPED: {mpirun}: {error}");
            None
        }
    }
}

const OPEN_MPI: [&str; 2] = ["--oversubscribe", "--allow-run-as-root"];

#[test]
fn with_open_mpi() {
    let Some((fine, output)) = four("mpirun.openmpi", &OPEN_MPI) else { return };
    assert!(fine && output.contains("all echoed, Open MPI v"), "{output}");
}

#[test]
fn with_mpich() {
    let Some((fine, output)) = four("mpirun.mpich", &[]) else { return };
    assert!(fine && output.contains("(MPICH ABI)"), "{output}");
}

/// `GPUIO_TEST_MPI_ABI` names a directory with the standard's library and its `mpiexec`, as the
/// wheel `mpich` has them.
#[test]
fn with_the_standard_interface() {
    let Some(home) = std::env::var_os("GPUIO_TEST_MPI_ABI").map(std::path::PathBuf::from) else {
        eprintln!("SKIPPED: GPUIO_TEST_MPI_ABI is not set");
        return;
    };
    let library = home.join("lib/libmpi_abi.so.1").display().to_string();
    let flags = ["-env", "GPUIO_MPI", &library];
    let mpiexec = home.join("bin/mpiexec").display().to_string();
    let Some((fine, output)) = four(&mpiexec, &flags) else { return };
    assert!(fine && output.contains("(MPI 5 ABI)"), "{output}");
}

/// The libraries of one MPI under the launcher of another see one process each.
#[test]
fn a_library_of_another_launcher_is_named() {
    let flags = ["-env", "GPUIO_MPI", "libmpi.so.40"];
    let Some((fine, output)) = four("mpirun.mpich", &flags) else { return };
    if output.contains("cannot open shared object") {
        eprintln!("SKIPPED: no libmpi.so.40");
        return;
    }
    assert!(!fine && output.contains("does not belong to this launcher"), "{output}");
}
