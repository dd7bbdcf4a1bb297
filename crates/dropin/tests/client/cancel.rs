//! A thread that is cancelled (pthread_cancel(3)) ends after the call that it is in, which is done.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{Cuda, Cufile, Entry, GOOD, alone, cuda, cufile, pattern, system};
use crate::stream::{Kept, stream, sync};

const LEN: usize = 4 << 20;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_ASYNCHRONOUS`.
const ASYNCHRONOUS: c_int = 1;
/// `PTHREAD_CANCELED`.
const CANCELLED: usize = usize::MAX;

struct Client {
    cuda: Cuda,
    cufile: Cufile,
    context: usize,
    file: std::fs::File,
    handle: usize,
    memory: u64,
    ended: AtomicU32,
}

type Case = (&'static str, fn(&Client) -> isize);

/// Calls that wait, open, close, or make threads. Each is done in full.
const CALLS: &[Case] = &[
    ("cuFileRead", |it| it.cufile.read(it.handle, it.memory, LEN, 0, 0)),
    ("cuFileRead, small", |it| {
        (0..1024).map(|at| it.cufile.read(it.handle, it.memory, 4096, at * 4096, 0)).sum()
    }),
    ("cuFileWrite", |it| it.cufile.write(it.handle, it.memory, LEN, 0, 0)),
    ("cuFileHandleRegister", |it| match it.cufile.register(&it.file) {
        Ok(handle) => {
            it.cufile.deregister(handle);
            LEN.cast_signed()
        }
        Err(answer) => -(answer.code as isize),
    }),
    ("cuFileDriverOpen", |it| {
        let answers = [it.cufile.open(), it.cufile.close()];
        if answers == [GOOD; 2] { LEN.cast_signed() } else { -1 }
    }),
    ("batch", |it| {
        let batch = set_up(&it.cufile, 1).unwrap();
        let (mode, base, len, handle) = (1, it.memory, LEN, it.handle);
        let (file_offset, buffer_offset, opcode, cookie) = (0, 0, 0, 0);
        let entry = Entry { mode, base, file_offset, buffer_offset, len, handle, opcode, cookie };
        assert_eq!(submit(&it.cufile, batch, &mut [entry]), GOOD);
        let moved = fetch(&it.cufile, batch, 1, 1, None)[0].result;
        destroy(&it.cufile, batch);
        moved
    }),
    ("cuFileReadAsync", |it| {
        let stream = stream(&it.cuda);
        let mut kept = Kept::new(LEN, 0, 0);
        assert_eq!(kept.put(it.cufile.cuFileReadAsync, it.handle, it.memory, stream), GOOD);
        sync(&it.cuda, stream);
        kept.done()
    }),
];

fn client() -> Client {
    let (cuda, cufile) = (cuda(), cufile());
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &pattern(LEN, 1)).unwrap();
    let handle = cufile.register(&file).unwrap();
    let (memory, mut context) = (cuda.room(LEN), 0);
    // SAFETY: room for one handle.
    assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) }, 0);
    Client { cuda, cufile, context, file, handle, memory, ended: AtomicU32::new(0) }
}

/// Starts a thread, cancels it by `cancels`, and answers how it ended.
fn thread<T>(
    body: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    of: &T,
    cancels: impl FnOnce(libc::pthread_t),
) -> usize {
    // SAFETY: a function of C's types in both; a thread that is cancelled unwinds it.
    let body: extern "C" fn(*mut c_void) -> *mut c_void = unsafe { std::mem::transmute(body) };
    let mut thread = 0;
    let argument = std::ptr::from_ref(of).cast_mut().cast();
    // SAFETY: `of` outlives the thread, which is waited for.
    let made = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), body, argument) };
    assert_eq!(made, 0);
    cancels(thread);
    let mut end = std::ptr::null_mut();
    // SAFETY: a thread of this function.
    assert_eq!(unsafe { libc::pthread_join(thread, &raw mut end) }, 0);
    end.addr()
}

/// Asks for its own end, makes the call, and ends behind it.
extern "C-unwind" fn one_call(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what [`thread`] was given.
    let (client, case) = unsafe { *argument.cast::<(&Client, &Case)>() };
    // SAFETY: the context lives.
    assert_eq!(unsafe { (client.cuda.cuCtxSetCurrent)(client.context) }, 0);
    // SAFETY: this thread, which runs.
    assert_eq!(unsafe { pthread_cancel(libc::pthread_self()) }, 0);
    let moved = (case.1)(client);
    client.ended.store(u32::from(moved == LEN.cast_signed()) + 1, Ordering::SeqCst);
    // SAFETY: nothing here is to be dropped.
    unsafe { pthread_testcancel() };
    std::ptr::null_mut()
}

#[test]
fn a_cancelled_thread_ends_after_its_call() {
    if system() {
        // The thread calls the driver too, which may be hardware's and be cancelled anywhere.
        return;
    }
    alone("cancel::a_cancelled_thread_ends_after_its_call", &[], || {
        let client = &client();
        for case in CALLS {
            client.ended.store(0, Ordering::SeqCst);
            assert_eq!(thread(one_call, &(client, case), |_| {}), CANCELLED, "{}", case.0);
            assert_eq!(client.ended.load(Ordering::SeqCst), 2, "{}: not done in full", case.0);
            assert_eq!((case.1)(client), LEN.cast_signed(), "{}, afterwards", case.0);
        }
    });
}

/// Reads for ever, and may be cancelled at any time.
extern "C-unwind" fn many_reads(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what [`thread`] was given.
    let client = unsafe { &*argument.cast::<Client>() };
    // SAFETY: a number, and nowhere to store what it was.
    unsafe { pthread_setcanceltype(ASYNCHRONOUS, std::ptr::null_mut()) };
    type Read = unsafe extern "C-unwind" fn(usize, u64, usize, i64, i64) -> isize;
    // SAFETY: the library's function is of this type.
    let read: Read = unsafe { std::mem::transmute(client.cufile.cuFileRead) };
    loop {
        // SAFETY: memory and handle are the client's.
        unsafe { read(client.handle, client.memory, LEN, 0, 0) };
        client.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_thread_that_may_be_cancelled_anywhere_ends_after_its_call_too() {
    alone("cancel::a_thread_that_may_be_cancelled_anywhere_ends_after_its_call_too", &[], || {
        let client = &client();
        for rounds in 0..20 {
            client.ended.store(0, Ordering::SeqCst);
            // That it ends is all: it does not return, and glibc 2.34 forgets the value here.
            thread(many_reads, client, |thread| {
                while client.ended.load(Ordering::SeqCst) <= rounds % 4 {
                    std::hint::spin_loop();
                }
                // SAFETY: a thread that runs and is not waited for yet.
                assert_eq!(unsafe { pthread_cancel(thread) }, 0);
            });
        }
        assert_eq!(client.cufile.read(client.handle, client.memory, LEN, 0, 0), LEN.cast_signed());
    });
}
