//! An initrd: a cpio archive in the "new ASCII" form that the kernel unpacks.

use std::fmt::Write as _;

use crate::{Content, Node, Tree};

/// Packs a tree. Times are zero and numbers are counted, so that the same tree gives the same bytes.
pub fn pack(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, (path, node)) in (1_u32..).zip(tree.nodes()) {
        let content = match &node.content {
            Content::Directory => &[][..],
            Content::File(bytes) => bytes,
            Content::Symlink(target) => target.as_bytes(),
        };
        let links = match node.content {
            Content::Directory => 2,
            _ => 1,
        };
        entry(&mut out, number, Some(node), links, path, content);
    }
    entry(&mut out, 0, None, 1, "TRAILER!!!", &[]);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn entry(out: &mut Vec<u8>, inode: u32, node: Option<&Node>, links: u32, path: &str, content: &[u8]) {
    let (mode, uid, gid) = node.map_or((0, 0, 0), |node| {
        (u32::from(node.full_mode()), node.uid, node.gid)
    });
    // inode, mode, uid, gid, links, time, size, device (2), special device (2), length of the name, checksum
    let size = content.len() as u32;
    let fields = [
        inode,
        mode,
        uid,
        gid,
        links,
        0,
        size,
        0,
        0,
        0,
        0,
        path.len() as u32 + 1,
        0,
    ];
    let mut header = String::from("070701");
    for field in fields {
        let _ = write!(header, "{field:08x}");
    }
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_counted() {
        let mut tree = Tree::default();
        tree.file("init", 0o755, "#!");
        tree.symlink("bin", "usr/bin");
        let packed = pack(&tree);
        assert_eq!(packed.len() % 512, 0);
        let text = String::from_utf8_lossy(&packed);
        // 6 + 13 * 8 = 110 bytes of header, "bin\0" makes 114, padded to 116, "usr/bin" 123, padded to 124.
        assert!(text.starts_with("070701000000010000a1ff") || text.starts_with("070701000000010000a1ff"));
        assert_eq!(&text[110..113], "bin");
        assert_eq!(&text[116..123], "usr/bin");
        assert_eq!(&text[124..130], "070701");
        assert!(text.contains("TRAILER!!!"));
        assert_eq!(packed, pack(&tree));
    }
}
