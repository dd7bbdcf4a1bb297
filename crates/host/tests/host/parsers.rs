//! Each parser on the forms the kernel prints, on broken ones, and on arbitrary bytes.

use std::path::Path;

use gpuio_host::{
    block, cgroup, cpu, kernel, memory, mount, numa, parse_cpu_list, proc_io, target,
};
use gpuio_record::Towards;
use gpuio_record::facts::{DeviceNumber, ResourceLimit};
use proptest::prelude::*;

#[test]
fn cpu_lists() {
    assert_eq!(parse_cpu_list("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
    assert_eq!(parse_cpu_list("5").unwrap(), [5]);
    assert!(parse_cpu_list("\n").unwrap().is_empty());
    for bad in ["3-1", "a", "1-", "-1", "0-3,2", "0-4000000000", "1,,x", "99999999999"] {
        let error = parse_cpu_list(bad).unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (1, bad));
    }
}

#[test]
fn cpu_facts() {
    let info = "processor\t: 0\nmodel name\t: Xeon: Gold 6430\nflags\t\t: fpu hypervisor\n";
    assert_eq!(cpu::parse_model(info).as_deref(), Some("Xeon: Gold 6430"));
    assert_eq!(cpu::parse_model("processor : 0\n"), None);
    let arm = |part| {
        let info = format!("processor : 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n");
        cpu::parse_model(&info).unwrap()
    };
    assert_eq!(arm("0xd4f"), "Arm Neoverse V2 (implementer 0x41, part 0xd4f)");
    assert_eq!(arm("0x001"), "arm64 processor (implementer 0x41, part 0x001)");
    assert_eq!(kernel::parse_hypervisor(info), Some(true));
    assert_eq!(kernel::parse_hypervisor("flags : fpu\n"), Some(false));
    assert_eq!(kernel::parse_hypervisor("Features : fp asimd\n"), None);
    let status = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
    assert_eq!(cpu::parse_allowed(status).unwrap(), Some(vec![0, 1]));
    let error = cpu::parse_allowed("Name:\tx\nCpus_allowed_list:\tzero\n").unwrap_err();
    assert_eq!(error.line, 2);
    assert_eq!(cpu::parse_cache_size("1024K\n").unwrap(), 1 << 20);
    assert_eq!(cpu::parse_cache_size("36M").unwrap(), 36 << 20);
    assert!(cpu::parse_cache_size("12").is_err());
}

#[test]
fn nodes_and_addresses() {
    assert_eq!(numa::parse_node("-1\n").unwrap(), None);
    assert_eq!(numa::parse_node("3\n").unwrap(), Some(3));
    assert!(numa::parse_node("-2").is_err());
    assert_eq!(numa::parse_distances("10 21\n").unwrap(), [10, 21]);
    let info = "Node 1 MemTotal:       16 kB\nNode 1 MemFree:        4 kB\n";
    assert_eq!(numa::parse_node_memory(info, "MemFree").unwrap(), Some(4096));
    assert_eq!(numa::parse_node_memory("Node 0 MemTotal: 5\n", "MemTotal").unwrap_err().line, 1);
    let normal = |text| numa::normalize_pci(text);
    assert_eq!(normal("3B:00.0").as_deref(), Some("0000:3b:00.0"));
    assert_eq!(normal("00000000:3B:00.0").as_deref(), Some("0000:3b:00.0"));
    assert_eq!(normal("10000:01:1f.7").as_deref(), Some("10000:01:1f.7"));
    for bad in ["", "nvme0", "0000:3b:00", "0000:3b:20.0", "0:3b:00.8", "1:2:3:4.0", "+1:02.0"] {
        assert_eq!(normal(bad), None, "{bad}");
    }
}

#[test]
fn memory_sizes_and_limits() {
    let text = "MemTotal:  100 kB\nMemAvailable: 50 kB\nDirty: 1 kB\nHugePages_Total: 4\n\
                HugePages_Free: 3\nHugepagesize: 2048 kB\n";
    let found = memory::parse_meminfo(text).unwrap();
    assert_eq!(found.total_bytes, Some(102_400));
    assert_eq!(found.dirty_bytes, Some(1024));
    let pages = found.huge_pages.unwrap();
    assert_eq!((pages.total, pages.free, pages.page_bytes), (4, 3, 2 << 20));
    assert_eq!(memory::parse_meminfo("").unwrap().total_bytes, None);
    assert_eq!(memory::parse_meminfo("\nMemTotal: many kB\n").unwrap_err().line, 2);
    assert_eq!(memory::parse_limit("max\n").unwrap(), None);
    assert_eq!(memory::parse_limit("9223372036854771712\n").unwrap(), None);
    assert_eq!(memory::parse_limit("1073741824\n").unwrap(), Some(1 << 30));
    let groups = cgroup::parse("4:cpu,memory:/a:b\n0::/c\n").unwrap();
    assert_eq!((&groups[0].path, &groups[0].controllers[1][..]), (&"/a:b".into(), "memory"));
    assert!(groups[1].unified && !groups[0].unified);
    assert_eq!(cgroup::parse("0::/\nbroken\n").unwrap_err().line, 2);
}

#[test]
fn limits_on_the_io_of_control_groups() {
    let of = |limits: Vec<cgroup::Limit>| -> Vec<_> {
        let one = |one: cgroup::Limit| {
            (one.device.major, one.device.minor, one.towards, one.bytes_per_s, one.ios_per_s)
        };
        limits.into_iter().map(one).collect()
    };
    let (read, write) = (Towards::Read, Towards::Write);
    let text = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:0 rbps=max wbps=max riops=max\n";
    let found = of(cgroup::parse_io_max(text).unwrap());
    assert_eq!(found, [(8, 16, read, Some(2_097_152), None), (8, 16, write, None, Some(120))]);
    assert_eq!(cgroup::parse_io_max("8:16 rbps=many\n").unwrap_err().line, 1);
    let found = of(cgroup::parse_throttle("254:0 31457280\n", write, true).unwrap());
    assert_eq!(found, [(254, 0, write, Some(31_457_280), None)]);
    let found = of(cgroup::parse_throttle("254:0 500\n", read, false).unwrap());
    assert_eq!(found, [(254, 0, read, None, Some(500))]);
    assert_eq!(cgroup::parse_throttle("\n", read, true).unwrap_err().line, 1);
}

#[test]
fn pinned_pages_are_those_not_given_back() {
    let text = "nr_foll_pin_acquired 700\nnr_foll_pin_acquired_other 5\nnr_foll_pin_released 200\n";
    assert_eq!(memory::parse_pins(text).unwrap(), Some(500));
    assert_eq!(memory::parse_pins("nr_foll_pin_acquired 7\n").unwrap(), None);
    assert_eq!(memory::parse_pins("\nnr_foll_pin_released x\n").unwrap_err().line, 2);
}

#[test]
fn resource_limits() {
    let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                Max open files            1024                 524288               files\n\
                Max locked memory         unlimited            unlimited            bytes\n\
                Max file locks\n";
    let limit = |name| kernel::parse_limit(text, name);
    let files = ResourceLimit { soft: Some(1024), hard: Some(524_288) };
    assert_eq!(limit("Max open files").unwrap(), Some(files));
    let none = ResourceLimit { soft: None, hard: None };
    assert_eq!(limit("Max locked memory").unwrap(), Some(none));
    assert_eq!(limit("Max anything").unwrap(), None);
    assert_eq!(limit("Max file locks").unwrap_err().line, 4);
}

#[test]
fn containers_by_control_group() {
    let of = kernel::container_of_cgroup;
    assert_eq!(of("0::/kubepods/burstable/docker-1\n"), Some("kubernetes"));
    assert_eq!(of("4:memory:/docker/abc\n"), Some("docker"));
    assert_eq!(of("0::/machine.slice/libpod-abc.scope\n"), Some("podman"));
    assert_eq!(of("0::/system.slice/docker.service\n"), None);
    assert_eq!(of("0::/user.slice\n"), None);
}

#[test]
fn mounts_with_escapes_and_optional_fields() {
    let text = b"36 35 98:0 /mnt1 /mnt\\040with\\011blank\\134s rw,noatime shared:1 master:2 - \
                 ext3 /dev/root rw,errors=continue\n\
                 37 36 0:45 / / rw - overlay over\\043lay rw,lowerdir=/a:/b\n";
    let mounts = mount::parse_mountinfo(text).unwrap();
    assert_eq!(mounts[0].mount_point, Path::new("/mnt with\tblank\\s"));
    assert_eq!(mounts[0].fs_root, Path::new("/mnt1"));
    assert_eq!(mounts[0].device, DeviceNumber { major: 98, minor: 0 });
    assert_eq!(mounts[0].super_options, ["rw", "errors=continue"]);
    assert_eq!(mounts[1].fs_type, "overlay");
    assert_eq!(mounts[1].source, "over#lay");
    let error = mount::parse_mountinfo(b"\n36 35 98:0 / / rw\n").unwrap_err();
    assert_eq!(error.line, 2);
}

#[test]
fn the_longest_and_then_the_last_mount_serves_a_path() {
    let text = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                 2 1 8:2 / /data rw - xfs /dev/sda2 rw\n\
                 3 1 8:3 / /data rw - xfs /dev/sda3 rw\n";
    let mounts = mount::parse_mountinfo(text).unwrap();
    let id = |path: &str| mount::find(&mounts, Path::new(path)).map(|mount| mount.id);
    assert_eq!(id("/data/file"), Some(3));
    assert_eq!(id("/data"), Some(3));
    assert_eq!(id("/database"), Some(1));
    assert_eq!(id("relative"), None);
}

#[test]
fn swap_areas() {
    let text = b"Filename\tType\tSize\tUsed\tPriority\n\
                 /dev/sda2   partition\t8388604\t0\t-2\n/swap\\040file  file\t1\t0\t-3\n";
    let areas = target::parse_swaps(text).unwrap();
    assert_eq!(areas[0].path, Path::new("/dev/sda2"));
    assert_eq!((areas[1].path.as_path(), areas[1].is_file), (Path::new("/swap file"), true));
    assert_eq!(target::parse_swaps(b"head\nonly\n").unwrap_err().line, 2);
}

#[test]
fn process_counters_and_their_difference() {
    let first = proc_io::parse("rchar: 10\nwchar: 1\nsyscr: 2\nread_bytes: 4096\n").unwrap();
    let second = proc_io::parse("rchar: 25\nread_bytes: 8192\nfuture: 1\n").unwrap();
    let delta = first.delta(&second);
    assert_eq!((delta.read_call_bytes, delta.storage_read_bytes), (15, 4096));
    assert_eq!(delta.write_call_bytes, 0, "a counter that goes back gives nothing");
    assert_eq!(proc_io::parse("rchar: 1\nwchar: x\n").unwrap_err().line, 2);
}

#[test]
fn device_counters_and_their_difference() {
    let first = block::parse_stat("10 1 80 5 20 2 160 6 0 4294967290 9").unwrap();
    let second = block::parse_stat("  13 1 104 8 21 2 168 9 4 4 9 0 0 0 0 0 0\n").unwrap();
    let delta = first.delta(&second).unwrap();
    assert_eq!((delta.reads, delta.read_bytes, delta.read_wait_ns), (3, 24 * 512, 3_000_000));
    assert_eq!((delta.writes, delta.write_bytes), (1, 8 * 512));
    assert_eq!(delta.busy_ns, 10_000_000, "the kernel's 32-bit milliseconds wrapped");
    assert_eq!(delta.in_flight, 4);
    assert_eq!(second.delta(&first), None, "another device took the number");
    assert!(block::parse_stat("1 2 3").is_err());
    assert!(block::parse_stat("a b c d e f g h i j k").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        all_parsers(&bytes);
    }

    #[test]
    fn no_parser_panics_on_near_misses(
        text in "([A-Za-z_]{0,12}[:/ \t-]{0,3}[0-9,\\\\kB-]{0,20}[\n ]){0,12}",
    ) {
        all_parsers(text.as_bytes());
    }

    #[test]
    fn a_printed_list_parses_back(cpus in proptest::collection::btree_set(0u32..4096, 0..40)) {
        let text: Vec<String> = cpus.iter().map(u32::to_string).collect();
        prop_assert_eq!(parse_cpu_list(&text.join(",")).unwrap(), Vec::from_iter(cpus));
    }
}

fn all_parsers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_cpu_list(&text);
    let _ = cpu::parse_model(&text);
    let _ = cpu::parse_allowed(&text);
    let _ = cpu::parse_cache_size(&text);
    let _ = numa::parse_node(&text);
    let _ = numa::parse_distances(&text);
    let _ = numa::parse_node_memory(&text, "MemTotal");
    let _ = numa::normalize_pci(&text);
    let _ = memory::parse_meminfo(&text);
    let _ = memory::parse_pins(&text);
    let _ = memory::parse_limit(&text);
    let _ = cgroup::parse(&text);
    let _ = cgroup::parse_io_max(&text);
    let _ = cgroup::parse_throttle(&text, Towards::Read, true);
    let _ = kernel::parse_limit(&text, "Max open files");
    let _ = kernel::parse_hypervisor(&text);
    let _ = kernel::container_of_cgroup(&text);
    let _ = mount::parse_mountinfo(bytes);
    let _ = mount::parse_device(&text);
    let _ = target::parse_swaps(bytes);
    let _ = proc_io::parse(&text);
    let _ = block::parse_stat(&text);
}
