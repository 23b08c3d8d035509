//! Copies of requests to other backends. Their answers are thrown away, and nothing that happens to them touches the request.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fairway_gateway_routes::table::{self, Mirror, PathMatch};
use http::HeaderValue;
use http::request::Parts;
use http_body::Body as _;

use crate::body::{Body, Tee};
use crate::chance;
use crate::filters;
use crate::forward::Attempting;
use crate::metrics;
use crate::pipeline::Context;
use crate::plan::{RulePlan, TargetPlan};

/// How long a copy may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Starts the copies; the body that comes back is the one to send.
pub(crate) fn send(
    context: &Context,
    rule: &RulePlan,
    parts: &Parts,
    matched: &PathMatch,
    body: Body,
) -> Body {
    let mut body = body;
    for (mirror, backend) in &rule.mirrors {
        if !is_due(mirror, chance::next()) {
            continue;
        }
        let TargetPlan::Cluster(cluster) = &backend.target else {
            continue;
        };
        let now = context.shared.now();
        let Some(endpoint) = cluster
            .pick(context.shared.options.balance, now, None, None)
            .cloned()
        else {
            continue;
        };
        if !matches!(endpoint.at, table::Endpoint::Address(_)) {
            continue;
        }
        let (original, copy, cut) = match body {
            Body::Empty => (Body::Empty, Body::Empty, None),
            body => {
                let (original, copy, cut) = Tee::split(body);
                (original, copy, Some(cut))
            }
        };
        body = original;
        let mut parts = parts.clone();
        filters::on_request(&backend.filters, matched, &mut parts);
        mark(&mut parts);
        let (context, cluster) = (context.clone(), std::sync::Arc::clone(cluster));
        metrics::add(&context.shared.metrics.totals.mirrored_requests);
        tokio::spawn(async move {
            let attempting = Attempting {
                context: &context,
                cluster: &cluster,
                endpoint: &endpoint,
                parts: &parts,
                upgrade: None,
            };
            let whole = async {
                let answer = attempting.send_once(copy).await?;
                let mut body = answer.response.into_body();
                while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    frame.ok()?;
                }
                Some(())
            };
            let done = tokio::time::timeout(LONGEST, whole).await;
            let cut = cut.is_some_and(|cut| cut.load(Ordering::Relaxed));
            if cut || !matches!(done, Ok(Some(()))) {
                metrics::add(&context.shared.metrics.totals.mirror_failures);
            }
        });
    }
    body
}

/// Backends can tell copies by their host, as with Envoy.
fn mark(parts: &mut Parts) {
    let host = parts
        .headers
        .get(http::header::HOST)
        .and_then(|host| host.to_str().ok());
    if let Some(value) = host.and_then(|host| HeaderValue::from_str(&shadow(host)).ok()) {
        parts.headers.insert(http::header::HOST, value);
    }
}

fn shadow(host: &str) -> String {
    match host.split_once(':') {
        Some((name, port)) if !host.starts_with('[') => format!("{name}-shadow:{port}"),
        _ => format!("{host}-shadow"),
    }
}

fn is_due(mirror: &Mirror, chance: u64) -> bool {
    let share = (u128::from(chance) * u128::from(mirror.denominator)) >> 64;
    share < u128::from(mirror.numerator)
}
