//! A backend with its endpoints, and which of them is next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairway_gateway_routes::table::{self, ClusterKey};

use super::Endpoint;
use super::tls::BackendTls;
use crate::chance;
use crate::options::Balance;

pub(crate) struct Cluster {
    pub(crate) key: ClusterKey,
    pub(crate) spec: Arc<table::Cluster>,
    /// What TLS was made of, or why it cannot be: then nothing is sent.
    pub(crate) tls: Option<Result<BackendTls, Arc<str>>>,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    next: AtomicUsize,
}

impl Cluster {
    pub(crate) fn new(
        spec: Arc<table::Cluster>,
        tls: Option<Result<BackendTls, Arc<str>>>,
        endpoints: Vec<Arc<Endpoint>>,
    ) -> Self {
        Self {
            key: spec.key.clone(),
            spec,
            tls,
            endpoints,
            next: AtomicUsize::new(0),
        }
    }

    /// None: there are none. `marked` is where a session began, `not` what failed just now.
    pub(crate) fn pick(
        &self,
        balance: Balance,
        now: u64,
        marked: Option<&str>,
        not: Option<&Arc<Endpoint>>,
    ) -> Option<&Arc<Endpoint>> {
        if let [only] = &self.endpoints[..] {
            return Some(only);
        }
        if let Some(mark) = marked {
            let home = self.endpoints.iter().find(|endpoint| endpoint.mark == mark);
            if let Some(endpoint) = home.filter(|endpoint| endpoint.health.is_up(now))
                && not.is_none_or(|not| !Arc::ptr_eq(not, endpoint))
            {
                return Some(endpoint);
            }
        }
        let count = self.endpoints.len();
        let fits = |endpoint: &Arc<Endpoint>| {
            endpoint.health.is_up(now) && not.is_none_or(|not| !Arc::ptr_eq(not, endpoint))
        };
        let start = match balance {
            Balance::RoundRobin => self.next.fetch_add(1, Ordering::Relaxed),
            Balance::LeastRequests => {
                let (one, two) = (chance::below(count)?, chance::below(count)?);
                let (one, two) = (&self.endpoints[one], &self.endpoints[two]);
                match (fits(one), fits(two)) {
                    (true, true) => return Some(if two.load() < one.load() { two } else { one }),
                    (true, false) => return Some(one),
                    (false, true) => return Some(two),
                    (false, false) => chance::below(count)?,
                }
            }
        };
        let around = || (0..count).map(|step| &self.endpoints[(start.wrapping_add(step)) % count]);
        // If all are ejected, one that may have recovered is better than none.
        around()
            .find(|endpoint| fits(endpoint))
            .or_else(|| around().find(|endpoint| not.is_none_or(|not| !Arc::ptr_eq(not, endpoint))))
            .or_else(|| around().next())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use fairway_gateway_routes::table::{BackendProtocol, Traffic};

    use super::*;
    use crate::options::{Breaker, Outliers};

    fn cluster(endpoints: u16) -> Cluster {
        let key = ClusterKey {
            workspace: "root".into(),
            namespace: "team".into(),
            service: "web".into(),
            port: 80,
            via: String::new(),
        };
        let at = |port| table::Endpoint::Address(([127, 0, 0, 1], port).into());
        let spec = table::Cluster {
            key: key.clone(),
            protocol: BackendProtocol::Http1,
            tls: None,
            traffic: Traffic::default(),
            endpoints: (1..=endpoints).map(at).collect(),
        };
        let endpoint = |port| {
            Arc::new(Endpoint::new(
                key.clone(),
                at(port),
                format!("m{port}"),
                (Breaker::default(), Outliers::default()),
                1,
            ))
        };
        Cluster::new(Arc::new(spec), None, (1..=endpoints).map(endpoint).collect())
    }

    fn picks(
        cluster: &Cluster,
        balance: Balance,
        marked: Option<&str>,
        not: Option<&Arc<Endpoint>>,
    ) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..200 {
            if let Some(endpoint) = cluster.pick(balance, 0, marked, not) {
                *seen.entry(endpoint.mark.clone()).or_default() += 1;
            }
        }
        seen.into_keys().collect()
    }

    #[test]
    fn who_is_asked() {
        let out = Outliers {
            failures: 1,
            base: Duration::from_secs(60),
            ..Outliers::default()
        };
        for balance in [Balance::RoundRobin, Balance::LeastRequests] {
            assert!(
                picks(&cluster(0), balance, None, None).is_empty(),
                "nobody is there"
            );
            let three = cluster(3);
            assert_eq!(
                picks(&three, balance, None, None),
                ["m1", "m2", "m3"],
                "everybody has a turn"
            );
            assert_eq!(
                picks(&three, balance, Some("m2"), None),
                ["m2"],
                "a session stays"
            );
            assert_eq!(
                picks(&three, balance, Some("gone"), None),
                ["m1", "m2", "m3"],
                "or begins anew"
            );
            let second = Arc::clone(&three.endpoints[1]);
            assert_eq!(
                picks(&three, balance, None, Some(&second)),
                ["m1", "m3"],
                "not where it just failed"
            );
            assert_eq!(
                picks(&three, balance, Some("m2"), Some(&second)),
                ["m1", "m3"],
                "not even for a session"
            );
            assert!(second.health.failed(0, &out));
            assert_eq!(
                picks(&three, balance, None, None),
                ["m1", "m3"],
                "an ejected one is left out"
            );
            assert_eq!(
                picks(&three, balance, Some("m2"), None),
                ["m1", "m3"],
                "also by sessions"
            );
            for endpoint in &three.endpoints {
                endpoint.health.failed(0, &out);
            }
            assert!(
                !picks(&three, balance, None, None).is_empty(),
                "if all are, they are asked anyway"
            );
            let one = cluster(1);
            let only = Arc::clone(&one.endpoints[0]);
            assert_eq!(
                picks(&one, balance, None, Some(&only)),
                ["m1"],
                "the only one is asked again"
            );
        }
    }

    #[test]
    fn the_less_busy_of_two() {
        let two = cluster(2);
        let _busy: Vec<_> = (0..10).filter_map(|_| two.endpoints[0].enter()).collect();
        let first = (0..400)
            .filter(|_| {
                two.pick(Balance::LeastRequests, 0, None, None)
                    .is_some_and(|one| one.mark == "m1")
            })
            .count();
        // Only when chance picks the busy one twice.
        assert!((50..150).contains(&first), "{first} of 400 went to the busy one");
    }
}
