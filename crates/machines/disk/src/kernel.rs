//! A Linux kernel as distributions ship it (`bzImage`) wraps a compressed ELF file. QEMU can start the ELF file at once
//! (PVH), which spares a guest without hardware acceleration seconds of unpacking.

/// Where in a `bzImage` the setup header says what.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PROTOCOL: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// The first protocol whose header says where the payload is.
const WITH_PAYLOAD: u16 = 0x0208;
/// LZ4's oldest framing, which the kernel uses.
const LZ4_LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// To how much one block of it unpacks at most.
const LZ4_BLOCK: usize = 8 << 20;
/// The largest kernel that is unpacked.
const MAX_KERNEL: usize = 512 << 20;

/// The ELF file in a kernel, or `None` if this is no kernel, or one that is packed by another method than LZ4.
pub fn unpack(image: &[u8]) -> Option<Vec<u8>> {
    let payload = payload(image)?;
    let elf = lz4_legacy(payload.strip_prefix(&LZ4_LEGACY)?)?;
    elf.starts_with(b"\x7fELF").then_some(elf)
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" || u16_at(PROTOCOL)? < WITH_PAYLOAD {
        return None;
    }
    // A zero stands for four, as it did in the first kernels.
    let setup = match *image.get(SETUP_SECTORS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = ((setup + 1) * 512).checked_add(u32_at(PAYLOAD_OFFSET)?)?;
    image.get(start..start.checked_add(u32_at(PAYLOAD_LENGTH)?)?)
}

/// Blocks, each with its length before it. The kernel's build appends the unpacked length, which is no block.
fn lz4_legacy(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while rest.len() > 4 {
        let (length, after) = rest.split_at(4);
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let block = after.get(..length)?;
        let limit = out.len().checked_add(LZ4_BLOCK)?.min(MAX_KERNEL);
        lz4_block(block, &mut out, limit)?;
        rest = &after[length..];
    }
    Some(out)
}

/// Appends an unpacked block. What goes beyond the limit, or refers to before the block, is an error.
fn lz4_block(mut block: &[u8], out: &mut Vec<u8>, limit: usize) -> Option<()> {
    let start = out.len();
    loop {
        let (&token, rest) = block.split_first()?;
        block = rest;
        let literals = length(usize::from(token >> 4), &mut block)?;
        let literal = block.get(..literals)?;
        if out.len() + literals > limit {
            return None;
        }
        out.extend_from_slice(literal);
        block = &block[literals..];
        if block.is_empty() {
            return Some(());
        }
        let offset = usize::from(u16::from_le_bytes(block.get(..2)?.try_into().ok()?));
        block = &block[2..];
        let count = length(usize::from(token & 15), &mut block)?.checked_add(4)?;
        if offset == 0 || offset > out.len() - start || out.len().checked_add(count)? > limit {
            return None;
        }
        // The copy may overlap what it writes.
        let mut left = count;
        while left > 0 {
            let from = out.len() - offset;
            let step = left.min(offset);
            out.extend_from_within(from..from + step);
            left -= step;
        }
    }
}

fn length(first: usize, block: &mut &[u8]) -> Option<usize> {
    let mut total = first;
    if first == 15 {
        loop {
            let (&more, rest) = block.split_first()?;
            *block = rest;
            total = total.checked_add(usize::from(more))?;
            if more != 255 {
                break;
            }
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A kernel around a packed payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PROTOCOL..PROTOCOL + 2].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16_u32.to_le_bytes());
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend([0; 16]);
        image.extend(payload);
        image
    }

    fn packed(block: &[u8]) -> Vec<u8> {
        let mut payload = LZ4_LEGACY.to_vec();
        payload.extend((block.len() as u32).to_le_bytes());
        payload.extend(block);
        payload.extend([0; 4]);
        payload
    }

    #[test]
    fn a_kernel_is_unpacked() {
        // Eight literals, then 4 + 15 + 3 bytes from four before, then one literal.
        let block = b"\x8f\x7fELFabcd\x04\x00\x03\x10!";
        let elf = unpack(&image(&packed(block))).unwrap();
        assert_eq!(elf, b"\x7fELFabcdabcdabcdabcdabcdabcdab!");
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (why, block) in [
            ("before the start", &b"\x4f\x7fELF\x05\x00\x03\x10!"[..]),
            ("offset of zero", b"\x4f\x7fELF\x00\x00\x03\x10!"),
            ("cut off", b"\x8f\x7fELFab"),
            ("not ELF", b"\x40abcd"),
        ] {
            assert_eq!(unpack(&image(&packed(block))), None, "{why}");
        }
        assert_eq!(unpack(b""), None);
        assert_eq!(unpack(&image(b"\x1f\x8b...")), None, "another method");
    }

    proptest! {
        #[test]
        fn strange_kernels_do_no_harm(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&image(&packed(&payload)));
            let mut legacy = LZ4_LEGACY.to_vec();
            legacy.extend(payload);
            let _ = unpack(&image(&legacy));
        }
    }
}
