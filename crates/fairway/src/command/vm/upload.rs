//! `fairway vm image-upload`: a disk image from this host into a DataVolume or a claim, in the protocol of CDI's upload
//! proxy.
//!
//! 1. The volume is made, or one that is there is taken, as [`plan`] says.
//! 2. It says when it can be filled.
//! 3. A token is asked for, and the file is sent with it ([`send`]).
//! 4. The volume says when it is done.

mod plan;
mod send;

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};

use super::session::{Refused, Session};
use crate::cli::vm::storage::ImageUpload;
use plan::Upload;

/// How often a volume is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long the making of a disk may take.
const PROCESSING: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn run(session: &Session, options: &ImageUpload) -> anyhow::Result<()> {
    let upload = plan::read(options)?;
    let file = tokio::fs::File::open(&upload.file).await;
    let file = file.with_context(|| format!("open {}", upload.file.display()))?;
    let length = file
        .metadata()
        .await
        .context("the file cannot be looked at")?
        .len();
    drop(file);
    let target = session.target(&upload.name)?;
    let volume = Volume {
        session,
        options,
        upload: &upload,
        namespace: target.namespace,
        name: target.name,
    };
    volume.prepare().await?;
    volume.ready().await?;
    let proxy = volume.proxy().await?;
    println!("Uploading data to {proxy}");
    let token = volume.token().await?;
    send::send(session, options, &upload.file, length, &proxy, &token).await?;
    if options.makes_data_source {
        volume.data_source().await?;
    }
    println!(
        "Uploading data completed successfully, waiting for processing to complete, you can hit ctrl-c without \
         interrupting the progress"
    );
    volume.done().await?;
    println!("Uploading {} completed successfully", upload.file.display());
    Ok(())
}

/// What is filled.
struct Volume<'a> {
    session: &'a Session,
    options: &'a ImageUpload,
    upload: &'a Upload,
    namespace: String,
    name: String,
}

