use proptest::prelude::*;

use super::*;

fn at<T: std::fmt::Debug>(result: Result<T, UnitError>) -> usize {
    result.unwrap_err().at
}

#[test]
fn every_spelling_of_a_size() {
    for text in ["4096", "4096B", "4k", "4K", "4kb", "4KB", "4KiB", "4kib", "4Ki", "4.0K", "004k"] {
        assert_eq!(parse_bytes(text), Ok(4096), "{text}");
    }
    for text in ["1m", "1M", "1MB", "1MiB", "1024k", "1048576"] {
        assert_eq!(parse_bytes(text), Ok(1 << 20), "{text}");
    }
    assert_eq!(parse_bytes("0"), Ok(0));
    assert_eq!(parse_bytes("1g"), Ok(1 << 30));
    assert_eq!(parse_bytes("1T"), Ok(1 << 40));
    assert_eq!(parse_bytes("1.5G"), Ok(3 << 29));
    assert_eq!(parse_bytes("0.0009765625K"), Ok(1));
    assert_eq!(parse_bytes("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(parse_bytes("15E"), Ok(15 << 60));
}

/// A number is one of ours where it has three digits.
#[test]
fn saved_sentences_have_the_units_of_the_page() {
    let si = |text| human::rewritten(text, Powers::Si).into_owned();
    assert_eq!(
        si("vda read 1.14 GiB, 134 MiB of it from gpuio (256 KiB/s); 1000 KiB."),
        "vda read 1.22 GB, 141 MB of it from gpuio (262 kB/s); 1.02 MB."
    );
    for kept in
        ["", "off the 4 KiB grid", "12 B", "1.14 GB/s", "a1.14 GiB", "1,134 MiB", "2 x", " "]
    {
        assert_eq!(si(kept), kept);
    }
    let iec = |text| human::rewritten(text, Powers::Iec).into_owned();
    assert_eq!(iec("16.0 GB/s of 123 kB, 1.00 MiB"), "14.9 GiB/s of 120 KiB, 1.00 MiB");
    assert_eq!(in_requested("1.14 GiB"), "1.14 GiB", "none are requested");
}

#[test]
fn a_wrong_size_names_the_column() {
    for (text, column) in [
        ("", 0),
        ("-4k", 0),
        ("+4k", 0),
        ("NaN", 0),
        ("inf", 0),
        (" 4k", 0),
        (".5G", 0),
        ("k", 0),
        ("4x", 1),
        ("4 k", 1),
        ("4kk", 2),
        ("4KiBs", 4),
        ("4Bi", 2),
        ("4i", 1),
        ("4.", 2),
        ("4.k", 2),
        ("1.3K", 1),
        ("1e3", 2),
        ("0.5", 1),
        ("1.5.5K", 3),
        ("4µ", 1),
        ("16E", 0),
        ("18446744073709551616", 0),
        ("99999999999999999999999999999999999999999999", 0),
        ("0.00000000000000000000000000001E", 20),
    ] {
        assert_eq!(at(parse_bytes(text)), column, "{text}");
    }
}

#[test]
fn an_error_quotes_the_text_and_says_what_is_accepted() {
    let message = parse_bytes("4x").unwrap_err().to_string();
    assert!(message.contains("\"4x\"") && message.contains("column 2"), "{message}");
    assert!(message.contains("1MiB"), "{message}");
    assert!(parse_bytes("").unwrap_err().to_string().starts_with("the value is empty"));
    assert!(parse_bytes("4.").unwrap_err().to_string().contains("ends too early"));
    assert!(parse_duration_ns("5y").unwrap_err().to_string().contains("500ms"));
    assert!(parse_percent("200").unwrap_err().to_string().contains("0 to 100"));
    assert!(parse_cpu_list("3-1").unwrap_err().to_string().contains("range"));
}

#[test]
fn sizes_print_in_their_shortest_exact_form() {
    for (bytes, text) in [
        (0, "0"),
        (1, "1"),
        (4096, "4K"),
        (4097, "4097"),
        (1_572_864, "1536K"),
        (1 << 20, "1M"),
        (1 << 60, "1E"),
        (u64::MAX, "18446744073709551615"),
    ] {
        assert_eq!(format_bytes(bytes), text);
    }
}

#[test]
fn every_spelling_of_a_duration() {
    for (text, ns) in [
        ("10", 10_000_000_000),
        ("10s", 10_000_000_000),
        ("1.5", 1_500_000_000),
        ("500ms", 500_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("250\u{3bc}s", 250_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("100ns", 100),
        ("0.5us", 500),
        ("1min", 60_000_000_000),
        ("1.5minutes", 90_000_000_000),
        ("1d", 86_400_000_000_000),
        ("10sec", 10_000_000_000),
        ("10msec", 10_000_000),
        ("0", 0),
    ] {
        assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
    }
}

#[test]
fn a_wrong_duration_names_the_column() {
    for (text, column) in [
        ("", 0),
        ("-1s", 0),
        ("s", 0),
        ("10x", 2),
        ("10sx", 3),
        ("10minx", 5),
        ("10 s", 2),
        ("10M", 2),
        ("0.5ns", 1),
        ("10é", 2),
        ("18446744073709551615", 0),
        ("6000000h", 0),
    ] {
        assert_eq!(at(parse_duration_ns(text)), column, "{text}");
    }
}

#[test]
fn durations_print_in_their_largest_exact_unit() {
    for (ns, text) in [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1500ns"),
        (250_000, "250us"),
        (9_999_000, "9999us"),
        (46_142_857, "46.142857ms"),
        (20_000_100_000, "20.0001s"),
        (1_500_000_000, "1500ms"),
        (10_000_000_000, "10s"),
        (90_000_000_000, "90s"),
        (120_000_000_000, "2m"),
        (7_200_000_000_000, "2h"),
    ] {
        assert_eq!(format_duration_ns(ns), text);
    }
}

#[test]
fn percentages() {
    assert_eq!(parse_percent("0"), Ok(0.0));
    assert_eq!(parse_percent("70"), Ok(70.0));
    assert_eq!(parse_percent("70%"), Ok(70.0));
    assert_eq!(parse_percent("100%"), Ok(100.0));
    assert_eq!(parse_percent("12.5%"), Ok(12.5));
    for (text, column) in [
        ("", 0),
        ("-1", 0),
        ("101", 0),
        ("100.1", 0),
        ("70 %", 2),
        ("70%%", 3),
        ("70x", 2),
        ("NaN", 0),
        ("7.", 2),
    ] {
        assert_eq!(at(parse_percent(text)), column, "{text}");
    }
}

#[test]
fn cpu_lists_are_sets_and_index_lists_are_sequences() {
    assert_eq!(parse_cpu_list("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
    assert_eq!(parse_cpu_list("8,2-3,3"), Ok(vec![2, 3, 8]));
    assert_eq!(parse_index_list("2,0-1,2"), Ok(vec![2, 0, 1, 2]));
    assert_eq!(parse_index_list("5"), Ok(vec![5]));
    assert_eq!(parse_cpu_list("0-65535").map(|list| list.len()), Ok(65_536));
}

#[test]
fn a_wrong_list_names_the_column() {
    for (text, column) in [
        ("", 0),
        ("-1", 0),
        ("0,", 2),
        (",0", 0),
        ("0-", 2),
        ("3-1", 2),
        ("0-3-5", 3),
        ("0, 1", 2),
        ("0-3x", 3),
        ("65536", 0),
        ("0-4294967295", 2),
        ("0-99999999999999999999", 2),
        ("0-65535,0", 8),
        ("1,é", 2),
    ] {
        assert_eq!(at(parse_index_list(text)), column, "{text}");
        assert_eq!(at(parse_cpu_list(text)), column, "{text}");
    }
}

#[test]
fn cpu_lists_print_as_the_kernel_prints_them() {
    assert_eq!(format_cpu_list(&[8, 3, 0, 1, 2, 2]), "0-3,8");
    assert_eq!(format_cpu_list(&[0, 1, 5]), "0-1,5");
    assert_eq!(format_cpu_list(&[]), "");
    assert_eq!(format_cpu_list(&[u32::MAX, 0]), "0,4294967295");
}

#[test]
fn people_read_three_digits() {
    for (bytes, text) in [
        (0.0, "0 B"),
        (0.5, "0.50 B"),
        (512.0, "512 B"),
        (1023.0, "1023 B"),
        (1023.6, "1.00 KiB"),
        (1024.0, "1.00 KiB"),
        (1_048_064.0, "1.00 MiB"),
        (1_024_000.0, "1000 KiB"),
        (2_480_343_613.0, "2.31 GiB"),
        (10_234.0, "9.99 KiB"),
        (10_239.0, "10.0 KiB"),
        (102_399.0, "100 KiB"),
        (-2048.0, "-2.00 KiB"),
        (f64::NAN, "n/a"),
        (f64::INFINITY, "n/a"),
    ] {
        assert_eq!(human_bytes(bytes), text, "{bytes}");
    }
    assert_eq!(human_rate(2_480_343_613.0), "2.31 GiB/s");
    assert_eq!(human_count(999.0), "999");
    assert_eq!(human_count(999.7), "1.00 k");
    assert_eq!(human_count(1_234_567.0), "1.23 M");
    assert_eq!(human_count(12_345.0), "12.3 k");
    assert_eq!(human_ns(850.0), "850 ns");
    assert_eq!(human_ns(12_345.0), "12.3 µs");
    assert_eq!(human_ns(1_200_000.0), "1.20 ms");
    assert_eq!(human_ns(3.5e9), "3.50 s");
    assert_eq!(human_ns(5.4e12), "5400 s");
}

/// Text made of the characters the parsers look at reaches far more of their branches than
/// text drawn from all of Unicode.
fn near_miss() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9.kKmMgGtTpPeEiIbBnuµsh%,+ -]{0,24}", any::<String>()]
}

proptest! {
    #[test]
    fn sizes_read_back(bytes in any::<u64>(), shift in 0_u32..64) {
        for value in [bytes, bytes >> shift, (bytes >> shift) << shift] {
            prop_assert_eq!(parse_bytes(&format_bytes(value)), Ok(value));
        }
    }

    #[test]
    fn durations_read_back(ns in any::<u64>(), count in 0_u64..1_000_000, power in 0_u32..13) {
        for value in [ns, count * 10_u64.pow(power), count * 60_000_000_000] {
            prop_assert_eq!(parse_duration_ns(&format_duration_ns(value)), Ok(value));
        }
    }

    #[test]
    fn cpu_lists_read_back(cpus in proptest::collection::btree_set(0_u32..300, 1..100)) {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        prop_assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)), Ok(cpus));
    }

    #[test]
    fn no_text_panics_and_every_error_column_is_a_character(text in near_miss()) {
        let errors = [
            parse_bytes(&text).err(),
            parse_duration_ns(&text).err(),
            parse_percent(&text).err(),
            parse_cpu_list(&text).err(),
            parse_index_list(&text).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!(text.is_char_boundary(error.at), "{:?}", error);
            prop_assert_eq!(&error.input, &text);
        }
    }

    #[test]
    fn people_get_short_text(value in any::<f64>()) {
        for text in [human_bytes(value), human_rate(value), human_count(value), human_ns(value)] {
            prop_assert!(!text.is_empty());
        }
    }

    #[test]
    fn a_decimal_size_is_exact(whole in 0_u64..1 << 20, quarter in 0_u64..4) {
        let text = format!("{whole}.{:02}M", quarter * 25);
        prop_assert_eq!(parse_bytes(&text), Ok((whole << 20) + (quarter << 18)));
    }
}

#[test]
fn speeds_of_links_have_a_decimal_where_they_need_it() {
    let words = [2500, 5000, 8000, 32_000, 64_000].map(human_transfers);
    assert_eq!(words, ["2.5 GT/s", "5 GT/s", "8 GT/s", "32 GT/s", "64 GT/s"]);
}

#[test]
fn rates_need_their_unit_and_bits_are_not_bytes() {
    let read = |text| crate::units::parse_bytes_per_second(text).map_err(|error| error.at);
    assert_eq!(read("3.5GB/s"), Ok(3_500_000_000));
    assert_eq!(read("3.5GB"), Ok(3_500_000_000));
    assert_eq!(read("100Gb/s"), Ok(12_500_000_000));
    assert_eq!(read("12GiB/s"), Ok(12 << 30));
    assert_eq!(read("7B/s"), Ok(7));
    assert_eq!(read("3500"), Err(4));
    assert_eq!(read("2GBs"), Err(1));
    assert_eq!(read(""), Err(0));
    assert_eq!(crate::units::parse_count("840k"), Ok(840_000));
    assert!(crate::units::parse_count("1.5").is_err());
    assert_eq!(crate::units::human_decimal_rate(3.5e9), "3.50 GB/s");
}

#[test]
fn pcie_s_generations_have_one_table() {
    for (generation, lane) in [(1, 250_000_000), (3, 984_615_384), (6, 7_375_000_000)] {
        let speed = crate::units::pcie_mega_transfers(generation).unwrap();
        assert_eq!(crate::units::pcie_generation(speed), Some(generation));
        assert_eq!(crate::units::pcie_bytes_per_second(speed, 1), Some(lane));
    }
    assert_eq!(crate::units::pcie_bytes_per_second(0, 16), None);
    assert_eq!(crate::units::pcie_bytes_per_second(256_000, 16), None);
    assert_eq!(crate::units::pcie_generation(1_000), None);
    assert_eq!(crate::units::pcie_mega_transfers(0), None);
}

#[test]
fn nothing_of_a_text_is_markup() {
    let safe = crate::units::markup("</script><img src=x onerror='alert(1)'>\"&\0\u{7f}ß");
    assert!(!safe.contains(['<', '>', '"', '\'', '\0']), "{safe}");
    assert!(safe.starts_with("&lt;/script&gt;"), "{safe}");
    assert!(safe.ends_with("&quot;&amp;\\x00\\u007fß"), "{safe}");
    assert_eq!(crate::units::markup("GPU0"), "GPU0");
}

#[test]
fn counts_have_every_digit_and_one_is_singular() {
    let counts = [0, 999, 1_000, 1_050_624, u64::MAX].map(digits);
    assert_eq!(counts, ["0", "999", "1,000", "1,050,624", "18,446,744,073,709,551,615"]);
    let things = [0, 1, 2, 1024].map(|number| many(number, "block"));
    assert_eq!(things, ["0 blocks", "1 block", "2 blocks", "1,024 blocks"]);
    let are = [0, 1, 2048].map(|number| many(number, "file is|files are"));
    assert_eq!(are, ["0 files are", "1 file is", "2,048 files are"]);
}

#[test]
fn no_full_stop_follows_a_dot_of_a_path() {
    let all = ["", ".", "./", "..", "d/..", "d.", "/data", "d/"].map(place);
    let here = "the working directory";
    assert_eq!(all, [here, here, here, "../", "d/../", "d./", "/data", "d/"]);
}

/// Values of several sizes in one unit have the unit that the largest has alone.
#[test]
fn the_unit_of_rates_is_that_of_the_printed_rate() {
    for nth in 0..60_i32 {
        let rate = 2.7f64.powi(nth) + 0.3;
        let (one, name) = rate_unit(rate);
        assert!(human_rate(rate).ends_with(&format!(" {name}")), "{rate}");
        assert!(one <= rate.max(1.0) * 1.001, "{rate}");
    }
}
