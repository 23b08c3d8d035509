//! Compressed lists, without compressing the same objects again.
//!
//! A deflate stream may be put together from pieces that were compressed apart, as long as each ends on a byte boundary. So
//! a list is cut into segments of some dozens of neighbouring objects, each segment is compressed once, and lists
//! share the pieces until one of their objects changes. Segments end where the hash of a key says so, not after a fixed
//! count: then an object more or less moves no other boundary. Only the list's head, which carries the revision, is
//! compressed for every answer.

use std::sync::{Arc, Mutex, PoisonError};

use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::generations::{Bound, Generations};
use crate::object::Object;

/// One key in this many ends a segment.
const SEGMENT: u64 = 64;
/// Bytes of compressed segments that are kept, twice: what is in use, and what was until lately.
const KEEP: usize = 16 << 20;

/// A compressed piece, its checksum and its length before compression.
pub struct Piece {
    deflated: Vec<u8>,
    crc: Crc,
}

const BOUND: Bound<Piece> = Bound {
    keep: KEEP,
    weigh: |piece| piece.deflated.len(),
};

/// Pieces by what is in them.
#[derive(Default)]
pub struct Pieces(Mutex<Generations<u128, Piece>>);

impl Pieces {
    fn get(&self, id: u128) -> Option<Arc<Piece>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id, &BOUND)
    }

    fn put(&self, id: u128, piece: &Arc<Piece>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(id, piece, &BOUND);
    }
}

fn compress(parts: &[&[u8]]) -> Piece {
    let mut crc = Crc::new();
    let mut engine = Compress::new(Compression::fast(), false);
    let mut deflated = Vec::with_capacity(parts.iter().map(|p| p.len()).sum::<usize>() / 4 + 64);
    for part in parts {
        crc.update(part);
        feed(&mut engine, part, FlushCompress::None, &mut deflated);
    }
    feed(&mut engine, &[], FlushCompress::Sync, &mut deflated);
    Piece { deflated, crc }
}

fn feed(engine: &mut Compress, input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
    let mut rest = input;
    loop {
        out.reserve(4096);
        let (before_in, before_out) = (engine.total_in(), out.len());
        // Compressing in memory has no way to fail; a failure would only leave the piece short, and its checksum would tell.
        if engine.compress_vec(rest, out, flush).is_err() {
            return;
        }
        let taken = usize::try_from(engine.total_in() - before_in).unwrap_or(rest.len());
        rest = &rest[taken..];
        let full = out.len() == out.capacity();
        if rest.is_empty() && !full || out.len() == before_out && taken == 0 {
            return;
        }
    }
}

/// A gzip stream in the making.
struct Stream {
    out: Vec<u8>,
    crc: Crc,
}

impl Stream {
    fn new() -> Self {
        // Magic, deflate, no flags, no time, fastest, unknown system.
        Self {
            out: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255],
            crc: Crc::new(),
        }
    }

    fn push(&mut self, piece: &Piece) {
        self.out.extend_from_slice(&piece.deflated);
        self.crc.combine(&piece.crc);
    }

    fn push_byte(&mut self, byte: u8) {
        // A stored block of one byte.
        self.out.extend_from_slice(&[0, 1, 0, 0xfe, 0xff, byte]);
        self.crc.update(&[byte]);
    }

    fn finish(mut self) -> Vec<u8> {
        // An empty final block, then checksum and length.
        self.out.extend_from_slice(&[3, 0]);
        self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
        self.out
    }
}

