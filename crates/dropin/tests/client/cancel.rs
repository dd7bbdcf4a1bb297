//! A thread that is cancelled (pthread_cancel(3)) ends where it enters a call, or after the call
//! that it is in, which is done.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::client::{Answer, Cuda, Cufile, alone, cuda, cufile, name, random_bytes};

const LEN: usize = 4 << 20;

unsafe extern "C-unwind" {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
}

/// `PTHREAD_CANCELED`.
const CANCELLED: usize = usize::MAX;

struct Client {
    cuda: Cuda,
    cufile: Cufile,
    context: usize,
    handle: usize,
    memory: u64,
    ended: AtomicU32,
}

/// A call, by a pointer of a type that may unwind.
type Case = (&'static str, unsafe fn(&Client));

macro_rules! case {
    ($name:ident($($arg:expr => $type:ty),*) -> $ret:ty, $it:ident) => {
        (stringify!($name), |$it: &Client| {
            type Call = unsafe extern "C-unwind" fn($($type),*) -> $ret;
            // SAFETY: the library's function is of this type.
            let call: Call = unsafe { std::mem::transmute($it.cufile.$name) };
            // SAFETY: what the arguments name is the client's.
            unsafe { call($($arg),*) };
        })
    };
}

/// Calls that wait, open, close, or make threads, and would leave something half done.
const CALLS: &[Case] = &[
    case!(cuFileRead(it.handle => usize, it.memory => u64, LEN => usize, 0 => i64, 0 => i64)
        -> isize, it),
    case!(cuFileWrite(it.handle => usize, it.memory => u64, 4096 => usize, 0 => i64, 0 => i64)
        -> isize, it),
    case!(cuFileHandleDeregister(it.handle => usize) -> (), it),
    case!(cuFileBufRegister(it.memory => u64, LEN => usize, 0 => c_int) -> Answer, it),
    case!(cuFileBatchIOSetUp(std::ptr::null_mut() => *mut usize, 4 => u32) -> Answer, it),
    case!(cuFileDriverOpen() -> Answer, it),
    case!(cuFileDriverClose() -> Answer, it),
];

fn client() -> Client {
    let (cuda, cufile) = (cuda(), cufile());
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &random_bytes(1, LEN)).unwrap();
    let handle = cufile.register(&file).unwrap();
    let (memory, mut context) = (cuda.room(LEN), 0);
    // SAFETY: room for one handle.
    assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) }, 0);
    Client { cuda, cufile, context, handle, memory, ended: AtomicU32::new(0) }
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

/// Asks for its own end, and makes the call.
extern "C-unwind" fn one_call(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what [`thread`] was given.
    let (client, case) = unsafe { *argument.cast::<(&Client, &Case)>() };
    // SAFETY: the context lives.
    assert_eq!(unsafe { (client.cuda.cuCtxSetCurrent)(client.context) }, 0);
    // SAFETY: takes nothing.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: this thread, which runs.
    assert_eq!(unsafe { pthread_cancel(own) }, 0);
    // SAFETY: what a case asks for is the client's.
    unsafe { (case.1)(client) };
    client.ended.fetch_add(1, Ordering::SeqCst);
    std::ptr::null_mut()
}

#[test]
fn a_thread_that_was_cancelled_ends_where_it_enters_a_call() {
    let name = name(a_thread_that_was_cancelled_ends_where_it_enters_a_call);
    alone(name, &[], || {
        let client = &client();
        for case in CALLS {
            assert_eq!(thread(one_call, &(client, case), |_| {}), CANCELLED, "{}", case.0);
            assert_eq!(client.ended.load(Ordering::SeqCst), 0, "{}: it went on", case.0);
            let moved = client.cufile.read(client.handle, client.memory, LEN, 0, 0);
            assert_eq!(moved, LEN.cast_signed(), "after {}", case.0);
        }
    });
}

/// Reads for ever. Its cancellation is deferred, as it is by default: with an asynchronous one a
/// thread may call nothing but pthread_setcancelstate(3) and its like.
extern "C-unwind" fn reads(argument: *mut c_void) -> *mut c_void {
    type Read = unsafe extern "C-unwind" fn(usize, u64, usize, i64, i64) -> isize;
    // SAFETY: what [`thread`] was given.
    let client = unsafe { &*argument.cast::<Client>() };
    // SAFETY: the library's function is of this type.
    let read: Read = unsafe { std::mem::transmute(client.cufile.cuFileRead) };
    loop {
        // SAFETY: memory and handle are the client's.
        unsafe { read(client.handle, client.memory, LEN, 0, 0) };
        client.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_thread_that_is_cancelled_inside_a_call_ends_after_it() {
    alone(name(a_thread_that_is_cancelled_inside_a_call_ends_after_it), &[], || {
        let client = &client();
        for round in 0..40 {
            client.ended.store(0, Ordering::SeqCst);
            let end = thread(reads, client, |thread| {
                while client.ended.load(Ordering::SeqCst) <= round % 5 {
                    std::hint::spin_loop();
                }
                // SAFETY: a thread that runs and is not waited for yet.
                assert_eq!(unsafe { pthread_cancel(thread) }, 0);
            });
            assert_eq!(end, CANCELLED);
        }
        assert_eq!(client.cufile.read(client.handle, client.memory, LEN, 0, 0), LEN.cast_signed());
    });
}
