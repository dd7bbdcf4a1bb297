//! Threads of our own, and where they may run.

/// Bytes of stack: no call of ours goes deep, the driver's take some ten KiB.
const STACK: usize = 512 << 10;

/// Starts a thread that gets no signal of the program's, and may run where the process may.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is valid for the write of one set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // A thread inherits its maker's mask, so ours is changed for the moment.
    // SAFETY: `all` was filled, `before` is valid for the write of one set.
    let masked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0 };
    let body = move || {
        spread();
        work();
    };
    let thread = std::thread::Builder::new().name("gpuio-transfer".into()).stack_size(STACK);
    let spawned = thread.spawn(body).is_ok();
    if masked {
        // SAFETY: the call above filled `before`.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
    spawned
}

/// Takes the CPUs of the process's first thread, if those are more than were inherited: a caller
/// that is bound to one CPU would otherwise bind all who help it.
fn spread() {
    let process = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()));
    let (Ok(process), Ok(own)) = (process, rustix::thread::sched_getaffinity(None)) else {
        return;
    };
    if process.count() > own.count() {
        let _ = rustix::thread::sched_setaffinity(None, &process);
    }
}
