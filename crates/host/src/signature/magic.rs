//! Magic numbers at a fixed offset from the start of a device.

/// A magic number: the kind of data, its offset in bytes, and its bytes.
pub(super) type Magic = (&'static str, u64, &'static [u8]);

/// Where a mark stands depends on nothing, so a table suffices. Sources: the kernel's headers of
/// each file system (`include/uapi/linux/magic.h`, `fs/*/`), LVM2, cryptsetup's on-disk format,
/// `drivers/md/bcache`, the OpenZFS on-disk format, UEFI 2.10 chapter 5, ECMA-119 and ECMA-167.
pub(super) const MAGICS: &[Magic] = &[
    ("xfs file system", 0, b"XFSB"),
    ("btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("bcachefs file system", 4096 + 24, &BCACHEFS),
    ("bcache device", 4096 + 24, &BCACHE),
    ("f2fs file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("jfs file system", 0x8000, b"JFS1"),
    ("nilfs2 file system", 1024 + 6, &[0x34, 0x34]),
    ("reiserfs file system", 0x1_0034, b"ReIsErFs"),
    ("reiserfs file system", 0x1_0034, b"ReIsEr2Fs"),
    ("reiserfs file system", 0x1_0034, b"ReIsEr3Fs"),
    ("reiserfs file system", 0x2034, b"ReIsErFs"),
    ("reiser4 file system", 0x1_0000, b"ReIsEr4"),
    ("gfs2 file system", 0x1_0000, &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1]),
    ("ocfs2 file system", 0x400, b"OCFSV2"),
    ("ocfs2 file system", 0x800, b"OCFSV2"),
    ("ocfs2 file system", 0x1000, b"OCFSV2"),
    ("ocfs2 file system", 0x2000, b"OCFSV2"),
    ("squashfs file system", 0, b"hsqs"),
    ("erofs file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("cramfs file system", 0, &[0x45, 0x3d, 0xcd, 0x28]),
    ("apfs container", 32, b"NXSB"),
    ("hfs+ file system", 1024, b"H+\x00\x04"),
    ("hfsx file system", 1024, b"HX\x00\x05"),
    ("ntfs file system", 3, b"NTFS    "),
    ("exfat file system", 3, b"EXFAT   "),
    ("refs file system", 3, b"ReFS\0\0\0\0"),
    ("vfat file system", 82, b"FAT32   "),
    ("vfat file system", 54, b"FAT16   "),
    ("vfat file system", 54, b"FAT12   "),
    ("iso9660 file system", 0x8001, b"CD001"),
    ("udf file system", 0x8001, b"BEA01"),
    ("udf file system", 0x8001, b"NSR02"),
    ("udf file system", 0x8001, b"NSR03"),
    ("LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    ("BitLocker encrypted volume", 3, b"-FVE-FS-"),
    ("dm-integrity device", 0, b"integrt\0"),
    ("dm-verity hash device", 0, b"verity\0\0"),
    ("VDO volume", 0, b"dmvdo001"),
    ("LVM1 physical volume", 0, b"HM\x01\x00"),
    ("LVM1 physical volume", 0, b"HM\x02\x00"),
    ("Stratis pool member", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("Ceph BlueStore device", 0, b"bluestore block device"),
    ("Oracle ASM disk", 32, b"ORCLDISK"),
    ("GPT partition table", 512, b"EFI PART"),
    ("GPT partition table", 4096, b"EFI PART"),
    ("Apple partition map", 512, b"PM\0\0"),
    ("md RAID member (metadata 1.1)", 0, &MD_1),
    ("md RAID member (metadata 1.2)", 4096, &MD_1),
    ("LVM2 snapshot exception store", 0, b"SnAp"),
    ("tar archive", 257, b"ustar"),
];

/// Marks of a swap area or a hibernation image, which end the first page: the last ten bytes
/// (kernel `mm/swapfile.c`, `kernel/power/swap.c`).
pub(super) const SWAPS: &[(&str, &[u8])] = &[
    ("swap area", b"SWAPSPACE2"),
    ("swap area", b"SWAP-SPACE"),
    ("hibernation image", b"S1SUSPEND"),
    ("hibernation image", b"S2SUSPEND"),
    ("hibernation image", b"ULSUSPEND"),
    ("hibernation image", b"LINHIB0001"),
];

/// Page sizes that Linux runs with.
pub(super) const PAGES: [u64; 4] = [4096, 8192, 16384, 65536];

/// `bcache` superblock identity.
const BCACHE: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];

/// `bcachefs` superblock identity since it left bcache's.
const BCACHEFS: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];

/// `a92b4efc`, little-endian, with major version 1 after it (kernel `md_p.h`).
pub(super) const MD_1: [u8; 8] = [0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];

/// The same mark of version 0.90, in the byte order of the machine that wrote it.
pub(super) const MD_0: [[u8; 4]; 2] = [[0xfc, 0x4e, 0x2b, 0xa9], [0xa9, 0x2b, 0x4e, 0xfc]];
