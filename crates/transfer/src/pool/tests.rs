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
