//! I/O in the order of a stream.

use crate::client::{GOOD, alone, code, cuda, cufile};

#[test]
fn streams_are_registered_with_what_they_promise() {
    alone("stream::streams_are_registered_with_what_they_promise", &[], || {
        let (_cuda, cufile) = (cuda(), cufile());
        // SAFETY: a stream is a name here, and nothing is put into it.
        let register = |stream, flags| unsafe { (cufile.cuFileStreamRegister)(stream, flags) };
        // SAFETY: as above.
        let deregister = |stream| unsafe { (cufile.cuFileStreamDeregister)(stream) };
        for flags in 0..16 {
            assert_eq!(register(0x1000, flags), GOOD);
            assert_eq!((register(0x1000, flags), deregister(0x1000)), (code(5022), GOOD));
        }
        assert_eq!((register(0x1000, 16), deregister(0x1000)), (code(5022), code(5022)));
        // The default stream is always there.
        assert_eq!((register(0, 15), register(0, 0), deregister(0), deregister(0)), {
            (GOOD, GOOD, GOOD, GOOD)
        });
    });
}

#[test]
fn what_is_wrong_with_a_call_is_told_at_once() {
    alone("stream::what_is_wrong_with_a_call_is_told_at_once", &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let device = cuda.room(4096);
        let (mut len, mut at, mut skip, mut done) = (4096_usize, 0_i64, 0_i64, 77_isize);
        let file = tempfile::tempfile().unwrap();
        let handle = cufile.register(&file).unwrap();
        let (len, done) = (&raw mut len, &raw mut done);
        let (at, skip) = (&raw mut at, &raw mut skip);
        let call = cufile.cuFileReadAsync;
        // SAFETY: what is not null is valid; nothing is put into the stream.
        let none = unsafe { call(0, device, len, at, skip, done, 0) };
        assert_eq!(none, code(5027));
        // SAFETY: as above.
        let null = unsafe { call(handle, device, len, at, std::ptr::null_mut(), done, 0) };
        assert_eq!(null, code(5022));
        // SAFETY: as above.
        assert_eq!(unsafe { call(handle, 0, len, at, skip, done, 0) }, code(5022));
    });
}
