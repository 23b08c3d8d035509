//! Files on the web: with credentials, extra headers and authorities, fetched once for all who may have them.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_image::import::{self, Kept, TRANSFERRED};
use fairway_machines_image::{Cache, Image, ImageError, download};
use fairway_outbound::Outbound;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{Origin, Origins, blocking};
use crate::decide::source::Http;
use crate::fill::{FillError, Progress};

/// The label of a kept image with what its server calls its version.
const VERSION: &str = "version";

/// What is fetched, with everything that it takes.
#[derive(Clone)]
pub(crate) struct Fetch {
    url: String,
    headers: Vec<(String, String)>,
    checksum: Option<String>,
    outbound: Arc<Outbound>,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers may be secrets.
        f.debug_struct("Fetch")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Origins {
    /// Reads what a file on the web takes.
    pub(super) async fn http(
        &self,
        requests: &Requests,
        claim: &ObjectKey,
        http: &Http,
    ) -> Result<Origin, Failure> {
        let missing = |kind: &str, name: &str| {
            Origin::asks(
                "ErrClaimNotValid",
                format!("the {kind} {name} of spec.source.http doesn't exist"),
            )
        };
        let mut headers = Vec::new();
        for header in &http.extra_headers {
            match parsed(header) {
                Some(header) => headers.push(header),
                None => {
                    return Ok(Origin::Refused(
                        "an extra header is not of the form `Name: value`".to_owned(),
                    ));
                }
            }
        }
        if !http.secret_ref.is_empty() {
            let Some(secret) = secret(requests, claim, &http.secret_ref).await? else {
                return Ok(missing("Secret", &http.secret_ref));
            };
            let text = |name: &str| secret.get(name).cloned().unwrap_or_default();
            let pair = format!("{}:{}", text("accessKeyId"), text("secretKey"));
            headers.push((
                "authorization".to_owned(),
                format!("Basic {}", STANDARD.encode(pair)),
            ));
        }
        for name in &http.secret_extra_headers {
            let Some(secret) = secret(requests, claim, name).await? else {
                return Ok(missing("Secret", name));
            };
            for header in secret
                .values()
                .flat_map(|text| text.lines())
                .filter(|it| !it.trim().is_empty())
            {
                match parsed(header) {
                    Some(header) => headers.push(header),
                    None => {
                        return Ok(Origin::Refused(format!(
                            "a header in the Secret {name} is not of the form `Name: value`"
                        )));
                    }
                }
            }
        }
        let outbound = match self.trusting(requests, claim, &http.cert_config_map).await? {
            Ok(outbound) => outbound,
            Err(origin) => return Ok(origin),
        };
        Ok(Origin::Http(Fetch {
            url: http.url.clone(),
            headers,
            checksum: (!http.checksum.is_empty()).then(|| http.checksum.clone()),
            outbound,
        }))
    }

    /// Who sends requests, believing the authorities of a ConfigMap, too.
    pub(super) async fn trusting(
        &self,
        requests: &Requests,
        claim: &ObjectKey,
        config_map: &str,
    ) -> Result<Result<Arc<Outbound>, Origin>, Failure> {
        if config_map.is_empty() {
            return Ok(Ok(Arc::clone(&self.outbound)));
        }
        let path = format!("/api/v1/namespaces/{}/configmaps/{config_map}", claim.namespace);
        let Some(found) = requests.get(&path).await? else {
            return Ok(Err(Origin::asks(
                "ErrClaimNotValid",
                format!("the ConfigMap {config_map} with certificates doesn't exist"),
            )));
        };
        let data = found["data"].as_object();
        let texts = data
            .into_iter()
            .flat_map(|data| data.values().filter_map(Value::as_str));
        let pem = texts.collect::<Vec<_>>().join("\n");
        Ok(
            match Outbound::trusting(self.allowed_hosts.clone(), pem.as_bytes()) {
                Ok(outbound) => Ok(Arc::new(outbound)),
                Err(why) => Err(Origin::Refused(format!("the ConfigMap {config_map}: {why}"))),
            },
        )
    }

    /// Fetches a file and makes an image of it, for a disk of at most `size` bytes. The server is asked each time; it is only what it
    /// would send that may be here already.
    pub(super) async fn fetch(
        &self,
        fetch: &Fetch,
        size: u64,
        progress: Arc<Progress>,
    ) -> Result<Image, FillError> {
        let _alone = self.alone.with(&fetch.url).await;
        let key = hex(digest(&SHA256, format!("http {}", fetch.url).as_bytes()).as_ref());
        let (images, looked_for) = (Arc::clone(&self.images), key.clone());
        let (cache, kept) = blocking(move || {
            let cache = images.open()?;
            let kept = cache.kept(&looked_for)?;
            Ok((cache, kept))
        })
        .await?;
        let kept = kept.filter(|kept| is_as_promised(kept, fetch.checksum.as_deref()));
        let known = kept.as_ref().and_then(|kept| kept.labels.get(VERSION));
        let limit = import::largest_file(size);
        let said = Arc::clone(&progress);
        let fetched = download::fetch_unless(
            &cache,
            &fetch.outbound,
            &fetch.url,
            &fetch.headers,
            limit,
            known.map(String::as_str),
            move |so_far| {
                // The other half is unpacking it.
                said.set(so_far.done, so_far.total.unwrap_or(0).saturating_mul(2));
            },
        )
        .await;
        let fetched = match fetched {
            Ok(Some(fetched)) => fetched,
            Ok(None) => {
                return kept.ok_or_else(|| FillError::passing("the image has disappeared from the cache"));
            }
            Err(error) => return Err(made_room(&cache, error).await),
        };
        let labels: BTreeMap<String, String> = fetched
            .version()
            .map(|version| (VERSION.to_owned(), version.to_owned()))
            .into_iter()
            .collect();
        let mut request = import::Request::keeping(Kept { key, labels }, &fetch.url);
        request.checksum.clone_from(&fetch.checksum);
        request.max_size = size;
        let importing = cache.clone();
        let image = blocking(move || {
            let image = unpacked(&importing, &fetched, &request, &progress);
            // A file that cannot be used is of no use the next time either; one for which there was no room is.
            if !matches!(image, Err(ImageError::NoRoom { .. })) {
                fetched.discard();
            }
            image
        })
        .await;
        match image {
            Ok(image) => Ok(image),
            Err(error) => Err(made_room(&cache, error).await),
        }
    }
}

/// What is kept is what was asked for only if its checksum was seen.
fn is_as_promised(kept: &Image, checksum: Option<&str>) -> bool {
    let Some(checksum) = checksum else { return true };
    let wanted = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    kept.labels
        .get(TRANSFERRED)
        .is_some_and(|seen| seen.eq_ignore_ascii_case(wanted))
}

fn unpacked(
    cache: &Cache,
    fetched: &download::Fetched,
    request: &import::Request,
    progress: &Arc<Progress>,
) -> Result<Image, ImageError> {
    let failed = |source| ImageError::File {
        action: "reading",
        path: fetched.path().to_owned(),
        source,
    };
    let file = std::fs::File::open(fetched.path()).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let counted = Counted {
        from: file,
        done: total,
        total: total.saturating_mul(2),
        progress: Arc::clone(progress),
    };
    import::stream(cache, counted, request, |_| {})
}

/// Reads, says how far it is, and stops when nobody wants the result any more.
pub(crate) struct Counted<R> {
    pub(crate) from: R,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) progress: Arc<Progress>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(std::io::Error::other("nobody wants it any more"));
        }
        let count = self.from.read(buffer)?;
        self.done = self.done.saturating_add(count as u64);
        self.progress.set(self.done, self.total);
        Ok(count)
    }
}

/// When the disk is full, what nobody uses is given up, so that the next attempt has room.
pub(super) async fn made_room(cache: &Cache, error: ImageError) -> FillError {
    let is_full = match &error {
        ImageError::NoRoom { .. } => true,
        ImageError::File { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
        _ => false,
    };
    if is_full {
        let cache = cache.clone();
        let _ = blocking(move || cache.forget_unused()).await;
    }
    FillError::from(error)
}

/// The texts of a Secret.
pub(super) async fn secret(
    requests: &Requests,
    claim: &ObjectKey,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let path = format!("/api/v1/namespaces/{}/secrets/{name}", claim.namespace);
    let Some(found) = requests.get(&path).await? else {
        return Ok(None);
    };
    let data = found["data"].as_object();
    let texts = data.into_iter().flatten().filter_map(|(name, value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        Some((name.clone(), String::from_utf8(bytes).ok()?))
    });
    Ok(Some(texts.collect()))
}

fn parsed(header: &str) -> Option<(String, String)> {
    let (name, value) = header.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
