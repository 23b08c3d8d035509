//! A claim waits for a file that somebody sends, and says where to.

use fairway_controller::Failure;
use serde_json::json;

use super::{Claims, Look};
use crate::decide::status::{Filling, Told};

/// CDI's settings, of which there is one object.
const CONFIGS: &str = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs";
const NAME: &str = "config";

impl Claims {
    /// Whether files are taken; then the workspace is told where they are sent.
    pub(super) async fn ready_for_upload(&self, look: &Look<'_>) -> Result<Filling, Failure> {
        // Files are sent to the control plane, which tells where; this node fetches them from there.
        if self.origins.has_server {
            return Ok(Filling::Ready);
        }
        if self.uploads.is_none() {
            return Ok(Filling::Waits(Told {
                reason: "UploadUnavailable",
                message: "this server takes no uploads; import the image from the web, or with `fairway image import`".to_owned(),
            }));
        }
        self.tell_of_uploads(look).await?;
        Ok(Filling::Ready)
    }

    /// Tells the workspace where files are sent, if they are sent here.
    pub(super) async fn tell_of_uploads(&self, look: &Look<'_>) -> Result<(), Failure> {
        let Some(uploads) = &self.uploads else {
            return Ok(());
        };
        let path = format!("{CONFIGS}/{NAME}");
        let status = json!({"uploadProxyURL": uploads.url(), "filesystemOverhead": {"global": "0"}});
        match look.requests.get(&path).await? {
            Some(found) if found["status"]["uploadProxyURL"] == uploads.url() => {}
            Some(_) => {
                look.requests.merge(&path, &json!({"status": status})).await?;
            }
            None => {
                let config = json!({
                    "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDIConfig", "metadata": {"name": NAME},
                    "spec": {}, "status": status,
                });
                look.requests.create(CONFIGS, &config).await?;
            }
        }
        Ok(())
    }
}
