//! The kernel as a tower service, for controllers in the same process.
//!
//! It skips TLS and the socket and nothing else: the identity that it is given is authorised, admitted and audited like
//! any other. The identity is attached here, in code; a request cannot claim one.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fairway_kernel_authz::UserInfo;
use http::{Request, Response};
use http_body_util::BodyExt;

use crate::authn::Peer;
use crate::http::body::{BoxError, ResponseBody};
use crate::kernel::Kernel;
use crate::service;

/// The kernel, as one user sees it.
#[derive(Clone)]
pub struct InProcess {
    kernel: Arc<Kernel>,
    peer: Arc<Peer>,
}

impl InProcess {
    /// The kernel for this user.
    pub fn new(kernel: Arc<Kernel>, user: UserInfo) -> Self {
        Self {
            kernel,
            peer: Arc::new(Peer::known(user).inside()),
        }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { kernel, peer } = self.clone();
        Box::pin(async move {
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            Ok(service::serve(&kernel, request, &peer).await)
        })
    }
}
