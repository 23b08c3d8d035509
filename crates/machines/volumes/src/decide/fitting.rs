//! Whether content fits into a claim.

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

#[cfg(test)]
mod tests {
    use super::size;

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