/// Compresses a list: its head, its objects with commas between them, its tail.
///
/// A kind's items are always with or always without their type, so a piece need not say which.
pub fn list(pieces: &Pieces, head: &[u8], objects: &[Arc<Object>], untyped: bool, tail: &[u8]) -> Vec<u8> {
    let mut stream = Stream::new();
    stream.push(&compress(&[head]));
    let mut rest = objects;
    let mut first = true;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|o| ends_segment(o))
            .map_or(rest.len(), |at| at + 1);
        let (segment, after) = rest.split_at(end);
        rest = after;
        if !std::mem::take(&mut first) {
            stream.push_byte(b',');
        }
        let id = identity(segment);
        let piece = pieces.get(id).unwrap_or_else(|| {
            let piece = Arc::new(compress_objects(segment, untyped));
            pieces.put(id, &piece);
            piece
        });
        stream.push(&piece);
    }
    stream.push(&compress(&[tail]));
    stream.finish()
}

fn compress_objects(objects: &[Arc<Object>], untyped: bool) -> Piece {
    let mut parts: Vec<&[u8]> = Vec::with_capacity(objects.len() * 2);
    for (i, object) in objects.iter().enumerate() {
        if i > 0 {
            parts.push(b",");
        }
        if untyped {
            parts.push(b"{");
            parts.push(object.untyped());
        } else {
            parts.push(object.bytes());
        }
    }
    compress(&parts)
}

/// Revisions are unique to one write of one object, so they say what is in a segment.
fn identity(objects: &[Arc<Object>]) -> u128 {
    // Two independent FNV-1a hashes over the revisions.
    let hash = |seed: u64| {
        objects.iter().fold(seed, |hash, object| {
            object
                .revision()
                .to_le_bytes()
                .iter()
                .fold(hash, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
        })
    };
    (u128::from(hash(0xcbf2_9ce4_8422_2325)) << 64) | u128::from(hash(0x9ae1_6a3b_2f90_404f))
}

/// Whether a segment ends after this object. It depends on the object's creation alone, which its writes do not change.
fn ends_segment(object: &Object) -> bool {
    object.identity_hash().is_multiple_of(SEGMENT)
}

/// Compresses bytes that nobody will ask for again.
pub fn once(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Stream::new();
    stream.push(&compress(&[bytes]));
    stream.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::json;

    use super::*;
    use crate::object::encode;

    fn object(index: u64, revision: u64) -> Arc<Object> {
        let name = format!("object-{index}");
        let stored =
            encode(&json!({"metadata": {"name": name, "uid": format!("u{index}")}, "data": {"k": "v"}}))
                .unwrap();
        Arc::new(
            Object::decode(&stored, revision)
                .unwrap()
                .with_identity(index * 7_919),
        )
    }

    fn unzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn a_list_put_together_from_pieces_is_a_gzip_stream() {
        let pieces = Pieces::default();
        let mut objects: Vec<_> = (0..1_000).map(|i| object(i, i + 1)).collect();
        for round in 0..3 {
            let plain: Vec<&[u8]> = objects.iter().map(|o| &o.bytes()[..]).collect();
            let expected = [b"{\"items\":[", plain.join(&b","[..]).as_slice(), b"]}"].concat();
            let zipped = list(&pieces, b"{\"items\":[", &objects, false, b"]}");
            assert_eq!(unzip(&zipped), expected, "round {round}");
            assert!(zipped.len() < expected.len() / 3);
            objects[500] = object(500, 2_000 + round);
        }
        assert_eq!(unzip(&list(&pieces, b"[", &[], true, b"]")), b"[]");
    }

    #[test]
    fn a_change_makes_one_piece_anew() {
        let pieces = Pieces::default();
        let mut objects: Vec<_> = (0..1_000).map(|i| object(i, i + 1)).collect();
        list(&pieces, b"", &objects, true, b"");
        let before = pieces.0.lock().unwrap().len();
        objects[3] = object(3, 5_000);
        list(&pieces, b"", &objects, true, b"");
        assert_eq!(pieces.0.lock().unwrap().len(), before + 1);
    }

    #[test]
    fn incompressible_and_long_input_survives() {
        let bytes: Vec<u8> = (0..300_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert_eq!(unzip(&once(&bytes)), bytes);
    }
}
