//! Handing a request to a service, and keeping what goes wrong there to itself.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fairway_apiservice::{self as apiservice, Upgrade, Upgraded};
use fairway_kernel_authz::UserInfo;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tower::ServiceExt;

use super::{Route, leash};
use crate::http::body::{BoxError, MAX_BODY, RequestBody, ResponseBody};
use crate::request::{RequestInfo, ResourcePath};
use crate::rest::call::Answer;
use crate::service::standing::Lost;
use crate::status::ApiError;

impl Route {
    /// Lets the service answer; what it sends and takes for long, for as long as the right to it is not lost.
    pub(crate) async fn forward(
        &self,
        parts: &http::request::Parts,
        body: RequestBody,
        info: &RequestInfo,
        user: &UserInfo,
        lost: Option<Lost>,
    ) -> Answer {
        let path = info.resource.as_ref().ok_or_else(ApiError::no_such_path)?;
        self.check(path, info.verb)?;
        let body = if self.resource.long_running {
            body
        } else {
            Limited::new(body, MAX_BODY).boxed_unsync()
        };
        let mut request = Request::new(body);
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts.uri.clone();
        *request.version_mut() = parts.version;
        *request.headers_mut() = parts.headers.clone();
        // Who asks has been settled; the means to say so again are not the service's business.
        let credentials: Vec<_> = request
            .headers()
            .keys()
            .filter(|name| **name == AUTHORIZATION || name.as_str().starts_with("impersonate-"))
            .cloned()
            .collect();
        for name in credentials {
            request.headers_mut().remove(name);
        }
        let extensions = request.extensions_mut();
        extensions.insert(user_of(user));
        extensions.insert(info_of(info, path));
        // A part of this process that hands a request on may keep a hand on the connection; nobody outside can bring an extension.
        let own = parts.extensions.get::<Upgrade>().cloned();
        let pending: Option<BoxFuture<'static, _>> = match (own, parts.extensions.get::<OnUpgrade>()) {
            (Some(own), _) => Some(own.io().boxed()),
            (None, Some(on_upgrade)) => Some(of_connection(on_upgrade.clone()).boxed()),
            (None, None) => None,
        };
        if let Some(pending) = pending {
            let place = Arc::clone(&self.service.upgraded)
                .try_acquire_owned()
                .map_err(|_| ApiError::too_many_requests("Too many requests, please try again later.", 1))?;
            extensions.insert(upgrade(pending, place, lost.clone()));
        }
        let Some(lost) = lost else {
            return self.call(request).await;
        };
        // What is sent to the service counts from its end on, so that it is not taken for whole if it breaks off.
        tokio::select! {
            answer = self.call(request) => Ok(answer?.map(|body| leash::body(body, lost))),
            () = lost.clone() => Err(ApiError::unauthorized()),
        }
    }

    async fn call(&self, request: Request<RequestBody>) -> Answer {
        let named = || {
            format!(
                "{} of {}/{}",
                self.resource.name, self.service.group, self.service.version
            )
        };
        let handler = self.service.handler.clone();
        let work = async move {
            let mut handler = handler;
            let ready = handler.ready().await.map_err(|error| (true, error))?;
            tower::Service::call(ready, request)
                .await
                .map_err(|error| (false, error))
        };
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(response)) => Ok(guarded(response)),
            Ok(Err((true, error))) => Err(ApiError::unavailable(format!(
                "{} is not available: {error}",
                named()
            ))),
            Ok(Err((false, error))) if error.is::<LengthLimitError>() => Err(ApiError::too_large(MAX_BODY)),
            Ok(Err((false, error))) => Err(ApiError::internal(format!("{} failed: {error}", named()))),
            Err(_) => {
                tracing::error!(resource = named(), "an API service panicked");
                Err(ApiError::internal(format!("{} failed unexpectedly", named())))
            }
        }
    }
}

fn user_of(user: &UserInfo) -> apiservice::User {
    apiservice::User {
        name: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), values.clone()))
            .collect(),
    }
}

fn info_of(info: &RequestInfo, path: &ResourcePath) -> apiservice::RequestInfo {
    apiservice::RequestInfo {
        cluster: info.cluster.clone(),
        verb: info.verb.to_owned(),
        group: path.group.clone(),
        version: path.version.clone(),
        namespace: path.namespace.clone(),
        resource: path.resource.clone(),
        name: path.name.clone(),
        subresource: path.subresource.clone(),
        rest: path.rest.clone(),
    }
}

async fn of_connection(on_upgrade: OnUpgrade) -> Result<Upgraded, apiservice::BoxError> {
    Ok(Upgraded::new(TokioIo::new(on_upgrade.await?)))
}

fn upgrade(
    pending: BoxFuture<'static, Result<Upgraded, apiservice::BoxError>>,
    place: OwnedSemaphorePermit,
    lost: Option<Lost>,
) -> Upgrade {
    Upgrade::new(async move {
        let io = leash::Connection::new(pending.await?, lost);
        Ok(Upgraded::new(Counted { io, _place: place }))
    })
}

/// A connection that keeps its place until it is dropped.
struct Counted<T> {
    io: T,
    _place: OwnedSemaphorePermit,
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// A body whose panics end it, and nothing else on the connection.
struct Guarded(Option<ResponseBody>);

fn guarded(response: Response<apiservice::Body>) -> Response<ResponseBody> {
    response.map(|body| Guarded(Some(body)).boxed_unsync())
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)));
        polled.unwrap_or_else(|_| {
            // What panicked is in no state to be asked again.
            self.0 = None;
            tracing::error!("the answer of an API service panicked");
            Poll::Ready(Some(Err("the answer broke off unexpectedly".into())))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map(http_body::Body::size_hint)
            .unwrap_or_default()
    }
}
