//! Starting our threads, and where they may run.

/// Bytes of stack: our call depth is small, the driver's calls take some ten KiB.
const STACK: usize = 512 << 10;

/// Starts a thread that receives none of the program's signals and may run wherever the process
/// may; false if the system refuses.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    spawn_thread("gpuio-transfer", work)
}

/// Starts a thread of this name in the same way; names of more than 15 bytes are cut by the kernel.
pub fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is valid for the write of one set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // A thread inherits the mask of the thread that starts it, so ours is changed for the moment.
    // SAFETY: `all` was filled, `before` is valid for the write of one set.
    let masked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0 };
    let body = move || {
        widen_affinity();
        work();
    };
    let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK);
    let spawned = thread.spawn(body).is_ok();
    if masked {
        // SAFETY: the call above filled `before`.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
    spawned
}

/// Takes the CPUs of the process's first thread, if these are more than were inherited: otherwise a
/// caller that is bound to one CPU would bind all its helpers.
fn widen_affinity() {
    let process = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()));
    let (Ok(process), Ok(own)) = (process, rustix::thread::sched_getaffinity(None)) else {
        return;
    };
    if process.count() > own.count() {
        let _ = rustix::thread::sched_setaffinity(None, &process);
    }
}
