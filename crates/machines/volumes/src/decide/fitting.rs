//! Whether content fits into a claim, and how sizes are written.

use fairway_kernel_scalar::quantity::Quantity;

/// The disk of a claim of `requested` bytes that starts from content of `content` bytes; else what is wrong, and what to do.
pub(crate) fn size(requested: u64, content: Option<u64>) -> Result<u64, String> {
    let requested = requested.next_multiple_of(512);
    match content {
        Some(content) if content > requested => Err(format!(
            "DataVolume too small to contain image: the disk in it has {content} bytes, the claim asks for {requested}; ask \
             for at least {}Mi",
            content.div_ceil(1 << 20)
        )),
        _ => Ok(requested),
    }
}

/// Bytes as the API writes them: in the largest unit that leaves nothing over.
pub(crate) fn shown(bytes: u64) -> String {
    let text = match bytes.is_multiple_of(1 << 10) {
        true => format!("{}Ki", bytes >> 10),
        false => bytes.to_string(),
    };
    Quantity::parse(&text).map_or(text, Quantity::canonical)
}

#[cfg(test)]
mod tests {
    use super::{shown, size};

    #[test]
    fn bytes_are_shown_in_large_units() {
        for (bytes, expected) in [
            (8 << 20, "8Mi"),
            (1 << 40, "1Ti"),
            (3 << 29, "1536Mi"),
            (1536, "1536"),
            (2048, "2Ki"),
        ] {
            assert_eq!(shown(bytes), expected);
        }
    }

    #[test]
    fn content_fits_or_does_not() {
        assert_eq!(size(1000, None), Ok(1024), "a disk has whole sectors");
        assert_eq!(size(1 << 20, Some(1 << 20)), Ok(1 << 20));
        assert_eq!(size(2 << 20, Some(1 << 20)), Ok(2 << 20));
        let why = size(1 << 20, Some((1 << 20) + 1)).unwrap_err();
        assert!(
            why.starts_with("DataVolume too small to contain image") && why.ends_with("2Mi"),
            "{why}"
        );
    }
}
