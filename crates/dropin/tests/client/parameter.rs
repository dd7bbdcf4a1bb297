//! Settings: getters, setters, ranges, the file, the environment.

use crate::client::{GOOD, alone, code, cufile, name};

const BATCH: i32 = 9;
const FORCE_COMPAT: i32 = 2;

#[test]
fn setters_are_for_the_time_before_the_open() {
    alone(name(setters_are_for_the_time_before_the_open), &[], || {
        let cufile = cufile();
        let size = |at| {
            let mut value = usize::MAX;
            // SAFETY: room for one number.
            let answer = unsafe { (cufile.cuFileGetParameterSizeT)(at, &raw mut value) };
            (answer.code, value)
        };
        // SAFETY: numbers only.
        let set = |at, value| unsafe { (cufile.cuFileSetParameterSizeT)(at, value) };
        assert_eq!((size(BATCH), size(12).0, size(-1).0), ((0, 128), 5022, 5022));
        assert_eq!(
            (set(BATCH, 0), set(BATCH, 257), set(12, 1)),
            (code(5022), code(5022), code(5022))
        );
        assert_eq!((set(BATCH, 200), size(BATCH)), (GOOD, (0, 200)));
        let (mut least, mut most) = (0, 0);
        let range = (&raw mut least, &raw mut most);
        // SAFETY: room for two numbers.
        let answer = unsafe { (cufile.cuFileGetParameterMinMaxValue)(BATCH, range.0, range.1) };
        assert_eq!((answer, least, most), (GOOD, 1, 256));
        // SAFETY: numbers only, here and below.
        assert_eq!(unsafe { (cufile.cuFileSetParameterBool)(FORCE_COMPAT, true) }, GOOD);
        let mut switch = false;
        // SAFETY: room for one switch.
        let answer = unsafe { (cufile.cuFileGetParameterBool)(FORCE_COMPAT, &raw mut switch) };
        assert_eq!((answer, switch), (GOOD, true));
        assert_eq!((cufile.open(), set(BATCH, 100), size(BATCH)), (GOOD, code(5026), (0, 200)));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileSetParameterBool)(FORCE_COMPAT, false) }, code(5026));
        assert_eq!((cufile.close(), set(BATCH, 100), size(BATCH)), (GOOD, GOOD, (0, 100)));
    });
}

#[test]
fn texts_and_pools() {
    alone(name(texts_and_pools), &[], || {
        let cufile = cufile();
        // SAFETY: a text that ends.
        let set = |text: &str| unsafe { (cufile.cuFileSetParameterString)(0, text.as_ptr()) };
        assert_eq!((set("INFO\0"), set("LOUD\0")), (GOOD, code(5022)));
        let text = |len: i32| {
            let mut room = [b'?'; 8];
            // SAFETY: room for more than `len`.
            let answer = unsafe { (cufile.cuFileGetParameterString)(0, room.as_mut_ptr(), len) };
            (answer, room)
        };
        assert_eq!(text(5), (GOOD, *b"INFO\0???"));
        assert_eq!(text(4), (code(5022), [b'?'; 8]));
        let (mut sizes, mut counts) = ([9; 4], [9; 4]);
        let lists = (sizes.as_mut_ptr(), counts.as_mut_ptr());
        // SAFETY: room for `len` numbers, here and below.
        let get =
            |len| unsafe { (cufile.cuFileGetParameterPosixPoolSlabArray)(lists.0, lists.1, len) };
        assert_eq!((get(2), get(4)), (code(5022), GOOD));
        assert_eq!((sizes, counts), ([4, 1024, 16384, 0], [128, 64, 64, 0]));
        let (sizes, counts) = ([4_usize, 64], [10_usize, 20]);
        let lists = (sizes.as_ptr(), counts.as_ptr());
        // SAFETY: as above.
        let set =
            |len| unsafe { (cufile.cuFileSetParameterPosixPoolSlabArray)(lists.0, lists.1, len) };
        assert_eq!((set(0), set(2), cufile.open(), set(2)), (code(5022), GOOD, GOOD, code(5026)));
    });
}

#[test]
fn the_program_goes_before_the_environment_before_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "// comment\n{ \"profile\": { \"cufile_stats\": 1 }, \"properties\": {\n \
                \"io_batchsize\": 8, /* again */ \"io_batchsize\": 9,\n \
                \"force_compat_mode\": true } }";
    std::fs::write(file.path(), text).unwrap();
    let variables =
        [("CUFILE_ENV_PATH_JSON", file.path().to_str().unwrap()), ("CUFILE_STATS_LEVEL", "2")];
    alone(name(the_program_goes_before_the_environment_before_the_file), &variables, || {
        let cufile = cufile();
        let size = |at| {
            let mut value = 0;
            // SAFETY: room for one number.
            assert_eq!(unsafe { (cufile.cuFileGetParameterSizeT)(at, &raw mut value) }, GOOD);
            value
        };
        assert_eq!((size(BATCH), size(0)), (9, 2));
        // SAFETY: numbers only.
        assert_eq!(unsafe { (cufile.cuFileSetParameterSizeT)(0, 3) }, GOOD);
        assert_eq!(cufile.open(), GOOD);
        let mut level = 0;
        // SAFETY: room for one number.
        assert_eq!(unsafe { (cufile.cuFileGetStatsLevel)(&raw mut level) }, GOOD);
        assert_eq!((size(0), level), (3, 3));
        let mut batch = 0;
        // SAFETY: room for one handle.
        assert_eq!(unsafe { (cufile.cuFileBatchIOSetUp)(&raw mut batch, 10) }, code(5022));
    });
}
