//! A whole body, if it is not too large.

use http_body_util::BodyExt as _;

use super::Body;

/// Reads a body; nothing if it is larger than this, or breaks off.
pub(crate) async fn read(mut body: Body, most: usize) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        // What is no data are trailers, of which nobody wants to know.
        if let Ok(data) = frame.ok()?.into_data() {
            if whole.len() + data.len() > most {
                return None;
            }
            whole.extend_from_slice(&data);
        }
    }
    Some(whole)
}
