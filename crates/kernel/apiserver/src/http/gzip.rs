//! Compressing answers.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses chunks into one gzip stream, at the level where speed matters more than size.
pub fn compress(chunks: impl Iterator<Item = Bytes>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for chunk in chunks {
        // Writing into a vector cannot fail.
        let _ = encoder.write_all(&chunk);
    }
    encoder.finish().unwrap_or_default()
}
