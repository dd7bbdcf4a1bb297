use super::*;

#[test]
fn memory_is_whole_zeroed_pages() {
    let page = rustix::param::page_size();
    for (requested, expected) in [(0, page), (1, page), (page, page), (page + 1, 2 * page)] {
        let mut memory = Aligned::new(requested).unwrap();
        assert_eq!(memory.len(), expected);
        assert_eq!(memory.as_ptr() as usize % page, 0);
        assert!(memory.slice_mut().iter().all(|&byte| byte == 0));
        memory.slice_mut().fill(7);
        // SAFETY: no I/O is out.
        assert!(unsafe { memory.slice() }.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn every_page_is_resident() {
    let memory = Aligned::new(64 * 4096).unwrap();
    let mut resident = vec![0_u8; memory.len() / rustix::param::page_size()];
    // SAFETY: one byte for each page.
    let answer =
        unsafe { libc::mincore(memory.as_ptr().cast(), memory.len(), resident.as_mut_ptr()) };
    assert_eq!(answer, 0);
    assert!(resident.iter().all(|page| page & 1 == 1));
}

#[test]
fn spans_stay_inside() {
    let memory = Aligned::new(8192).unwrap();
    // SAFETY: never given to an engine.
    let span = |offset, len| unsafe { memory.span(offset, len) };
    assert_eq!(span(4096, 4096).unwrap().as_ptr() as usize, memory.as_ptr() as usize + 4096);
    assert!(span(memory.len(), 0).is_some());
    assert!(span(4097, 4096).is_none());
    assert!(span(usize::MAX, 1).is_none());
}

#[test]
fn too_much_is_an_error_that_says_what_to_do() {
    for len in [usize::MAX, 1 << 62] {
        let err = Aligned::new(len).unwrap_err();
        assert!(err.to_string().contains("lower block size"), "{err}");
    }
}
