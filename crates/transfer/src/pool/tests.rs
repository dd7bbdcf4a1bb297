use super::*;

fn pool(held: u32) -> WorkerPool {
    WorkerPool::new(&Settings {
        max_active: held,
        max_workers: held,
        workers_per_gpu: held,
        oversubscription: None,
        oversubscribed_per_gpu: held,
        ..Settings::default()
    })
}

#[test]
fn pieces_are_short_for_a_single_call_and_long_among_many() {
    let pool = pool(10);
    let most = 1 << 20;
    let piece = |len, most| pool.split(len, Bottleneck::Cpu, CopyMethod::Host, true, most);
    assert_eq!(piece(4 << 20, most), (Executors::CallerAndWorkers, 128 << 10));
    assert_eq!(piece(64 << 10, most), (Executors::CallerAndWorkers, 128 << 10));
    assert_eq!(piece(1 << 40, most), (Executors::CallerAndWorkers, most));
    assert_eq!(piece(4 << 20, 64 << 10), (Executors::CallerAndWorkers, 64 << 10));
    pool.calls.store(15, Ordering::Relaxed);
    assert_eq!(piece(4 << 20, most), (Executors::CallerAndWorkers, most));
    // In parts all the same.
    assert_eq!(piece(1 << 20, most), (Executors::CallerAndWorkers, 256 << 10));
}

#[test]
fn with_many_calls_reads_to_a_gpu_are_left_to_workers() {
    let pool = pool(10);
    let most = 1 << 20;
    let executors = |bottleneck, method| pool.split(4 << 20, bottleneck, method, true, most).0;
    pool.calls.store(7, Ordering::Relaxed);
    assert_eq!(executors(Bottleneck::Cpu, CopyMethod::Kernel), Executors::CallerAndWorkers);
    // The callers fill the link.
    pool.calls.store(8, Ordering::Relaxed);
    assert_eq!(executors(Bottleneck::Cpu, CopyMethod::Kernel), Executors::CallerOnly);
    pool.calls.store(10, Ordering::Relaxed);
    assert_eq!(
        pool.split(4 << 20, Bottleneck::Cpu, CopyMethod::Kernel, true, most),
        (Executors::WorkersOnly, 256 << 10)
    );
    // Nor is the only one so long that its copies take longer than its reads.
    pool.calls.store(0, Ordering::Relaxed);
    for (method, piece) in [(CopyMethod::Kernel, 256 << 10), (CopyMethod::CopyEngines, most)] {
        assert_eq!(
            pool.split(4 << 30, Bottleneck::Cpu, method, true, most),
            (Executors::CallerAndWorkers, piece)
        );
    }
    pool.calls.store(10, Ordering::Relaxed);
    assert_eq!(executors(Bottleneck::Cpu, CopyMethod::Host), Executors::CallerAndWorkers);
    assert_eq!(executors(Bottleneck::Device, CopyMethod::Kernel), Executors::CallerAndWorkers);
    assert_eq!(executors(Bottleneck::FileLock, CopyMethod::Kernel), Executors::CallerOnly);
}

#[test]
fn with_several_calls_copy_engines_get_long_pieces_from_the_callers() {
    let pool = pool(10);
    let most = 1 << 20;
    let split = |bottleneck| pool.split(1 << 20, bottleneck, CopyMethod::CopyEngines, true, most);
    pool.calls.store(2, Ordering::Relaxed);
    assert_eq!(split(Bottleneck::Cpu), (Executors::CallerAndWorkers, 128 << 10));
    for calls in [3, 15] {
        pool.calls.store(calls, Ordering::Relaxed);
        assert_eq!(split(Bottleneck::Cpu), (Executors::CallerOnly, 512 << 10));
        assert_eq!(split(Bottleneck::Device).0, Executors::CallerAndWorkers);
    }
}

#[test]
fn pieces_that_wait_for_a_device_are_long_and_those_of_a_single_write_short() {
    let pool = pool(10);
    let most = 1 << 20;
    assert_eq!(
        pool.split(1 << 20, Bottleneck::Device, CopyMethod::Kernel, true, most),
        (Executors::CallerAndWorkers, 256 << 10)
    );
    assert_eq!(
        pool.split(1 << 20, Bottleneck::FileLock, CopyMethod::Kernel, true, most),
        (Executors::CallerOnly, 256 << 10)
    );
    pool.calls.store(15, Ordering::Relaxed);
    assert_eq!(
        pool.split(1 << 20, Bottleneck::Device, CopyMethod::Kernel, true, most),
        (Executors::CallerAndWorkers, most)
    );
    assert_eq!(
        pool.split(1 << 20, Bottleneck::FileLock, CopyMethod::Kernel, true, most),
        (Executors::CallerOnly, most)
    );
}

#[test]
fn permits_are_limited() {
    let pool = pool(2);
    let (first, second) = (pool.try_acquire(), pool.try_acquire());
    assert!(first.is_some() && second.is_some() && pool.try_acquire().is_none());
    first.unwrap().release();
    let third = pool.try_acquire();
    assert!(third.is_some() && pool.try_acquire().is_none());
    drop((second, third));
    assert_eq!(pool.held.load(Ordering::Relaxed), 0);
}

/// A call that never ends, for a GPU.
#[derive(Debug)]
struct Endless(Option<u32>);

impl Work for Endless {
    fn has_more(&self) -> bool {
        true
    }

    fn device(&self) -> Option<u32> {
        self.0
    }

    fn work(self: Arc<Self>, _: &'static Devices, _: &mut DeferredCompletion) {}

    fn owner(&self) -> WorkOwner {
        WorkOwner::Caller
    }

    fn is_unstarted(&self) -> bool {
        false
    }
}

#[test]
fn workers_go_to_the_gpu_with_the_fewest_and_no_more_than_its_link_needs() {
    let settings = Settings { workers_per_gpu: 2, ..Settings::default() };
    let pool = WorkerPool::new(&Settings { max_active: 8, max_workers: 8, ..settings });
    let calls =
        [Some(0), Some(0), Some(1)].map(|device| Arc::new(Endless(device)) as Arc<dyn Work>);
    calls.iter().for_each(|call| pool.enqueue(call));
    let picked: Vec<_> = std::iter::from_fn(|| pool.pick()).collect();
    let devices: Vec<_> = picked.iter().map(|(work, _)| work.device()).collect();
    assert_eq!(devices, [Some(0), Some(1), Some(0), Some(1)]);
    // Who finds no room holds no permit, and wakes no other for it.
    assert_eq!(pool.held.load(Ordering::Relaxed), 4);
    drop(picked);
    assert_eq!((pool.room_on(0), pool.room_on(1), pool.held.load(Ordering::Relaxed)), (2, 2, 0));
    // The oldest first where it is no GPU's, and among them all where it is.
    let host: Arc<dyn Work> = Arc::new(Endless(None));
    pool.enqueue(&host);
    pool.remove(&calls[0]);
    pool.remove(&calls[1]);
    let picked: Vec<_> = std::iter::from_fn(|| pool.pick()).take(4).collect();
    let devices: Vec<_> = picked.iter().map(|(work, _)| work.device()).collect();
    assert_eq!(devices, [Some(1), Some(1), None, None]);
}
