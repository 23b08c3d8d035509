//! Streams that outlive the standing of whoever opened them: watches, and what services let run for long, such as consoles.
//!
//! A watch may be open for half an hour, and a console for days. When a domain says that somebody may have lost a right, whoever came with
//! a token is asked again who he is and whether he may; if not, his stream ends, and the next one is refused like any request.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use futures::future::Shared;
use futures::{FutureExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use tokio::sync::watch;

use crate::authn::{self, UserInfo};
use crate::authorize;
use crate::http::body::ResponseBody;
use crate::kernel::Kernel;
use crate::request::RequestInfo;

/// Comes about when somebody has lost his right to a stream, and else never.
pub(crate) type Lost = Shared<BoxFuture<'static, ()>>;

/// Who has a stream of what.
pub(super) struct Standing {
    /// Not kept alive by it: a stream may be open while the server ends.
    kernel: Weak<Kernel>,
    info: Arc<RequestInfo>,
    only_name: String,
    user: Arc<UserInfo>,
    token: String,
    changes: watch::Receiver<u64>,
}

impl Standing {
    pub(super) fn new(
        kernel: &Arc<Kernel>,
        info: &Arc<RequestInfo>,
        only_name: &str,
        user: &Arc<UserInfo>,
        (token, changes): (&str, watch::Receiver<u64>),
    ) -> Self {
        Self {
            kernel: Arc::downgrade(kernel),
            info: Arc::clone(info),
            only_name: only_name.to_owned(),
            user: Arc::clone(user),
            token: token.to_owned(),
            changes,
        }
    }

    /// The body, for as long as he may read it. It ends as if there were no more, as watches do.
    pub(super) fn keep(self, body: ResponseBody) -> ResponseBody {
        let frames = BodyStream::new(body).take_until(Box::pin(self.watched()));
        StreamBody::new(frames).boxed_unsync()
    }

    /// For those who end their streams themselves.
    pub(super) fn lost(self) -> Lost {
        self.watched().boxed().shared()
    }

    async fn watched(mut self) {
        loop {
            if self.changes.changed().await.is_err() {
                return std::future::pending().await;
            }
            let Some(kernel) = self.kernel.upgrade() else {
                return std::future::pending().await;
            };
            if !self.may_go_on(&kernel).await {
                return;
            }
        }
    }

    async fn may_go_on(&self, kernel: &Kernel) -> bool {
        let info = &self.info;
        let Some(user) = self.user_now(kernel).await else {
            return false;
        };
        // Through an export or an initializer other rules hold, which do not depend on groups alone.
        if info.door != crate::request::Door::Own {
            return true;
        }
        let attributes = authorize::attributes(&user, info, &self.only_name);
        kernel.authorize(&info.cluster, &attributes).is_ok()
    }

    /// Who he is by now; none if he is known no longer.
    async fn user_now(&self, kernel: &Kernel) -> Option<Arc<UserInfo>> {
        let cluster = self.info.home();
        // Whoever knows him without his token knows best: it may have expired since, and he may still be there.
        if let Some(found) = kernel.guests.stands(cluster, &self.user) {
            return found.ok().map(authn::proven);
        }
        if let Ok(verified) = authn::authenticate_token(kernel, cluster, &self.token, &[]).await {
            return Some(authn::proven(verified.user));
        }
        // Nobody who tells of losses knows him, and his token was good when the stream began: its time is over, and that is all.
        let is_guest = kernel.guests.authenticate(cluster, &self.token).await.is_some();
        let has_expired = authn::token::has_expired(&self.token, kernel.clock.unix());
        (has_expired && !is_guest).then(|| Arc::clone(&self.user))
    }
}