impl Volume<'_> {
    fn claims(&self) -> String {
        format!("/api/v1/namespaces/{}/persistentvolumeclaims", self.namespace)
    }

    fn data_volumes(&self) -> String {
        format!(
            "/apis/cdi.kubevirt.io/v1beta1/namespaces/{}/datavolumes",
            self.namespace
        )
    }

    /// The claim as it is.
    async fn claim(&self) -> Result<Value, Refused> {
        self.session
            .get(&format!("{}/{}", self.claims(), self.name))
            .await
    }

    async fn data_volume(&self) -> Result<Value, Refused> {
        self.session
            .get(&format!("{}/{}", self.data_volumes(), self.name))
            .await
    }

    /// Takes the volume that is there, or makes one.
    async fn prepare(&self) -> anyhow::Result<()> {
        let Self { namespace, name, .. } = self;
        match self.claim().await {
            Ok(claim) => {
                let data_volume = match self.upload.is_claim {
                    true => None,
                    false => Some(match self.data_volume().await {
                        Ok(found) => Some(found),
                        Err(refused) if refused.is_not_found() => None,
                        Err(refused) => bail!("{refused}"),
                    }),
                };
                plan::usable(
                    &claim,
                    data_volume.as_ref().map(Option::as_ref),
                    self.options.uses_existing,
                    self.upload.is_archive,
                )?;
                if claim["metadata"]["annotations"]
                    .get(plan::UPLOAD_TARGET)
                    .is_none()
                {
                    let patch = json!({"metadata": {"annotations": {plan::UPLOAD_TARGET: ""}}});
                    let path = format!("{}/{name}", self.claims());
                    self.session.ask("PATCH", &path, Some(&patch)).await?;
                }
                println!("Using existing PVC {namespace}/{name}");
                Ok(())
            }
            Err(refused) if refused.is_not_found() => {
                println!("PVC {namespace}/{name} not found ");
                if self.options.uses_existing {
                    bail!("{refused}");
                }
                self.make().await
            }
            Err(refused) => bail!("{refused}"),
        }
    }

    async fn make(&self) -> anyhow::Result<()> {
        let object = plan::object(self.options, self.upload, &self.namespace, &self.name)?;
        if !self.options.storage_class.is_empty() {
            let class = format!(
                "/apis/storage.k8s.io/v1/storageclasses/{}",
                self.options.storage_class
            );
            self.session.get(&class).await?;
        }
        let path = match self.upload.is_claim {
            true => self.claims(),
            false => self.data_volumes(),
        };
        self.session.ask("POST", &path, Some(&object)).await?;
        let kind = object["kind"].as_str().unwrap_or_default();
        println!("{kind} {}/{} created", self.namespace, self.name);
        Ok(())
    }

    /// Waits until the volume can be filled.
    async fn ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            let is_ready = match self.upload.is_claim {
                true => match self.claim().await {
                    Ok(claim) => plan::annotation(&claim, plan::POD_READY) == Some("true"),
                    Err(refused) if refused.is_not_found() => false,
                    Err(refused) => bail!("{refused}"),
                },
                false => match self.data_volume().await {
                    Ok(found) => plan::is_upload_ready(&found, self.options.forces_bind)?,
                    Err(refused) if refused.is_not_found() => false,
                    Err(refused) => bail!("{refused}"),
                },
            };
            if is_ready {
                if is_told {
                    println!("Pod now ready");
                }
                return Ok(());
            }
            if !is_told {
                println!("Waiting for PVC {} upload pod to be ready...", self.name);
                is_told = true;
            }
            if let Some(why) = self.complaint().await {
                bail!("{why}");
            }
            if begun.elapsed() >= Duration::from_secs(self.options.wait_secs) {
                bail!("timed out waiting for the condition");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What events say that ends the waiting.
    async fn complaint(&self) -> Option<String> {
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        let events = self.session.list(&path).await.unwrap_or_default();
        plan::complaint(&events, &self.name)
    }

    /// Where files are sent.
    async fn proxy(&self) -> anyhow::Result<String> {
        let mut url = self.options.uploadproxy_url.clone();
        if url.is_empty() {
            let config = self
                .session
                .get("/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config")
                .await?;
            let told = ["/spec/uploadProxyURLOverride", "/status/uploadProxyURL"]
                .into_iter()
                .find_map(|pointer| config.pointer(pointer)?.as_str());
            url = told.unwrap_or_default().to_owned();
        }
        match url.as_str() {
            "" => bail!("uploadproxy URL not found"),
            url if url.contains("://") => Ok(url.to_owned()),
            host => Ok(format!("https://{host}")),
        }
    }

    async fn token(&self) -> anyhow::Result<String> {
        let path = format!(
            "/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/{}/uploadtokenrequests",
            self.namespace
        );
        let request = json!({
            "apiVersion": "upload.cdi.kubevirt.io/v1beta1", "kind": "UploadTokenRequest",
            "metadata": {"name": "token-for-virtctl"}, "spec": {"pvcName": self.name},
        });
        let answer = self.session.ask("POST", &path, Some(&request)).await?;
        let answer: Value = serde_json::from_slice(&answer).context("the token cannot be read")?;
        match answer["status"]["token"].as_str() {
            Some(token) => Ok(token.to_owned()),
            None => bail!("the server gave no token for the upload"),
        }
    }

    /// Makes a DataSource for the volume, or has the one that is there lead to it.
    async fn data_source(&self) -> anyhow::Result<()> {
        let Self { namespace, name, .. } = self;
        let all = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datasources");
        let object = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
            "metadata": {"name": name, "namespace": namespace, "labels": plan::labels(self.options)},
            "spec": {"source": {"pvc": {"name": name, "namespace": namespace}}},
        });
        match self.session.get(&format!("{all}/{name}")).await {
            Ok(_) => {
                // Whatever it led to before: one source only.
                let path = format!("{all}/{name}");
                let patch = json!({
                    "metadata": {"labels": plan::labels(self.options)},
                    "spec": {"source": {"pvc": {"name": name, "namespace": namespace}, "snapshot": null}},
                });
                self.session.ask("PATCH", &path, Some(&patch)).await?;
                println!("Updated an existing DataSource {namespace}/{name}");
            }
            Err(refused) if refused.is_not_found() => {
                self.session.ask("POST", &all, Some(&object)).await?;
                println!("Created a new DataSource {namespace}/{name}");
            }
            Err(refused) => bail!("{refused}"),
        }
        Ok(())
    }

    /// Waits until the disk is made.
    async fn done(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let claim = self.claim().await.map_err(|error| {
                println!(
                    "Timed out waiting for post upload processing to complete, please check upload pod status for progress"
                );
                anyhow!("{error}")
            })?;
            match plan::annotation(&claim, plan::POD_PHASE) {
                Some("Succeeded") => {
                    println!("Processing completed successfully");
                    return Ok(());
                }
                Some("Failed") => bail!(
                    "the upload was refused: see `fairway vm why` or the events of PVC {}",
                    self.name
                ),
                _ if begun.elapsed() > PROCESSING => bail!("timed out waiting for the condition"),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
