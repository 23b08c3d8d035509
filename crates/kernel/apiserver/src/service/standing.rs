//! Watches that outlive the standing of whoever opened them.
//!
//! A watch may be open for half an hour. When a domain says that somebody may have lost a right, whoever watches with a token is
//! asked again who he is and whether he may; if not, his watch ends, and the next one is refused like any request.

use std::sync::Arc;

use futures::StreamExt as _;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use tokio::sync::watch;

use crate::authn;
use crate::authorize;
use crate::http::body::ResponseBody;
use crate::kernel::Kernel;
use crate::request::RequestInfo;

/// Who watches what.
pub(super) struct Standing {
    kernel: Arc<Kernel>,
    info: Arc<RequestInfo>,
    only_name: String,
    token: String,
    changes: watch::Receiver<u64>,
}

impl Standing {
    pub(super) fn new(
        kernel: &Arc<Kernel>,
        info: &Arc<RequestInfo>,
        only_name: &str,
        (token, changes): (&str, watch::Receiver<u64>),
    ) -> Self {
        Self {
            kernel: Arc::clone(kernel),
            info: Arc::clone(info),
            only_name: only_name.to_owned(),
            token: token.to_owned(),
            changes,
        }
    }

    /// The body, for as long as he may read it.
    pub(super) fn keep(self, body: ResponseBody) -> ResponseBody {
        let frames = BodyStream::new(body).take_until(Box::pin(self.lost()));
        StreamBody::new(frames).boxed_unsync()
    }

    async fn lost(mut self) {
        loop {
            if self.changes.changed().await.is_err() {
                return std::future::pending().await;
            }
            if !self.may_go_on().await {
                return;
            }
        }
    }

    async fn may_go_on(&self) -> bool {
        let (kernel, info) = (&self.kernel, &self.info);
        match authn::authenticate_token(kernel, info.home(), &self.token, &[]).await {
            Err(_) => false,
            // Through an export or an initializer other rules hold, which do not depend on groups alone.
            Ok(_) if info.door != crate::request::Door::Own => true,
            Ok(verified) => {
                let attributes = authorize::attributes(&verified.user, info, &self.only_name);
                kernel.authorize(&info.cluster, &attributes).is_ok()
            }
        }
    }
}
